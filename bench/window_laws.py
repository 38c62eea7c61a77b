# SPDX-License-Identifier: MIT
"""The behaviour of congestion controls in the records of a run: reactions to losses and marks, growth between them, and
gaps at the switch.

A record of the trace has the state before its ACK is processed. The last record before fast recovery, or before a
reaction to ECN, has the window before the reaction; the first record after the reaction has the window after it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from analysis.read.raw import Columns, load_postcards, load_tcp
from runs.names import POSTCARDS_FILE, TCP_FILE
from wire.wire import POSTCARD, TCP_RECORD

PROBE = TCP_RECORD.const["TCP_EVENT_PROBE"]
DISORDER, CWR, RECOVERY = 1, 2, 3  # ca_state
UNPACED_SEGMENTS = 10  # Linux does not pace the first ten segments of a connection


@dataclass(frozen=True)
class WindowTrace:
    """The ACKs of one flow, in the order of their times."""

    ns: np.ndarray
    cwnd: np.ndarray
    ssthresh: np.ndarray
    ca_state: np.ndarray
    in_flight: np.ndarray
    srtt_us: np.ndarray


class Reaction(NamedTuple):
    """`before` and `after` are the windows in packets. `begin` and `end` are rows of the WindowTrace: the last ACK
    before the reaction, and the first ACK after it.
    """

    before: int
    after: int
    ssthresh: int
    slow_start: bool
    begin: int
    end: int


def flows(repetition: Path) -> list[WindowTrace]:
    """Each flow of the trace."""
    tcp = load_tcp(repetition / TCP_FILE)[0]
    probes = np.flatnonzero(tcp["event"] == PROBE)
    return [_flow(tcp, probes[tcp["flow"][probes] == flow]) for flow in np.unique(tcp["flow"][probes])]


def _flow(tcp: Columns, rows: np.ndarray) -> WindowTrace:
    counts = {
        name: tcp[name][rows].astype(np.int64) for name in ("packets_out", "sacked_out", "lost_out", "retrans_out")
    }
    return WindowTrace(
        ns=tcp["mono_ns"][rows].astype(np.int64),
        cwnd=tcp["cwnd_packets"][rows].astype(np.int64),
        ssthresh=tcp["ssthresh_packets"][rows].astype(np.int64),
        ca_state=tcp["ca_state"][rows],
        in_flight=counts["packets_out"] - counts["sacked_out"] - counts["lost_out"] + counts["retrans_out"],
        srtt_us=tcp["srtt_us"][rows].astype(np.int64),
    )


def beginnings(flow: WindowTrace, state: int) -> np.ndarray:
    """The ACKs that put the flow into `state` from Open or Disorder."""
    return np.flatnonzero((flow.ca_state[:-1] <= DISORDER) & (flow.ca_state[1:] == state))


def reactions(flow: WindowTrace, state: int = RECOVERY) -> list[Reaction]:
    """Every stay in `state` that began and ended in Open or Disorder, so without a timeout in between."""
    calm = flow.ca_state <= DISORDER
    result = []
    for begin in beginnings(flow, state):
        later = np.flatnonzero(flow.ca_state[begin + 1 :] != state)
        if not later.size or not calm[end := int(begin + 1 + later[0])]:
            continue
        result.append(
            Reaction(
                int(flow.cwnd[begin]), int(flow.cwnd[end]), int(flow.ssthresh[begin + 1]),
                bool(flow.cwnd[begin] < flow.ssthresh[begin]), int(begin), end,
            )
        )  # fmt: skip
    return result


def reduction(losses: list[Reaction]) -> float:
    """Median of (window after) / (window before) over the reactions outside of slow start. Raises ValueError if there
    is none.
    """
    ratios = [loss.after / loss.before for loss in losses if not loss.slow_start]
    if not ratios:
        raise ValueError("the flow reacted to nothing outside of slow start")
    return float(np.median(ratios))


def growth(flow: WindowTrace, losses: list[Reaction]) -> np.ndarray:
    """Rows of (window, its growth) in packets for each RTT between two reactions, in congestion avoidance."""
    rows = []
    for before, after in pairwise(losses):
        at = before.end
        while True:
            due_ns = flow.ns[at] + 1000 * flow.srtt_us[at]
            then = int(np.searchsorted(flow.ns, due_ns))
            if then > after.begin:
                break
            share = (due_ns - flow.ns[at]) / (flow.ns[then] - flow.ns[at])
            rows.append((flow.cwnd[at], (flow.cwnd[then] - flow.cwnd[at]) * share))
            at = then
    return np.array(rows, dtype=float).reshape(-1, 2)


def cubic_constant(flow: WindowTrace, before: Reaction, after: Reaction) -> float:
    """C of W(t) = C (t - K)^3 + W_max, in packets/s^3, from the time until half of the reduction is regained. The time
    to W_max itself would be inexact, because the curve is flat there.
    """
    lost = before.before - before.after
    half = before.end + int(np.argmax(flow.cwnd[before.end : after.begin] >= before.after + lost / 2))
    seconds = (flow.ns[half] - flow.ns[before.end]) / 1e9
    return float(lost * ((1 - 0.5 ** (1 / 3)) / seconds) ** 3)


def gaps_ns(repetition: Path) -> np.ndarray:
    """Gaps between full packets of a single flow at their arrival, without the segments that Linux never paces."""
    cards = load_postcards(repetition / POSTCARDS_FILE)[0]
    full = cards["packet_bytes"] == cards["packet_bytes"].max()
    return np.diff(np.sort(cards["enqueue_mono_ns"][full].astype(np.int64)))[UNPACED_SEGMENTS:]


def dispersion(gaps: np.ndarray, packets: float = 10) -> float:
    """Index of dispersion of the arrivals: variance over mean of the counts in intervals of `packets` mean gaps. 1 for
    a Poisson process, 0 for equal gaps.
    """
    at = gaps.cumsum()
    counts = np.histogram(at, np.arange(0, at[-1], packets * gaps.mean()))[0]
    return float(counts.var() / counts.mean())


def dctcp_alphas(repetition: Path) -> np.ndarray:
    """Two estimates of alpha for each reaction of a single DCTCP flow without losses. The first is from the switch's
    marks: once per window, alpha moves by 1/16 towards the share of marked packets (RFC 8257). The second is from the
    reduction, 2 (1 - after / before). Windows are whole packets, so the second estimate is off by up to 2 / before.
    """
    tcp = load_tcp(repetition / TCP_FILE)[0]
    rows = np.flatnonzero(tcp["event"] == PROBE)
    una, sent, delivered, cwnd, ssthresh, ca_state = (
        tcp[name][rows].astype(np.int64)
        for name in ("snd_una", "snd_nxt", "delivered_packets", "cwnd_packets", "ssthresh_packets", "ca_state")
    )
    cards = load_postcards(repetition / POSTCARDS_FILE)[0]
    full = np.flatnonzero(cards["packet_bytes"] == cards["packet_bytes"].max())
    full = full[np.argsort(cards["enqueue_mono_ns"][full], kind="stable")]
    marked = np.append(0, np.cumsum((cards["flags"][full] & POSTCARD.const["POSTCARD_CE_MARKED"]) != 0))
    alpha, begin, window_end, result = 1.0, delivered[0], sent[0], []
    for at in range(len(rows) - 1):
        if (una[at + 1] - window_end) % 2**32 < 2**31:
            packets = delivered[at] - begin  # the SYN counts as delivered
            share = (marked[delivered[at] - 1] - marked[begin - 1]) / packets if packets else 0.0
            alpha += (share - alpha) / 16
            begin, window_end = delivered[at], sent[at]
        if ca_state[at] <= DISORDER and ca_state[at + 1] == CWR and ssthresh[at + 1] != ssthresh[at]:
            result.append((alpha, 2 * (1 - ssthresh[at + 1] / cwnd[at])))
    return np.array(result).reshape(-1, 2)


def main(repetition: Path) -> None:
    """Prints the behaviour of each flow of a run; gaps and alpha only if there is a single flow."""
    traced = flows(repetition)
    for number, flow in enumerate(traced):
        losses = [loss for loss in reactions(flow) if not loss.slow_start]
        if losses:
            grown = growth(flow, losses)[:, 1]
            constants = [  # without fast convergence: the window was no larger at the previous loss
                cubic_constant(flow, this, after) for before, this, after
                in zip(losses, losses[1:], losses[2:], strict=False)
                if this.before >= before.before and this.after < (this.before + this.after) / 2 < after.before
            ]  # fmt: skip
            print(f"flow {number}: {len(losses)} losses, last {losses[-1].before} -> {losses[-1].after} packets")
            print(f"  window after / window before: median {reduction(losses):.4f}")
            print(f"  growth in packets per RTT: median {np.median(grown):.3f}, mean {grown.mean():.3f}")
            if constants:
                print(f"  C if it is Cubic: {np.median(constants):.3f}")
        if len(traced) == 1 and np.any(flow.ca_state == CWR):
            by_marks, by_windows = dctcp_alphas(repetition).T
            off = np.abs(by_marks - by_windows)[5:]
            print(f"flow {number}: {len(by_marks)} reactions to marks; without the first five:")
            print(f"  alpha from the windows {by_windows[5:].mean():.4f}, from the marks {by_marks[5:].mean():.4f}")
            print(f"  largest difference {off.max(initial=0):.4f}")
        pace_ns = 1000 * np.median(flow.srtt_us / flow.cwnd)
        print(f"flow {number}: most in flight {flow.in_flight.max()}, srtt/W {pace_ns:.0f} ns")
    if len(traced) == 1:
        gaps = gaps_ns(repetition)
        print(f"gaps at the switch: median {np.median(gaps):.0f} ns, least {gaps.min()} ns")


if __name__ == "__main__":
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / TCP_FILE).is_file():
        sys.exit("give the directory of a repetition, such as results/latest/rep-1")
    main(Path(sys.argv[1]))
