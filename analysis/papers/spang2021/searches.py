# SPDX-License-Identifier: MIT
"""The least buffer of an algorithm, for each number of flows in a search (Figure 5a and Table 1).

A bisection assumes that more buffer is never worse, and measures few buffers. So the paper's other runs without marking
are judged together with the search's runs, if algorithm, number of flows and link are the same. The result says where
runs contradict each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import polars as pl

from analysis.arithmetic.statistics import Bounds, Interval, mean_interval
from analysis.papers.least_buffer import bounds, by_buffer, contradiction
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.series import IS_MARKED, OF_THE_LINK, grouped
from runs.run_table import drawn_alike

NO_LEAST = "no least buffer"


class StoredSearch(NamedTuple):
    """A sweep that searches for the least buffer with which a column of the run table is at least `enough`."""

    stem: str
    column: str
    enough: float


# 5.1: "99 % of packets (or more) experienced a non-empty queue"
NONEMPTY = StoredSearch("least-buffer", "queue_nonempty_fraction", 0.99)
# In windows of 10 RTTs. BBR paces 1 % below the bandwidth that it measured, so it reaches 99 % only by chance
USED = StoredSearch("least-buffer-utilization", "utilization_p01", 0.98)


class BufferBracket(NamedTuple):
    """The least buffer (packets) by all runs with one algorithm and number of flows."""

    runs: list[PaperRun]
    bounds: Bounds
    contradiction: tuple[int, int] | None  # a smaller buffer that is enough, a larger one that is not
    means: dict[int, float]  # of the search's column, by buffer

    @property
    def is_known(self) -> bool:
        """False if a buffer is enough but a larger one is not, and the largest one tried is not enough or undecided:
        then there is no least buffer.
        """
        return not (self.contradiction and math.isinf(self.bounds.high))

    @property
    def interval(self) -> Interval | None:
        """The bounds as an estimate: their middle, or the known bound if the other is 0 or infinity. None if
        there is no least buffer.
        """
        low, high = self.bounds.low, self.bounds.high
        return Interval(self.bounds.middle, low, high, 1) if self.is_known else None

    @property
    def runs_at_least(self) -> list[PaperRun]:
        """The runs with the smallest buffer from which every buffer is enough. If there is no such buffer: the runs
        with the smallest buffer that is enough if a larger one is not, otherwise the runs with the largest buffer.
        """
        if self.contradiction and not self.is_known:
            buffer = float(self.contradiction[0])
        else:
            buffer = max(self.means) if math.isinf(self.bounds.high) else self.bounds.high
        return [run for run in self.runs if run["buffer_packets"] == buffer]

    @property
    def note(self) -> str:
        """The contradiction, with the means of all buffers involved and of the next smaller buffer; "" without one."""
        if not self.contradiction:
            return ""
        first, last = self.contradiction
        below = max((buffer for buffer in self.means if buffer < first), default=first)
        each = [f"{value:.3g} with {buffer}" for buffer, value in self.means.items() if below <= buffer <= last]
        return f"not monotone: {', '.join(each)} packets"


def least_buffers(runs: PaperRuns, search: StoredSearch, cc: str, **equal: int) -> dict[int, BufferBracket]:
    """The least buffer for each number of flows of the search. `equal` selects among the search's runs by column."""
    needs = (search.column,)
    searched = runs.select(search.stem, needs=needs, cc=cc, **equal)
    if not searched:
        return {}
    link = {name: searched[0][name] for name in OF_THE_LINK}
    flows_searched = pl.col("flows").is_in(sorted({run["flows"] for run in searched}))
    distinct = _distinct(searched)
    for stem in runs.paper.stems:
        distinct = _distinct(runs.select(stem, ~IS_MARKED, flows_searched, needs=needs, cc=cc, **link)) | distinct
    every = [run for same in distinct.values() for run in same]
    return {flows: _judge(group, search) for flows, group in grouped(every, "flows").items()}


def _distinct(runs: Iterable[PaperRun]) -> dict[tuple[Any, ...], list[PaperRun]]:
    """Groups of identical runs: a run that two sweeps did must not count as two repetitions."""
    groups: dict[tuple[Any, ...], list[PaperRun]] = {}
    for run in runs:
        key = run["flows"], run["buffer_packets"], drawn_alike(run.row) or run["run"]
        groups.setdefault(key, []).append(run)
    return groups


def _judge(runs: list[PaperRun], search: StoredSearch) -> BufferBracket:
    measured = by_buffer((run.row for run in runs), search.column)
    means = {buffer: mean_interval(values) for buffer, values in sorted(measured.items())}
    return BufferBracket(
        runs,
        bounds(measured, search.enough, float(runs[0]["flows"])),
        contradiction(measured, search.enough),
        {buffer: mean.value for buffer, mean in means.items() if mean},
    )
