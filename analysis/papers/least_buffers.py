# SPDX-License-Identifier: MIT
"""The least buffer of an algorithm for each number of flows that a search was made of (Figure 5a and Table 1).

A bisection relies on more buffer being no worse, and measures no more than it must. So every other run with that
algorithm, number of flows and link is judged with the search's own: where they contradict it, the result says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from analysis.least_buffer import bounds, by_buffer, contradiction
from analysis.papers import imported_runs as theirs
from analysis.papers.series import IS_MARKED, grouped
from analysis.statistics import Bounds, Interval, mean_interval
from runs.run_table import drawn_alike

if TYPE_CHECKING:
    from analysis.papers.stored_runs import Run, Runs

NONEMPTY = 0.99  # first paper, 5.1: "99 % of packets (or more) experienced a non-empty queue"
UTILIZATION = 0.98  # in windows of 10 RTTs: BBR paces 1 % below what it measured, so that 99 % would ask for luck
SEARCH, USED = SEARCHES = ("least-buffer", "least-buffer-utilization")
COLUMNS = {SEARCH: "queue_nonempty_fraction", USED: "utilization_p01"}
ENOUGH = {SEARCH: NONEMPTY, USED: UTILIZATION}
NO_LEAST = "no least buffer"


class LeastBuffer(NamedTuple):
    """What all runs with one algorithm and number of flows say of the least buffer (packets)."""

    runs: list[Run]
    bounds: Bounds
    contradiction: tuple[int, int] | None  # a smaller buffer that is enough, a larger that is not
    means: dict[int, float]  # of the criterion's number, by buffer

    @property
    def is_known(self) -> bool:
        """False where a buffer is enough, but the largest that was tried is not: then there is no least one."""
        return not (self.contradiction and math.isinf(self.bounds.high))

    @property
    def interval(self) -> Interval | None:
        """The bounds as an estimate: their middle, or the one that is known, with 0 or infinity for the other."""
        low, high = self.bounds.low, self.bounds.high
        return Interval(self.bounds.middle, low, high, 1) if self.is_known else None

    @property
    def runs_at_least(self) -> list[Run]:
        """Those with the smallest buffer that is enough; with the largest that was tried if none is."""
        if self.contradiction and not self.is_known:
            buffer = float(self.contradiction[0])
        else:
            buffer = max(self.means) if math.isinf(self.bounds.high) else self.bounds.high
        return [run for run in self.runs if run["buffer_packets"] == buffer]

    @property
    def note(self) -> str:
        """The numbers that contradict each other, with the one below; "" if none do."""
        if not self.contradiction:
            return ""
        first, last = self.contradiction
        below = max((buffer for buffer in self.means if buffer < first), default=first)
        each = [f"{value:.3g} with {buffer}" for buffer, value in self.means.items() if below <= buffer <= last]
        return f"not monotone: {', '.join(each)} packets"


def least_buffers(runs: Runs, stem: str, cc: str, **equal: int) -> dict[int, LeastBuffer]:
    """By number of flows; of those that the search (one of SEARCHES) has runs of, with `equal` values."""
    column = COLUMNS[stem]
    search = runs.select(stem, needs=(column,), cc=cc, **equal)
    if not search:
        return {}
    same = {name: search[0][name] for name in theirs.OF_THE_LINK}
    searched = pl.col("flows").is_in(sorted({run["flows"] for run in search}))
    found = _by_what(search)
    for other in sorted(path.stem for path in theirs.SPECS.glob("*.yaml")):
        found = _by_what(runs.select(other, ~IS_MARKED, searched, needs=(column,), cc=cc, **same)) | found
    every = [run for those in found.values() for run in those]
    return {flows: _judge(those, stem) for flows, those in grouped(every, "flows").items()}


def _by_what(runs: Iterable[Run]) -> dict[tuple[Any, ...], list[Run]]:
    """By what makes runs of two sweeps one run that was done twice, which must not count as two repetitions."""
    found: dict[tuple[Any, ...], list[Run]] = {}
    for run in runs:
        what = run["flows"], run["buffer_packets"], drawn_alike(run.row) or run["run"]
        found.setdefault(what, []).append(run)
    return found


def _judge(runs: list[Run], stem: str) -> LeastBuffer:
    measured, enough = by_buffer((run.row for run in runs), COLUMNS[stem]), ENOUGH[stem]
    means = {buffer: mean_interval(values) for buffer, values in sorted(measured.items())}
    return LeastBuffer(
        runs,
        bounds(measured, enough, float(runs[0]["flows"])),
        contradiction(measured, enough),
        {buffer: found.value for buffer, found in means.items() if found},
    )
