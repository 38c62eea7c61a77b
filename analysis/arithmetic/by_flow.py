# SPDX-License-Identifier: MIT
"""Rows grouped by flow, for work on all flows at once: a loop over 500,000 flows would take minutes.

Values of different flows must not be compared with each other. `Axis` gives each flow an interval of its own on one
axis of 64-bit integers, so that sorts, running maxima and searches over all flows give each flow's own results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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
class ByFlow:
    """Rows of a table by flow number. The last number stands for all flows beyond flows.MAX_FLOWS."""

    rows: np.ndarray  # by flow; in ascending order within a flow
    starts: np.ndarray  # flow n has rows[starts[n] : starts[n + 1]]

    @classmethod
    def of(cls, flow: np.ndarray, flows: int) -> ByFlow:
        """Groups the rows of a table by its column `flow`; `flows` is the number of flows of the run."""
        counts = np.bincount(flow, minlength=flows + 1)
        return cls(order_by_flow(flow), np.concatenate(([0], np.cumsum(counts))))

    def __len__(self) -> int:
        """The number of flow numbers."""
        return len(self.starts) - 1

    def __getitem__(self, flow: int) -> np.ndarray:
        """The flow's rows; none for a flow that is not in the run (-1)."""
        if not 0 <= flow < len(self):
            return self.rows[:0]
        return self.rows[self.starts[flow] : self.starts[flow + 1]]

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[flow] for flow in range(len(self)))

    def counts(self) -> np.ndarray:
        """The number of rows of each flow."""
        return np.diff(self.starts)

    def flow(self) -> np.ndarray:
        """The flow number of each of `rows`."""
        return np.repeat(np.arange(len(self)), self.counts())

    def only(self, mask: np.ndarray) -> ByFlow:
        """Keeps the rows for which `mask` is true. `mask` has a value for each row of the table."""
        keep = mask[self.rows]
        return ByFlow(self.rows[keep], np.concatenate(([0], np.cumsum(keep)))[self.starts])

    def batches(self, most_rows: int, most_flows: int) -> Iterator[tuple[int, int]]:
        """(first flow, flow after the last) of batches of whole flows, which together have all rows. A batch has at
        most `most_flows` flows, and at most `most_rows` rows unless it is a single flow.
        """
        first = 0
        while first < len(self):
            fits = int(np.searchsorted(self.starts, self.starts[first] + most_rows, side="right")) - 1
            last = min(max(fits, first + 1), first + most_flows, len(self))
            if self.starts[first] < self.starts[last]:
                yield first, last
            first = last


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
