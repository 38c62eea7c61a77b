# SPDX-License-Identifier: MIT
"""Utilization by Spang et al.'s two criteria (5.1), against the parameters of the sweep."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from analysis.figures.common import Data
from analysis.figures.sweep import common
from analysis.figures.sweep.common import PlottedMeasure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from runs.stored_sweep import Row, Stored

CAPTION = (
    "1st percentile of utilization over windows of ten RTTs, and the share of packets that found the queue not empty "
    "(dashed: the 99 % that full use requires). Dots are repetitions, hollow marks are their means, bars are 95 % "
    "Student's t intervals over repetitions."
)


def _percent(column: str) -> Callable[[Row], float | None]:
    return lambda row: None if row[column] is None else 100 * row[column]


MEASURES = (
    PlottedMeasure("utilization, p1 (%)", _percent("utilization_p01"), most=100, least_span=2),
    PlottedMeasure("packets that found\na queue (%)", _percent("queue_nonempty_fraction"), 99, 100, 2),
)


def prepare(sweep: Stored) -> Data | None:
    """Both criteria of every valid run, by panel, line and value along the axis."""
    return common.measured(sweep, MEASURES, (0, 1))


def draw(data: Data) -> Figure:
    """Both criteria above each other, in percent."""
    return common.draw_measures(data)
