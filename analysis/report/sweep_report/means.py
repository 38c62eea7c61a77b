# SPDX-License-Identifier: MIT
"""The table of means: for each combination of a sweep's parameters, the mean over its valid repetitions of what people
look for first, with its 95 % Student's t interval.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from analysis.arithmetic.statistics import Interval, mean_interval
from analysis.wording import formats
from runs.quantities import INDEX, QUANTITIES, Quantity, value
from runs.stored_sweep import Row, Stored, rank

COLUMNS = tuple(quantity for quantity in QUANTITIES if quantity.mean)


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
            {column.name: mean_interval(value(row, column.name) for row in rows) for column in COLUMNS},
        )
        for values, rows in sorted(groups.items(), key=lambda group: [rank(each) for each in group[0]])
    ]


def text(column: Quantity, interval: Interval | None) -> str:
    """The mean with its interval in parentheses, if it has one."""
    if interval is None:
        return "–"
    digits = 3 if column.unit is INDEX else column.digits
    shown, *ends = (formats.text(column.unit, end, digits) for end in interval[:3])
    is_point = interval.low is None or interval.high is None or interval.low == interval.high
    return shown if is_point else f"{shown} ({ends[0]} to {ends[1]})"
