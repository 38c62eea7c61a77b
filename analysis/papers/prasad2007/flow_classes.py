# SPDX-License-Identifier: MIT
"""S-flows and L-flows: by congestion events, as the paper defines them, and by size.

The S-model is for one size, so S-flows are transfers of about that size with few congestion events. L-flows have any
size. Losses select the L-flows: with a large buffer only few, unlucky transfers are L-flows. The classes by size do not
depend on the buffer. Therefore both kinds of classes are measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import polars as pl

from analysis.figures.common import BLUE, ORANGE
from analysis.papers.prasad2007 import transfers
from analysis.papers.series import Series
from analysis.papers.stored_runs import StoredRun

SMALL = (28 * transfers.PAYLOAD_BYTES, 32 * transfers.PAYLOAD_BYTES)
Pick = Callable[[pl.DataFrame], pl.DataFrame]


class FlowClass(NamedTuple):
    """A class by congestion events, and the class by size that stands beside it."""

    by_events: Pick
    events_text: str
    by_size: Pick
    size_text: str
    shade: str


def small(flows: pl.DataFrame) -> pl.DataFrame:
    """Transfers of about S_SEGMENTS segments (theory/capacity_ratio.py)."""
    return transfers.of_sizes(flows, SMALL)


def large(flows: pl.DataFrame) -> pl.DataFrame:
    return transfers.of_sizes(flows, transfers.LARGE)


CLASSES = {
    "S": FlowClass(
        lambda flows: transfers.s_flows(small(flows)), "28 to 32 packets, at most 4 congestion events", small,
        "28 to 32 packets", BLUE,
    ),
    "L": FlowClass(transfers.l_flows, "5 congestion events or more", large, "above 1 MB", ORANGE),
}  # fmt: skip


class Means(NamedTuple):
    """Mean throughput by class and buffer. `by_events` is None if a run did not count congestion events."""

    by_events: dict[str, Series] | None
    by_size: dict[str, Series]

    @property
    def best_known(self) -> dict[str, Series]:
        """The means by congestion events, as in the paper; if a run did not count events, the means by size."""
        return self.by_size if self.by_events is None else self.by_events


def means(by_buffer: dict[int, list[StoredRun]]) -> Means:
    """Raises InputError."""
    counted = all(transfers.have_events(runs) for runs in by_buffer.values())
    of_events = {
        name: _series(each.events_text, by_buffer, each.by_events) for name, each in CLASSES.items()
    } if counted else None  # fmt: skip
    return Means(of_events, {name: _series(each.size_text, by_buffer, each.by_size) for name, each in CLASSES.items()})


def _series(name: str, by_buffer: dict[int, list[StoredRun]], pick: Pick) -> Series:
    points = {buffer: transfers.mean_bps(name, runs, pick) for buffer, runs in by_buffer.items()}
    return {buffer: point for buffer, point in points.items() if point is not None}
