# SPDX-License-Identifier: MIT
"""Median and 99th percentile of the queueing delay, against the parameters of the sweep."""

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
    "Queueing delay of packets that were not dropped, from arrival to departure: median and 99th percentile. Dots are "
    "repetitions, hollow marks are their means, bars are 95 % Student's t intervals over repetitions."
)


def _ms(column: str) -> Callable[[Row], float | None]:
    return lambda row: None if row[column] is None else row[column] / 1e6


MEASURES = (
    PlottedMeasure("delay p50 (ms)", _ms("queue_delay_p50_ns"), from_zero=True),
    PlottedMeasure("delay p99 (ms)", _ms("queue_delay_p99_ns"), from_zero=True),
)


def prepare(sweep: Stored) -> Data | None:
    """Both percentiles of every valid run, by panel, line and value along the axis."""
    return common.measured(sweep, MEASURES)


def draw(data: Data) -> Figure:
    """Both percentiles above each other; their axes begin at 0."""
    return common.draw_measures(data)
