# SPDX-License-Identifier: MIT
"""The least sufficient buffer, as an interval, from runs with several buffers.

The bisecting search and the figures of its stored runs share this definition of "enough".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from analysis.arithmetic.statistics import Bounds, mean_interval


def verdict(values: Sequence[float | None], least: float) -> bool | None:
    """Whether a buffer is enough, from one value per repetition: True if the interval of their mean lies at or above
    `least`, False if it lies below, None if it contains `least` or no repetition has a value. One repetition has no
    interval; its value decides.
    """
    mean = mean_interval(values)
    if mean is None:
        return None
    low, high = (mean.value if end is None else end for end in (mean.low, mean.high))
    return True if low >= least else False if high < least else None


def bounds(measured: Mapping[int, Sequence[float | None]], least: float, x: float = 1.0) -> Bounds:
    """The interval of the least buffer in packets. `measured` maps each buffer to one value per repetition.

    `low` is the largest buffer up to which no buffer is enough (0 if there is none); `high` is the smallest buffer from
    which every buffer is enough (math.inf if there is none). Undecided buffers and contradictions widen the interval.
    """
    judged = [(buffer, verdict(values, least)) for buffer, values in sorted(measured.items())]
    low, high = 0.0, math.inf
    for buffer, enough in judged:
        if enough is not False:
            break
        low = float(buffer)
    for buffer, enough in reversed(judged):
        if enough is not True:
            break
        high = float(buffer)
    return Bounds(x, low, high)


def contradiction(measured: Mapping[int, Sequence[float | None]], least: float) -> tuple[int, int] | None:
    """(the smallest sufficient buffer, the largest insufficient buffer) if the insufficient buffer is larger: then the
    criterion is not monotone. None otherwise.
    """
    judged = {buffer: verdict(values, least) for buffer, values in measured.items()}
    enough = min((buffer for buffer, is_enough in judged.items() if is_enough is True), default=math.inf)
    too_few = max((buffer for buffer, is_enough in judged.items() if is_enough is False), default=-math.inf)
    return (int(enough), int(too_few)) if enough < too_few else None


def by_buffer(rows: Iterable[Mapping[str, object]], criterion: str) -> dict[int, list[float | None]]:
    """The column `criterion` of run table rows, by buffer in packets: the input of `bounds`."""
    measured: dict[int, list[float | None]] = {}
    for row in rows:
        value = row[criterion]
        measured.setdefault(int(str(row["buffer_packets"])), []).append(value if isinstance(value, float) else None)
    return measured
