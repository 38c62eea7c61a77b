# SPDX-License-Identifier: MIT
"""Numbers of runs as estimates: one interval for each point of an axis, over the repetitions of that point."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from analysis.statistics import Interval, mean_interval

if TYPE_CHECKING:
    from analysis.papers.stored_runs import Run

ALGORITHMS = ("reno", "cubic", "bbr", "bbr2", "scalable")  # the paper's, in its order

NEAR = 0.02  # of a buffer
# Of the run table:
BDP = pl.col("buffer_packets") / pl.col("buffer_over_bdp")  # C x RTT in packets, not rounded
IS_MARKED = pl.col("mode") == "ecn"
THRESHOLD = pl.when(IS_MARKED).then(pl.col("ecn_threshold_packets")).otherwise(pl.col("buffer_packets"))

Series = dict[Any, Interval]


def grouped(runs: Iterable[Run], by: str) -> dict[Any, list[Run]]:
    """The runs of each value of a column, by value."""
    found: dict[Any, list[Run]] = {}
    for run in runs:
        found.setdefault(run[by], []).append(run)
    return dict(sorted(found.items()))


def series(runs: Iterable[Run], by: str, number: str | Callable[[Run], float | None]) -> Series:
    """The mean of a column, or of what `number` makes of a run, over the runs of each value of `by`."""
    of = number if callable(number) else lambda run: run[number]
    estimates = {value: mean_interval(of(run) for run in those) for value, those in grouped(runs, by).items()}
    return {value: found for value, found in estimates.items() if found is not None}


def pooled(runs: Iterable[Run], what: str) -> tuple[np.ndarray, np.ndarray]:
    """(values, how often each occurred) of a distribution over all runs."""
    total: dict[int, int] = {}
    for run in runs:
        for value, count in zip(*run.distribution(what), strict=True):
            total[int(value)] = total.get(int(value), 0) + int(count)
    values = np.array(sorted(total), dtype=np.int64)
    return values, np.array([total[value] for value in values], dtype=np.int64)


def bdp(run: Run) -> float:
    """C x RTT of a run in packets, not rounded."""
    return float(run["buffer_packets"] / run["buffer_over_bdp"])


def is_near(packets: pl.Expr, wanted: pl.Expr) -> pl.Expr:
    """Whether a buffer is the one that is meant: rounding to whole packets, or to cells of a switch, moves it a bit."""
    return (packets - wanted).abs() <= pl.max_horizontal(pl.lit(1.0), NEAR * wanted)


IS_ONE_BDP = is_near(THRESHOLD, BDP)  # where packets are dropped, or marked


def exactly(value: float) -> Interval:
    """What is no mean of repetitions: a number of the runs pooled."""
    return Interval(value, None, None, 1)


def nearest(values: Iterable[float], wanted: float) -> float:
    """That of `values` nearest to `wanted`."""
    return min(values, key=lambda value: abs(value - wanted))
