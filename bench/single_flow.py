# SPDX-License-Identifier: MIT
"""One Reno flow at several buffers against the BDP rule: utilization after a loss is min((1 + B/BDP) / 2, 1).

Spang et al. (2021), section 3.5. As in the paper, utilization is measured in windows of 10 base RTTs; over a single RTT
the minimum is lower (NOTES.md). The row of an invalid run says so and misses its bound.
"""

from __future__ import annotations

from typing import Any

from bench import lab
from bench.part import Part
from bench.report import BenchRow

BUFFERS_BDP = (0.25, 0.5, 1, 1.5)
TOLERANCE = 0.08


def measure(short: bool) -> list[BenchRow]:
    lab.prepare("single_flow")
    rows = []
    for buffer_bdp in BUFFERS_BDP:
        length = f"DURATION={500 if short else 2000}rtt"
        words = ("CC=reno", "FLOWS=1", f"BUF={buffer_bdp}bdp", length, "NAME=bench-reno")
        (outcome,) = lab.run("single_flow", *words, clock="real")
        rows += _rows(outcome.summary, buffer_bdp)
    return rows


PART = Part(measure, needs_root=True)


def _rows(summary: dict[str, Any], buffer_bdp: float) -> list[BenchRow]:
    ratio = summary["buffer_packets"] / summary["bdp_packets"]
    predicted = min((1 + ratio) / 2, 1)
    measured = summary["utilization"]["min_after_loss_10rtt"]
    note = "" if summary["valid"] else "NOT VALID: " + "; ".join(summary["reasons"])
    off = abs(measured - predicted) if summary["valid"] and measured is not None else 1.0
    return [
        BenchRow(
            f"one Reno flow, {buffer_bdp} BDP: utilization after a loss, off by",
            off,
            "",
            must=TOLERANCE,
            better="lower",
            peer=f"measured {measured}, BDP rule {predicted:.3f}",
            note=note or f"queue depth p01: {summary['queue_depth_packets']['p01']}, {summary['drops']} drops",
        )
    ]
