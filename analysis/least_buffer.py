# SPDX-License-Identifier: MIT
"""The least buffer that is enough, as an interval, from runs with several buffers.

What a search by bisection ends with, and what figures draw of its stored runs: both must mean the same by "enough".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from analysis.statistics import Bounds, mean_interval


def verdict(values: Sequence[float | None], least: float) -> bool | None:
    """Whether a buffer is enough by its repetitions' numbers: True if the whole interval of their mean is `least` or
    more, False if it is less, None if the repetitions leave it open or none has a number. One repetition has no
    interval and is judged by its number.
    """
    found = mean_interval(values)
    if found is None:
        return None
    low, high = (found.value if end is None else end for end in (found.low, found.high))
    return True if low >= least else False if high < least else None


def bounds(measured: Mapping[int, Sequence[float | None]], least: float, x: float = 1.0) -> Bounds:
    """The interval that holds the least buffer, of the numbers measured with each (packets -> one a repetition).

    `low` is the largest buffer that is not enough, with none below it that may be; `high` the smallest that is, with
    none above it that may not be. So where repetitions or buffers contradict each other it is wide. 0 and math.inf
    where no buffer was so small or so large.
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
    """(the smallest buffer that is enough, the largest that is not) where that is the larger of both: what is measured
    is then not monotone. None where it is.
    """
    judged = {buffer: verdict(values, least) for buffer, values in measured.items()}
    enough = min((buffer for buffer, one in judged.items() if one is True), default=math.inf)
    too_few = max((buffer for buffer, one in judged.items() if one is False), default=-math.inf)
    return (int(enough), int(too_few)) if enough < too_few else None


def by_buffer(rows: Iterable[Mapping[str, object]], criterion: str) -> dict[int, list[float | None]]:
    """Rows of the run table as `bounds` takes them."""
    found: dict[int, list[float | None]] = {}
    for row in rows:
        value = row[criterion]
        found.setdefault(int(str(row["buffer_packets"])), []).append(value if isinstance(value, float) else None)
    return found
