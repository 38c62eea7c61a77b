# SPDX-License-Identifier: MIT
"""Figure 3: one loss of one flow. In the paper the sender pauses for (W_max / 2) / C. Linux always uses proportional
rate reduction (RFC 6937), which keeps sending at half the rate.

t0 is the drop, t1 the retransmission, t2 the moment when the window has halved.
"""

from __future__ import annotations

from statistics import fmean
from typing import NamedTuple

import numpy as np

from analysis.figures.common import BLACK, RED, Data
from analysis.papers import look
from analysis.papers.appenzeller2004 import sawteeth, two_panels
from analysis.papers.appenzeller2004.profiles import NAMES, PROFILES
from analysis.papers.facts import Fact, absent, exactly
from analysis.papers.packet_trace import PacketTrace
from analysis.papers.paper import PaperFigure
from analysis.papers.stored_runs import StoredRun, StoredRuns

CAPTION = (
    "the RTTs around one loss, B = BDP: the packet is dropped at t0 and sent again at t1, and the window has halved "
    "at t2. In the paper the sender is silent from t1 for (W_max / 2) / C = B / C. Linux's proportional rate reduction "
    "instead sends one packet for every two that are acknowledged, and the queue takes 2 B / C to empty."
)
BUFFER = 142
BEFORE_RTTS, AFTER_RTTS = 0.5, 3.5  # drawn time around the drop, in longest RTTs
HALF_AND_A_BIT = 0.51  # share of the window at the drop: recovery ends at half of that window, give or take two packets


def prepare(runs: StoredRuns) -> Data:
    """For each sender: the curves around the first loss, and the times of all losses."""
    senders = {profile: _sender(runs, profile) for profile in PROFILES}
    return {"provenance": runs.provenance(), "senders": senders, "buffer": BUFFER}


def _sender(runs: StoredRuns, profile: str) -> Data:
    trace = sawteeth.trace_of(runs, BUFFER, profile)
    measured = None if trace is None else trace.run.measure("losses", Losses, _losses)
    if trace is None or measured is None or measured.curves is None:
        return {"absent": f"{NAMES[profile]}: no valid run with a loss"}
    before_ns, after_ns = _drawn_ns(trace)
    return measured._asdict() | {
        "shift_s": -before_ns / 1e9,
        "end_s": after_ns / 1e9,
        "bdp": trace.bdp,
        "packet_s": trace.packet_ns / 1e9,
        "full_rtt_s": trace.longest_rtt_ns / 1e9,
    }


class Loss(NamedTuple):
    """One loss. t1 and t2 count from the drop; `silent_s` is the longest gap between arrivals from t1 to t2."""

    drop_ns: int
    t1_s: float
    t2_s: float
    silent_s: float


class Losses(NamedTuple):
    """The losses of a run that have a retransmission and a halved window, and the curves around the first of them."""

    losses: list[Loss]
    curves: sawteeth.Curves | None


def _losses(run: StoredRun) -> Losses:
    """Reads tables of the run."""
    trace = PacketTrace(run)
    losses = [loss for start, _, end in trace.losses() if (loss := _loss(trace, start, end))]
    if not losses:
        return Losses([], None)
    drop_ns = losses[0].drop_ns
    before_ns, after_ns = _drawn_ns(trace)
    return Losses(losses, sawteeth.curves(trace, drop_ns - before_ns, drop_ns + after_ns))


def _drawn_ns(trace: PacketTrace) -> tuple[int, int]:
    """The drawn time before and after the drop."""
    return round(BEFORE_RTTS * trace.longest_rtt_ns), round(AFTER_RTTS * trace.longest_rtt_ns)


def _loss(trace: PacketTrace, drop: int, end: int) -> Loss | None:
    flow = trace.flows[0]["id"]
    times, window = trace.window(flow)
    again, _ = trace.retransmissions(drop, end)
    before, _ = trace.fall(flow, drop, end)
    after = slice(*np.searchsorted(times, (drop, end)))
    halved = times[after][window[after] <= before * HALF_AND_A_BIT]
    if not len(again) or not len(halved):
        return None
    came = trace.queue["enqueue_mono_ns"][trace.arrivals(int(again[0]), int(halved[0]))]
    silent_s = float(np.diff(came).max(initial=0)) / 1e9
    return Loss(drop, (int(again[0]) - drop) / 1e9, (int(halved[0]) - drop) / 1e9, silent_s)


def draw(data: Data) -> look.Figure:
    """Window above, queue beneath; 0 is the drop of each sender's first loss."""
    figure, upper, lower, sender = two_panels.draw(data, look.COLUMN_IN, {"loc": "lower left"})
    if sender is None:
        return figure
    first = sender["losses"][0]
    for ax in (upper, lower):
        for at, text in ((0.0, "t0"), (first.t1_s, "t1"), (first.t2_s, "t2")):
            ax.axvline(at, color=RED if not at else BLACK, linewidth=0.6, linestyle=":")
            if ax is upper:
                look.note(ax, text, (at, 1.02), (2, 4), xycoords=("data", "axes fraction"))
    lower.set_xlim(sender["shift_s"], sender["end_s"])
    lower.set_xlabel("time since the drop (s)")
    return figure


def facts(data: Data) -> list[Fact]:
    """Means over a run's losses; the losses are nearly equal."""
    rows = []
    for profile, sender in data["senders"].items():
        if "absent" in sender:
            rows.append(absent(sender["absent"]))
            continue
        who, losses = NAMES[profile], sender["losses"]
        drained_s = 2 * data["buffer"] * sender["packet_s"]
        rows += [
            Fact(
                f"{who}: from t0 to t1", "one RTT with a full queue", sender["full_rtt_s"],
                exactly(fmean(loss.t1_s for loss in losses)), "s",
            ),
            Fact(
                f"{who}: from t1 to t2", "a pause of B / C = 0.142 s", drained_s,
                exactly(fmean(loss.t2_s - loss.t1_s for loss in losses)), "s",
                "no pause: with PRR a packet leaves for every two acknowledged, so the reduction takes twice as long",
            ),
            Fact(
                f"{who}: longest silence between t1 and t2", "0.142 s", 2 * sender["packet_s"],
                exactly(fmean(loss.silent_s for loss in losses)), "s",
            ),
        ]  # fmt: skip
    return rows


FIGURE = PaperFigure("figure_03", CAPTION, (sawteeth.STEM,), prepare, draw, facts)
