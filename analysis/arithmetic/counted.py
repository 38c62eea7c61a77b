# SPDX-License-Identifier: MIT
"""Exact percentiles of any number of integers, in memory that depends on their range only."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

DENSE = 1 << 20  # a range of values that is counted without sorting
LEAST_MERGED = 1 << 16
BUCKET_BITS = 12


class Counted:
    """How often each integer occurred: `values` (int64) ascend, values[i] occurred counts[i] times (int64)."""

    def __init__(self) -> None:
        self._values, self._counts = np.zeros((2, 0), dtype=np.int64)
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []  # values and counts that are not among these yet
        self._rows = 0  # of `_waiting`

    @classmethod
    def of(cls, parts: Iterable[np.ndarray]) -> Counted:
        """Of values that come slab by slab."""
        result = cls()
        for values in parts:
            result.add(values)
        return result

    def add(self, values: np.ndarray, counts: np.ndarray | None = None) -> None:
        """Counts more values, each once or so many times (below 2^53 in sum); fast if few of them differ."""
        if not len(values):
            return
        low = int(values.min())
        if int(values.max()) - low < DENSE:
            dense = np.bincount(values.astype(np.int64) - low, counts).astype(np.int64)
            found = np.flatnonzero(dense)
            self.merge(found + low, dense[found])
        elif counts is None:
            self.merge(*np.unique(values.astype(np.int64), return_counts=True))
        else:
            self.merge(values, counts)

    def merge(self, values: np.ndarray, counts: np.ndarray) -> None:
        """Counts values, each so many times."""
        self._waiting.append((values, counts))
        self._rows += len(values)
        if self._rows > max(len(self._values), LEAST_MERGED):  # so each value is sorted a few times, not for each slab
            self._merge()

    def _merge(self) -> None:
        if self._waiting:
            values, counts = zip((self._values, self._counts), *self._waiting, strict=True)
            self._values, where = np.unique(np.concatenate(values), return_inverse=True)
            self._counts = np.zeros(len(self._values), dtype=np.int64)
            np.add.at(self._counts, where, np.concatenate(counts))
            self._waiting, self._rows = [], 0

    @property
    def values(self) -> np.ndarray:
        self._merge()
        return self._values

    @property
    def counts(self) -> np.ndarray:
        self._merge()
        return self._counts

    def __len__(self) -> int:
        """The number of all values."""
        return int(self.counts.sum())

    def at(self, rank: int) -> int:
        """The value of this rank in ascending order, from 0."""
        return int(self.values[np.searchsorted(self.counts.cumsum(), rank, side="right")])

    def percentiles(self, **names: float) -> dict[str, int | None]:
        """By inverted CDF: the smallest value with at least that share at or below it; None without values."""
        count = len(self)
        return {name: self.at(_rank(count, percent)) if count else None for name, percent in names.items()}

    def percentile(self, percent: float) -> float:
        """As np.percentile, which interpolates between neighbours. Not without values."""
        place = (len(self) - 1) * (percent / 100)
        below, share = self.at(int(place)), place - int(place)
        above = self.at(math.ceil(place))
        return above - (above - below) * (1 - share) if share >= 0.5 else below + (above - below) * share

    def mean(self) -> float | None:
        """None without values. Exact but for the division if the sum stays below 2^53."""
        return float((self.values * self.counts).sum()) / len(self) if len(self.values) else None

    @property
    def max(self) -> int | None:
        return int(self.values[-1]) if len(self.values) else None


def percentiles(parts: Callable[[], Iterable[np.ndarray]], percents: Sequence[float]) -> list[int]:
    """The percentiles, as Counted has them, of integers of which most may differ; empty without any. `parts` gives all
    of them, slab by slab, each time that it is called: at first buckets of 2^BUCKET_BITS values are counted, then the
    values of those buckets that have a percentile.
    """
    buckets = Counted()
    for values in parts():
        buckets.add(values >> BUCKET_BITS)
    count = len(buckets)
    if not count:
        return []
    ranks = np.array([_rank(count, percent) for percent in percents])
    before = np.cumsum(buckets.counts) - buckets.counts
    place = np.searchsorted(before, ranks, side="right") - 1
    wanted, which = np.unique(place, return_inverse=True)
    counts = np.zeros((len(wanted), 1 << BUCKET_BITS), dtype=np.int64)
    for values in parts():
        of = np.minimum(np.searchsorted(buckets.values[wanted], values >> BUCKET_BITS), len(wanted) - 1)
        inside = buckets.values[wanted][of] == values >> BUCKET_BITS
        flat = (of[inside] << BUCKET_BITS) + (values[inside] & ((1 << BUCKET_BITS) - 1))
        counts += np.bincount(flat, minlength=counts.size).reshape(counts.shape)
    sums = counts.cumsum(axis=1)
    low = [
        int(np.searchsorted(sums[w], rank - before[p], side="right"))
        for w, rank, p in zip(which, ranks, place, strict=True)
    ]
    return [int(buckets.values[p] << BUCKET_BITS) + bits for p, bits in zip(place, low, strict=True)]


def _rank(count: int, percent: float) -> int:
    """The rank from 0 of a percentile by inverted CDF, as np.percentile computes it."""
    return max(math.ceil(count * (percent / 100) - 1), 0)
