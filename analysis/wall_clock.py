# SPDX-License-Identifier: MIT
"""Fidelity of a switch that has no virtual time, from its postcards: when packets departed, against when the link
should have let them go. What only a switch with virtual time can say is null, and NOT_KNOWN says why.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.ledger import number
from analysis.load import Run
from analysis.metrics import dropped
from lib.frames import LEAST_FRAME_BYTES, WIRE_EXTRA_BYTES

MAX_GAP_ERROR = 0.1
CLOCK_SLACK_NS = 100_000  # by which the offset may change beyond the uncertainty of its two measurements
_NO_DEPARTURE = "it computes no departure that a frame could be late against"
NOT_KNOWN = {
    "departures": _NO_DEPARTURE,
    "lateness_frames": _NO_DEPARTURE,
    "lateness_us": _NO_DEPARTURE,
    "lateness_max_ns": _NO_DEPARTURE,
    "postcard_lateness_max_ns": _NO_DEPARTURE,
    "loop_gap_max_us": "it does not say how long its threads stood still",
    "clock_steps": "it does not watch its clock; clock_moved_ns says how far that moved",
    "realtime_step_max_ns": "as clock_steps",
    "arrivals_clamped_fraction": "it takes frames as it reads them, and stamps them then",
}


def departures(queue: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(gap to the packet before in ns, wire bytes, whether it waited for that packet) of the packets that left, in the
    order they did; the first has no gap and is left out.
    """
    left = np.flatnonzero(~dropped(queue))
    came = queue["enqueue_mono_ns"][left]
    gone = came + queue["sojourn_ns"][left]
    order = np.argsort(gone, kind="stable")
    came, gone = came[order], gone[order]
    wire_bytes = np.maximum(queue["packet_bytes"][left][order], LEAST_FRAME_BYTES).astype(np.int64) + WIRE_EXTRA_BYTES
    return np.diff(gone), wire_bytes[1:], came[1:] < gone[:-1]


def link_facts(run: Run, queue: dict[str, np.ndarray]) -> dict[str, Any]:
    """Gaps and rates of packets that left back to back. A gap is judged against a full packet's time at RATE."""
    gaps, wire_bytes, waited = departures(queue)
    gaps, wire_bytes = gaps[waited], wire_bytes[waited]
    ideal_ns = run.spec["wire_bytes"] * 8e9 / run.spec["rate_bps"]
    span_ns = float(gaps.sum())
    if not len(gaps) or not span_ns:
        names = ("gap_error_over_10pct_fraction", "gap_error_max_ns", "rate_error_fraction")
        return dict.fromkeys((*names, "measured_pps", "measured_bps")) | {"back_to_back_ns": 0.0}
    off = np.abs(gaps - ideal_ns)
    return {
        "gap_error_over_10pct_fraction": float(np.mean(off > MAX_GAP_ERROR * ideal_ns)),
        "gap_error_max_ns": float(off.max()),
        "rate_error_fraction": span_ns / (len(gaps) * ideal_ns) - 1,
        "measured_pps": len(gaps) * 1e9 / span_ns,
        "measured_bps": float(wire_bytes.sum()) * 8e9 / span_ns,
        "back_to_back_ns": len(gaps) * ideal_ns,
    }


def clock_facts(run: Run) -> dict[str, float | None]:
    """How the switch's clock was joined to CLOCK_MONOTONIC: the uncertainty, and how far the offset moved meanwhile."""
    switch = run.documents["switch"]
    ends = [
        found if isinstance(of, dict) and isinstance(found := of.get("clock"), dict) else {}
        for of in (switch.get("before"), switch)
    ]
    uncertainties = [value for end in ends if (value := number(end, "uncertainty_ns")) is not None]
    offsets = [value for end in ends if isinstance(value := end.get("offset_ns"), int) and not isinstance(value, bool)]
    return {
        "clock_uncertainty_ns": max(uncertainties) if len(uncertainties) == len(ends) else None,
        "clock_moved_ns": abs(offsets[1] - offsets[0]) if len(offsets) == len(ends) else None,
    }


def clock_reasons(facts: dict[str, Any]) -> list[str]:
    """Two readings of the offset that differ: then no time in the run is known better than by their difference."""
    moved, uncertainty = facts["clock_moved_ns"], facts["clock_uncertainty_ns"]
    if moved is None or uncertainty is None or moved <= (allowed := 2 * uncertainty + CLOCK_SLACK_NS):
        return []
    return [
        f"fidelity: the switch's clock moved by {moved / 1e3:.0f} us against CLOCK_MONOTONIC during the run; allowed "
        f"are {allowed / 1e3:.0f} us: stop whatever sets the clock, then run again"
    ]
