# SPDX-License-Identifier: MIT
"""One Reno flow at several buffers against the BDP rule: utilization after a loss is min((1 + B/BDP) / 2, 1).

Spang et al. (2021), section 3.5. As in the paper, utilization is measured in windows of 10 base RTTs; over a single RTT
the minimum is lower (NOTES.md). The row of an invalid run says so and misses its bound.
"""

from __future__ import annotations

import json
from pathlib import Path

from bench.experiment import run_experiment
from bench.part import Part
from bench.report import BenchRow
from runs.names import SUMMARY

BUFFERS_BDP = (0.25, 0.5, 1, 1.5)
TOLERANCE = 0.08


def measure(short: bool) -> list[BenchRow]:
    rows = []
    for buffer_bdp in BUFFERS_BDP:
        repetition = run_experiment(
            "CC=reno", "FLOWS=1", f"BUF={buffer_bdp}bdp", f"DURATION={500 if short else 2000}rtt", "NAME=bench-reno"
        )
        rows += _rows(repetition, buffer_bdp)
    return rows


PART = Part(measure, needs_root=True)


def _rows(repetition: Path, buffer_bdp: float) -> list[BenchRow]:
    summary = json.loads((repetition / SUMMARY).read_text())
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
