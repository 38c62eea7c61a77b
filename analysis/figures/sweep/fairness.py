# SPDX-License-Identifier: MIT
"""Fairness against the parameters of the sweep: Delta of Spang et al. (5.6), and Jain's index."""

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
    "Fairness among the flows of a run. Δ: the windows from the 1st to the 99th percentile are within a factor of Δ of "
    "the fair share (1: all equal). Jain's index is of goodput (1: all equal). Runs of one flow are left out. Dots are "
    "repetitions, hollow marks are their means, bars are 95 % Student's t intervals over repetitions."
)


def _of_several(column: str) -> Callable[[Row], float | None]:
    return lambda row: row[column] if (row["flows"] or 0) > 1 else None


MEASURES = (
    PlottedMeasure("Δ", _of_several("delta"), from_zero=True),
    PlottedMeasure("Jain's index", _of_several("jain_index"), most=1, least_span=0.05),
)


def prepare(sweep: Stored) -> Data | None:
    """Both measures of every valid run with several flows."""
    return common.measured(sweep, MEASURES)


def draw(data: Data) -> Figure:
    """Both measures above each other."""
    return common.draw_measures(data)
