# SPDX-License-Identifier: MIT
"""Numbers of runs as estimates: one interval for each point of an axis, over the repetitions of that point; and
expressions over the run table by which figures select runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import polars as pl

from analysis.arithmetic.statistics import Interval, mean_interval
from analysis.papers.paper_run import PaperRun
from controlplane.policy import MARKING_MODES

NEAR = 0.02  # largest relative difference between buffers that count as equal
BDP = pl.col("buffer_packets") / pl.col("buffer_over_bdp")  # C x RTT in packets, not rounded
IS_MARKED = pl.col("mode").is_in(MARKING_MODES)
THRESHOLD = pl.when(pl.col("mode") == "ecn").then(pl.col("ecn_threshold_packets")).otherwise(pl.col("buffer_packets"))
OF_THE_LINK = ("rate_bps", "rtt_ns", "mtu_bytes")


def is_near(packets: pl.Expr, wanted: pl.Expr) -> pl.Expr:
    """Whether a buffer is `wanted` packets, to within NEAR or one packet: a buffer is rounded to whole packets, or to a
    switch's cells.
    """
    return (packets - wanted).abs() <= pl.max_horizontal(pl.lit(1.0), NEAR * wanted)


IS_ONE_BDP = is_near(THRESHOLD, BDP)  # packets are dropped or marked from one BDP on

Series = dict[Any, Interval]
Of = str | Callable[[PaperRun], Any]  # a column, or a function of a run


def value_of(run: PaperRun, of: Of) -> Any:
    """The column of a run, or the function's value."""
    return of(run) if callable(of) else run[of]


def grouped(runs: Iterable[PaperRun], by: Of) -> dict[Any, list[PaperRun]]:
    """The runs of each value of `by`, by value."""
    groups: dict[Any, list[PaperRun]] = {}
    for run in runs:
        groups.setdefault(value_of(run, by), []).append(run)
    return dict(sorted(groups.items()))


def series(runs: Iterable[PaperRun], by: Of, number: Of) -> Series:
    """The mean of `number` over the runs of each value of `by`; values without a number are left out."""
    estimates = {at: mean_interval(value_of(run, number) for run in group) for at, group in grouped(runs, by).items()}
    return {at: estimate for at, estimate in estimates.items() if estimate is not None}


def differences(runs: Iterable[PaperRun], of: Of, minuend: Any, subtrahend: Any, by: str, number: str) -> Series:
    """The column `number` of runs whose `of` is `minuend`, minus that of runs whose `of` is `subtrahend`, by the column
    `by`: the mean over repetitions. Runs of the same repetition are paired.
    """
    values = {(value_of(run, of), run[by], run["repetition"]): run[number] for run in runs if run[number] is not None}
    pairs: dict[Any, list[float]] = {}
    for (group, place, repetition), value in values.items():
        if group == minuend and (subtrahend, place, repetition) in values:
            pairs.setdefault(place, []).append(value - values[subtrahend, place, repetition])
    estimates = {place: mean_interval(each) for place, each in sorted(pairs.items())}
    return {place: estimate for place, estimate in estimates.items() if estimate is not None}


def pooled(runs: Iterable[PaperRun], what: str) -> tuple[np.ndarray, np.ndarray]:
    """(values, how often each occurred) of a distribution over all runs."""
    total: dict[int, int] = {}
    for run in runs:
        for value, count in zip(*run.distribution(what), strict=True):
            total[int(value)] = total.get(int(value), 0) + int(count)
    values = np.array(sorted(total), dtype=np.int64)
    return values, np.array([total[value] for value in values], dtype=np.int64)


def loss(run: PaperRun) -> float | None:
    """Dropped share of all packets that arrived at the queue."""
    return run["drops"] / run["arrivals"] if run["arrivals"] else None


def mean_window(run: PaperRun) -> float | None:
    """Mean packets in flight of a flow, over time and flows."""
    total = run["in_flight_mean_packets"]
    return None if total is None else total / run["flows"]


def bdp(run: PaperRun) -> float:
    """C x RTT of a run in packets, not rounded."""
    return float(run["buffer_packets"] / run["buffer_over_bdp"])


def mean_rtt_ns(run: PaperRun) -> float:
    """The mean of the spread RTTs. Raises InputError."""
    return float(run.experiment.rtt_ns + (run.experiment.rtt_spread_ns or 0) / 2)


def mean_bdp(run: PaperRun) -> float:
    """Packets in flight on the idle path, not rounded, with the mean RTT. Raises InputError."""
    return float(run.experiment.rate_bps * mean_rtt_ns(run) / 8e9 / run.experiment.wire_bytes)


def nearest(values: Iterable[float], wanted: float) -> float:
    """The value nearest to `wanted`."""
    return min(values, key=lambda value: abs(value - wanted))
