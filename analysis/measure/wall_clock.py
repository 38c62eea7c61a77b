# SPDX-License-Identifier: MIT
"""Fidelity of a switch with its own clock: compares the measured departures in its postcards with the link's rate.
Facts that only a switch with computed departures has are null; NOT_KNOWN has the reasons.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from analysis.arithmetic.counted import Counted
from analysis.read.columns import Columns, parts, rows_of
from analysis.read.load import Run
from analysis.read.postcards import NEVER_NS, admissions, dropped, wire_bytes
from analysis.read.switch_clock import SwitchClock, is_free
from lib.frames import ETHERNET_BYTES
from lib.terminal import counted
from runs.verdict import Area

MAX_GAP_ERROR = 0.1
CLOCK_SLACK_NS = 100_000  # allowed misfit, and allowed change of the offset beyond its two measurements' uncertainty
MAX_UNCERTAINTY_RTT_FRACTION = 0.05  # allowed uncertainty of times inferred from postcards, in base RTTs
_NO_DEPARTURE = "it computes no departure times"
NOT_KNOWN = {
    "departures": _NO_DEPARTURE,
    "lateness_frames": _NO_DEPARTURE,
    "lateness_us": f"{_NO_DEPARTURE}, and its rate in bits follows from no packet's own times",
    "lateness_max_ns": _NO_DEPARTURE,
    "postcard_lateness_max_ns": _NO_DEPARTURE,
    "loop_gap_max_us": "it does not say how long its threads stood still",
    "clock_steps": "it does not watch its clock for steps; the clock_* facts bound the error of its times",
    "realtime_step_max_ns": "for the same reason as clock steps",
    "arrivals_clamped_fraction": "it stamps a frame when it reads the frame, so no arrival is moved to a later time",
}


def _departures(run: Run, queue: Columns) -> Iterator[Columns]:
    """The packets that took the link, in the order of their departures, with `before_ns`: when the packet before left.
    A switch with a rate in packets/s gives a packet its time, even if its program then drops it. `lost`: of recorded
    frames, how many between the two in the order of arrivals were dropped, nobody knows where in the switch.
    """
    before, lost_before = NEVER_NS, 0
    lost_ns = np.empty(0, dtype=np.int64)
    drops_take_time = run.experiment.rate_pps is not None and not run.experiment.is_recorded
    if run.experiment.is_recorded:
        lost_ns = np.concatenate([c["enqueue_mono_ns"][dropped(c)] for c in parts(queue, "enqueue_mono_ns", "flags")])
    for cards in admissions(queue, "packet_bytes"):
        left = cards if drops_take_time else rows_of(cards, ~dropped(cards))
        if len(left["left_ns"]):
            lost = np.searchsorted(lost_ns, left["came_ns"])
            of_pairs = np.maximum(np.diff(lost, prepend=lost_before), 0)
            yield left | {"before_ns": np.append(before, left["left_ns"][:-1]), "lost": of_pairs}
            before, lost_before = int(left["left_ns"][-1]), int(lost[-1])


def _back_to_back(run: Run, queue: Columns) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(gap to the departure before, wire bytes, the gap at RATE) of packets that waited for the packet before them."""
    if run.recount is not None:
        for part in parts(run.recount.gaps, "gap_ns", "bytes") if run.recount.gaps else ():
            yield part["gap_ns"], part["bytes"], part["bytes"] * (8e9 / run.experiment.rate_bps)
        return
    full_bytes = wire_bytes(np.array(run.experiment.mtu_bytes + ETHERNET_BYTES))
    for cards in _departures(run, queue):
        gaps, sizes = cards["left_ns"] - cards["before_ns"], wire_bytes(cards["packet_bytes"])
        waited = (cards["came_ns"] < cards["before_ns"]) & (cards["lost"] == 0)
        if run.experiment.imported:  # its rate is of bits or of packets
            waited &= sizes == full_bytes
        # With a rate in packets per second, each packet takes the same time.
        yield gaps[waited], sizes[waited], np.full(np.count_nonzero(waited), run.experiment.packet_ns)


def link_facts(run: Run, queue: Columns) -> dict[str, Any]:
    """Gaps and rates of back-to-back departures. The ideal gap is a packet's transmission time at RATE."""
    count = span_ns = ideal_span_ns = wire_sum = off_count = off_max = 0
    for gaps, sizes, ideal_ns in _back_to_back(run, queue):
        off = np.abs(gaps - ideal_ns)
        count, span_ns, wire_sum = count + len(gaps), span_ns + gaps.sum(), wire_sum + sizes.sum()
        ideal_span_ns += ideal_ns.sum()
        off_count += int(np.count_nonzero(off > MAX_GAP_ERROR * ideal_ns))
        off_max = max(off_max, off.max(initial=0))
    if not count or not span_ns:
        names = ("gap_error_over_10pct_fraction", "gap_error_max_ns", "rate_error_fraction")
        return dict.fromkeys((*names, "measured_pps", "measured_bps")) | {"back_to_back_ns": 0.0}
    return {
        "gap_error_over_10pct_fraction": off_count / count,
        "gap_error_max_ns": float(off_max),
        "rate_error_fraction": float(span_ns) / float(ideal_span_ns) - 1,
        "measured_pps": count * 1e9 / float(span_ns),
        "measured_bps": float(wire_sum) * 8e9 / float(span_ns),
        "back_to_back_ns": float(ideal_span_ns),
    }


def lateness_ns(run: Run, queue: Columns) -> Counted | None:
    """By how much each packet left later than its arrival, the packets before it and a rate in packets/s allow; None
    without such a rate. A switch that keeps this rate lets a packet leave at once if the last one left, or should have
    left, at least the time of a packet earlier. A packet that was dropped somewhere in the switch may have taken its
    time before: the least lateness counts.
    """
    pps = run.experiment.rate_pps
    if run.recount is not None or not isinstance(pps, int) or pps < 1:
        return None
    packet_ns, due_ns, late_ns = 10**9 // pps, NEVER_NS, Counted()
    for cards in _departures(run, queue):
        starts = np.flatnonzero(cards["lost"]).tolist()
        for first, last in pairwise([0, *starts, len(cards["lost"])]):
            part = rows_of(cards, slice(first, last))
            if last > first:
                lost, came_ns, left_ns = (int(part[name][0]) for name in ("lost", "came_ns", "left_ns"))
                if lost:
                    due_ns = min(max(due_ns, left_ns), max(due_ns, came_ns) + lost * packet_ns)
                behind = np.arange(last - first) * packet_ns
                due = behind + np.maximum(np.maximum.accumulate(part["came_ns"] - behind), due_ns)
                late_ns.add(np.maximum(part["left_ns"] - due, 0))
                due_ns = int(due[-1]) + packet_ns
    return late_ns


def clock_facts(run: Run) -> dict[str, Any]:
    """Uncertainty of the offset between the switch's clock and CLOCK_MONOTONIC. If the run measured the offset, also
    its change during the traffic. If postcards bound the offset, also drift, misfit and restarts (switch_clock.py).
    """
    if is_free(run.experiment):
        clock = run.clock
        return {
            "clock_uncertainty_ns": clock and clock.uncertainty_ns,
            "clock_drift_ppm": clock and clock.drift_ppm,
            "clock_misfit_ns": clock and clock.misfit_ns,
            "clock_restarts": clock and len(clock.restarts_mono_ns),
        }
    switch = run.documents.switch
    one, other = switch.before.clock_uncertainty_ns, switch.clock_uncertainty_ns
    first, last = switch.before.clock_offset_ns, switch.clock_offset_ns
    return {
        "clock_uncertainty_ns": None if one is None or other is None else max(one, other),
        "clock_moved_ns": None if first is None or last is None else abs(last - first),
    }


def clock_reasons(run: Run, facts: dict[str, Any]) -> list[str]:
    """One line for each doubt about the switch's times: its clock changed, restarted, or is not bounded closely."""
    if is_free(run.experiment):
        return [] if run.clock is None else _free_clock_reasons(run, run.clock)
    moved, uncertainty = facts["clock_moved_ns"], facts["clock_uncertainty_ns"]
    if moved is None or uncertainty is None or moved <= (allowed := 2 * uncertainty + CLOCK_SLACK_NS):
        return []
    return [
        f"{Area.FIDELITY}: the switch's clock moved by {moved / 1e3:.0f} us against CLOCK_MONOTONIC during the run; "
        f"allowed are {allowed / 1e3:.0f} us: stop whatever sets the clock, then run again"
    ]


def _free_clock_reasons(run: Run, clock: SwitchClock) -> list[str]:
    reasons = []
    allowed_ns = MAX_UNCERTAINTY_RTT_FRACTION * run.experiment.rtt_ns
    if clock.uncertainty_ns is None:
        reasons.append(
            f"{Area.FIDELITY}: nothing bounds the switch's clock from below: no trace record from before a packet was "
            "sent, and no echo request; see tcp.bst and logs/"
        )
    elif clock.uncertainty_ns > allowed_ns:
        reasons.append(
            f"{Area.FIDELITY}: the switch's times are uncertain by {clock.uncertainty_ns / 1e3:.0f} us; allowed are "
            f"{allowed_ns / 1e3:.0f} us (5 % of the base RTT): postcards come late, or the clock's drift changes"
        )
    if clock.misfit_ns > CLOCK_SLACK_NS:
        reasons.append(
            f"{Area.FIDELITY}: packets came to the queue {2 * clock.misfit_ns / 1e3:.0f} us before they were sent, "
            "or left it after their postcards came: the switch's clock was set, or sender and collector have two clocks"
        )
    if clock.restarts_mono_ns:
        first_s = (clock.restarts_mono_ns[0] - run.postcards["rx_mono_ns"].min()) / 1e9
        reasons.append(
            f"{Area.FIDELITY}: the switch's clock began anew ({counted(len(clock.restarts_mono_ns), 'time')}, first "
            f"{first_s:.3f} s after the first postcard): the switch restarted; the packets in its queues are unknown"
        )
    return reasons
