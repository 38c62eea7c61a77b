# SPDX-License-Identifier: MIT
"""Finds times that cannot be right: up to RUN neighbours that are later than what follows, or earlier than what came
before. A step of the clock is another thing: after it, all times are others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TypeVar

import numpy as np

Part = TypeVar("Part")
RUN = 16  # neighbours with wrong times, at most; more are a step of the clock
CONTEXT = 2 * RUN + 2  # rows that decide about one
DISORDER_NS = 20_000_000  # neighbours out of order by less are as usual


def wrong(times_ns: np.ndarray, group: np.ndarray | None = None) -> np.ndarray:
    """Mask of the wrong times of rows in their order. `group`: equal for neighbours that have an order."""
    result = np.zeros(len(times_ns), dtype=bool)
    group = np.zeros(len(times_ns), dtype=np.uint8) if group is None else group
    back = np.flatnonzero((times_ns[1:] < times_ns[:-1] - DISORDER_NS) & (group[1:] == group[:-1])) + 1
    if not len(back):
        return result
    step = np.arange(RUN)
    before, behind = back[:, None] - 2 - step, back[:, None] + 1 + step
    late, early = (
        np.where(is_end.any(axis=1), is_end.argmax(axis=1) + 1, RUN + 1)  # so many rows are wrong
        for is_end in (
            _outside(before, group, back) | (times_ns[before.clip(0)] <= times_ns[back][:, None] + DISORDER_NS),
            _outside(behind, group, back)
            | (times_ns[behind.clip(0, len(group) - 1)] >= times_ns[back - 1][:, None] - DISORDER_NS),
        )
    )
    is_late = late <= early
    for number in range(RUN):
        result[back[is_late & (late <= RUN) & (late > number)] - 1 - number] = True
        result[back[~is_late & (early > number)] + number] = True
    return result


def _outside(rows: np.ndarray, group: np.ndarray, back: np.ndarray) -> np.ndarray:
    inside = rows.clip(0, len(group) - 1)
    return (rows != inside) | (group[inside] != group[back][:, None])


def mended(batches: Iterable[np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(records, their times in ns, mask of the wrong ones, which are those of the record before now) of each batch."""
    held: deque[np.ndarray] = deque()
    times, begin = np.empty(0, dtype=np.int64), 0  # of some records before, from `begin` on those that are held
    for batch in with_end(batches):
        if batch is not None:
            held.append(batch)
            times = np.append(times, batch["real_ns"].view(np.int64))
        while held and (batch is None or len(times) - begin - len(held[0]) >= CONTEXT):
            records = held.popleft()
            end, is_wrong = begin + len(records), wrong(times)
            right = np.maximum.accumulate(np.where(is_wrong, 0, np.arange(len(times))))
            right = np.maximum(right, np.argmin(is_wrong))  # the first right one, for those before it
            yield records, times[right[begin:end]], is_wrong[begin:end]
            begin = min(end, CONTEXT)
            times = times[end - begin :]


def with_end(parts: Iterable[Part]) -> Iterator[Part | None]:
    """All parts, and None."""
    yield from parts
    yield None
