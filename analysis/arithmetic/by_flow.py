# SPDX-License-Identifier: MIT
"""Rows grouped by flow, for work on all flows at once: a loop over 500,000 flows would take minutes.

Values of different flows must not be compared with each other. `Axis` gives each flow an interval of its own on one
axis of 64-bit integers, so that sorts, running maxima and searches over all flows give each flow's own results.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

DIGIT_BITS = 16


def order_by_flow(flow: np.ndarray) -> np.ndarray:
    """The rows in the order of their flow numbers, rows of one flow in ascending order.

    NumPy sorts integers of 16 bits by radix, in linear time, but longer integers by comparison.
    """
    order = np.argsort(flow.astype(np.uint16), kind="stable")  # the low digit
    if flow.dtype.itemsize > 2 and len(flow) and int(flow.max()) >> DIGIT_BITS:
        high = (flow >> flow.dtype.type(DIGIT_BITS)).astype(np.uint16)
        order = order[np.argsort(high[order], kind="stable")]
    return order


@dataclass(frozen=True)
class Groups:
    """The rows of a slab by flow. A group is a flow that has rows; rows of one flow keep their order."""

    rows: np.ndarray  # of the slab, sorted by flow
    starts: np.ndarray  # of each group in `rows`
    ends: np.ndarray
    flow: np.ndarray  # flow number of each group

    @classmethod
    def of(cls, flow: np.ndarray) -> Groups:
        """Groups the rows of a slab by its column `flow`."""
        rows = order_by_flow(flow)
        return cls.of_sorted(rows, flow[rows])

    @classmethod
    def of_sorted(cls, rows: np.ndarray, flow: np.ndarray) -> Groups:
        """Groups rows that are sorted by `flow`, the flow of each."""
        starts = np.flatnonzero(np.append(True, flow[1:] != flow[:-1])) if len(flow) else np.empty(0, dtype=np.int64)
        return cls(rows, starts, np.append(starts[1:], len(flow))[: len(starts)], flow[starts])

    @cached_property
    def number(self) -> np.ndarray:
        """The group of each of `rows`."""
        return self.spread(np.arange(len(self.starts)))

    def spread(self, values: np.ndarray) -> np.ndarray:
        """A value of each group, for each of `rows`."""
        return np.repeat(values, self.ends - self.starts)

    def only(self, mask: np.ndarray) -> Groups:
        """Keeps those of `rows` for which `mask` is true."""
        return self.of_sorted(self.rows[mask], self.spread(self.flow)[mask])


@dataclass(frozen=True)
class Axis:
    """One axis for the numbers of all groups: each group has an interval of its own, in the order of the groups.

    An interval extends one beyond the group's lowest and highest number. For unwrapped 32-bit sequence numbers the sum
    of all intervals fits 64 bits: each row adds at most 2^31 to its group's extent, and a table has fewer than 2^32
    rows.
    """

    low: np.ndarray  # of each group
    high: np.ndarray
    offset: np.ndarray

    @classmethod
    def of(cls, low: np.ndarray, high: np.ndarray) -> Axis:
        extent = high - low + 3
        return cls(low, high, np.cumsum(extent) - extent - low + 1)

    def at(self, group: np.ndarray, values: np.ndarray) -> np.ndarray:
        """The place on the axis of each row's value: a value from `low` - 1 to `high` + 1 of the row's group."""
        return values + self.offset[group]

    def clipped(self, group: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Like `at`, but values below `low` count as `low` - 1, and values above `high` as `high` + 1."""
        return self.at(group, np.clip(values, self.low[group] - 1, self.high[group] + 1))
