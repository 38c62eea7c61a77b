# SPDX-License-Identifier: MIT
"""The figures of every sweep, in the order of its page. Those of measures against the sweep's parameters are data."""

from __future__ import annotations

from functools import partial

from analysis.figures.sweep import least_buffer, queue_depth
from analysis.figures.sweep.common import PlottedMeasure, SweepFigure, draw_measures, measured
from runs.quantities import BY_NAME
from runs.stored_sweep import Row

REPETITIONS = (
    "Dots are repetitions, hollow marks are their means, bars are 95 % Student's t intervals over repetitions."
)


def _of_measures(caption: str, *measures: PlottedMeasure, needed: tuple[int, ...] = (0,)) -> SweepFigure:
    """The measures above each other. Without a value of one of `needed` there is no figure."""
    return SweepFigure(f"{caption} {REPETITIONS}", partial(measured, measures=measures, needed=needed), draw_measures)


def _scaled(name: str, row: Row) -> float | None:
    """A quantity in the unit of the terminal: percent, ms."""
    return None if row[name] is None else BY_NAME[name].unit.scaled(row[name])


def _of_several(name: str, row: Row) -> float | None:
    return row[name] if (row["flows"] or 0) > 1 else None


FIGURES = {
    "least_buffer": least_buffer.FIGURE,
    "utilization": _of_measures(
        "1st percentile of utilization over windows of ten RTTs, and the share of packets that found the queue not "
        "empty (dashed: the 99 % that full use requires).",
        PlottedMeasure("utilization, p1 (%)", partial(_scaled, "utilization_p01"), most=100, least_span=2),
        PlottedMeasure("packets that found\na queue (%)", partial(_scaled, "queue_nonempty_fraction"), 99, 100, 2),
        needed=(0, 1),
    ),
    "queue_depth": queue_depth.FIGURE,
    "queueing_delay": _of_measures(
        "Queueing delay of packets that were not dropped, from arrival to departure: median and 99th percentile.",
        PlottedMeasure("delay p50 (ms)", partial(_scaled, "queue_delay_p50_ns"), from_zero=True),
        PlottedMeasure("delay p99 (ms)", partial(_scaled, "queue_delay_p99_ns"), from_zero=True),
    ),
    "fairness": _of_measures(
        "Fairness among the flows of a run. Δ: the windows from the 1st to the 99th percentile are within a factor of "
        "Δ of the fair share (1: all equal). Jain's index is of goodput (1: all equal). Runs of one flow are left out.",
        PlottedMeasure("Δ", partial(_of_several, "delta"), from_zero=True),
        PlottedMeasure("Jain's index", partial(_of_several, "jain_index"), most=1, least_span=0.05),
    ),
}
