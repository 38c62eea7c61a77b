# SPDX-License-Identifier: MIT
"""The table of means: for each combination of a sweep's parameters, the mean over its valid repetitions of what people
look for first, with its 95 % Student's t interval.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from analysis.amounts import number, percent, si
from analysis.statistics import Interval, mean_interval
from runs.stored_sweep import Row, Stored


class MeanColumn(NamedTuple):
    """A number of the table. `name` has the number's unit; `title` and `show` are for people."""

    name: str
    title: str
    of: Callable[[Row], float | None]
    show: Callable[[float], str]


def _column(name: str, title: str, show: Callable[[float], str]) -> MeanColumn:
    return MeanColumn(name, title, lambda row: row[name], show)


def _loss(row: Row) -> float | None:
    return row["drops"] / row["arrivals"] if row["arrivals"] and row["drops"] is not None else None


COLUMNS = (
    _column("utilization_mean", "utilization", percent),
    _column("utilization_p01", "p1 of utilization", percent),
    _column("queue_delay_p50_ns", "delay p50", lambda ns: si(ns / 1e9, "s")),
    _column("queue_delay_p99_ns", "delay p99", lambda ns: si(ns / 1e9, "s")),
    MeanColumn("loss", "loss", _loss, lambda share: percent(share, 3)),
    _column("jain_index", "Jain", lambda value: number(value, 3)),
)


class Means(NamedTuple):
    """The means of one combination of parameters. `row` is one of the repetitions. `intervals` are None for numbers
    that no repetition has.
    """

    parameters: dict[str, Any]
    row: Row
    runs: int
    intervals: dict[str, Interval | None]


def of(sweep: Stored) -> list[Means]:
    """The means of all combinations with a valid run, in the order of their parameters."""
    keys = list(sweep.parameters) or ["buf"]
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in sweep.valid:
        groups.setdefault(tuple(sweep.value(row, key) for key in keys), []).append(row)
    return [
        Means(
            dict(zip(keys, values, strict=True)),
            rows[0],
            len(rows),
            {column.name: mean_interval(column.of(row) for row in rows) for column in COLUMNS},
        )
        for values, rows in sorted(groups.items(), key=lambda group: [_rank(value) for value in group[0]])
    ]


def text(column: MeanColumn, interval: Interval | None) -> str:
    """The mean with its interval in parentheses, if it has one."""
    if interval is None:
        return "–"
    shown = column.show(interval.value)
    if interval.low is None or interval.high is None or interval.low == interval.high:
        return shown
    return f"{shown} ({column.show(interval.low)} to {column.show(interval.high)})"


def _rank(value: Any) -> tuple[bool, Any]:
    return (isinstance(value, str), value) if value is not None else (True, "")
