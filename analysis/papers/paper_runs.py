# SPDX-License-Identifier: MIT
"""The runs of a paper that figures are drawn from: those of a results directory, and published runs.

A figure selects the runs that it draws, and gets only valid or imported runs. The selected runs and those left out are
recorded, so that the figure can name its runs and say how many it left out.

Figures ask for runs by sweep, but imported runs name no sweep. An imported run therefore belongs to every sweep whose
conditions it meets: number of flows, buffer, and marking or not, as far as all runs of the sweep share them. The other
parameters may have any value: figures themselves choose among their values, and among algorithms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from analysis.figures import algorithms
from analysis.papers import published
from analysis.papers.paper import NS3, REAL, Paper
from analysis.papers.paper_run import Asked, PaperRun
from analysis.papers.published import PublishedRuns
from analysis.papers.series import BDP, IS_MARKED, OF_THE_LINK, is_near
from lib.errors import InputError
from lib.units import Quantity
from runs import run_table

NOT_VALID = "not valid"
LACKS_NUMBERS = "lacking numbers"  # the run may be valid, but lacks a number that the figure needs
EARLIER = "of an earlier spec"
KINDS = (NOT_VALID, LACKS_NUMBERS, EARLIER)
OUTSIDE_SWEEPS = r"^(runs/[^/]+/)?rep-[0-9]+$"  # directly in the results directory, where `make import` puts runs


class LeftOut(NamedTuple):
    """A run that was not drawn. `kind` is one of KINDS."""

    label: str
    reason: str
    kind: str


def kinds(left_out: Iterable[LeftOut]) -> str:
    """Why runs were left out, in a few words: "not valid or lacking numbers"."""
    present = {run.kind for run in left_out}
    return " or ".join(kind for kind in KINDS if kind in present)


class SweepConditions(NamedTuple):
    """Parameters that all runs of a sweep share; None: the sweep varies the parameter, or searches for it."""

    flows: int | None
    is_marked: bool | None
    buffer: Quantity | None  # packets or BDPs


@dataclass
class PaperRuns:
    """The runs of a paper in a results directory, and published runs that the directory does not have. `smoke` takes
    the short versions of the sweeps instead. `conditions` has the conditions of each sweep, by stem; only these assign
    imported runs to sweeps.
    """

    paper: Paper
    results: Path
    smoke: bool = False
    conditions: Mapping[str, SweepConditions] = field(default_factory=dict)
    beside: Any = None  # published numbers, as the paper's `read_beside` returns them
    published: PublishedRuns | None = None
    suffix: str = ""  # end of the sweeps' names in another set of runs
    used: dict[str, PaperRun] = field(default_factory=dict)
    left_out: dict[str, LeftOut] = field(default_factory=dict)
    asked: dict[str, Asked] = field(default_factory=dict)  # what all figures so far asked, by `run`
    _points: dict[str, frozenset[str] | None] = field(default_factory=dict)

    @cached_property
    def table(self) -> pl.DataFrame:
        """The run table of all sweeps."""
        table = run_table.read(self.results)
        return table if self.published is None else run_table.with_more(table, self.published.table)

    def run(self, row: dict[str, Any]) -> PaperRun:
        """The run of a row of `table`."""
        if self.published is not None and row["kept"] == published.KEPT:
            return self.published.run(row)
        return PaperRun(row, self.results, self.asked.setdefault(row["run"], Asked()))

    @cached_property
    def imported(self) -> pl.DataFrame:
        """The rows of imported runs that lie directly in the results directory. Raises InputError if their links
        differ: no figure tells links apart.
        """
        rows = self.table.filter(pl.col("run").str.contains(OUTSIDE_SWEEPS), pl.col("imported"))
        for name in OF_THE_LINK:
            if rows[name].n_unique() > 1:
                values = ", ".join(map(str, rows[name].unique().sort().to_list()[:4]))
                raise InputError(
                    f"imported runs differ in {name}: {values}; allowed: one link; "
                    "import the runs of each link into a results directory of their own"
                )
        return rows

    def unselected(self, **changed: Any) -> PaperRuns:
        """A copy without selected runs, for the next figure. The run table is not read again."""
        runs = replace(self, used={}, left_out={}, **changed)
        runs.table = self.table
        return runs

    def second_set(self) -> PaperRuns | None:
        """The paper's second set of runs, none of them selected yet. None if no run of a second set is stored, or if
        these runs are another set themselves.
        """
        return self._another_set(self.paper.second.suffix) if self.paper.second else None

    def ns3_set(self) -> PaperRuns | None:
        """The same for the runs of the sweeps in ns-3."""
        return self._another_set(NS3)

    def _another_set(self, suffix: str) -> PaperRuns | None:
        names = [self.paper.sweep_name(stem, self.smoke, suffix) for stem in self.paper.stems]
        if self.suffix or not self.table["sweep"].is_in(names).any():
            return None
        return self.unselected(suffix=suffix, conditions={})

    def of_sets(self, *suffixes: str) -> pl.DataFrame:
        """The rows of this paper's sweeps, or of their short versions, in these sets ("": the first set). A sweep with
        a changed parameter (a name such as spang2021-ecn-rtt-5ms) is not the paper's, and no figure is drawn from it.
        """
        stems = [stem + clock for stem in self.paper.stems for clock in ("", REAL)]
        names = [self.paper.sweep_name(stem, self.smoke, suffix) for stem in stems for suffix in suffixes]
        return self.table.filter(pl.col("sweep").is_in(names))

    def listed(self) -> pl.DataFrame:
        """The rows of the paper's first set, and imported runs. Raises InputError."""
        return pl.concat([self.of_sets(""), self.imported])

    def select(self, stem: str, *conditions: pl.Expr, needs: tuple[str, ...] = (), **equal: Any) -> list[PaperRun]:
        """The valid runs of a sweep, and the imported runs that belong to the sweep, with these values; sorted by
        algorithm, flows, buffer, mode and repetition. Runs without a number in one of the columns `needs`, and runs
        of an earlier spec, are left out.
        """
        rows = pl.concat([self._of_sweep(stem), _meeting(self.imported, self.conditions.get(stem))])
        rows = rows.filter(*conditions, **equal).sort("cc", "flows", "buffer_packets", "mode", "repetition", "run")
        selected = []
        for run in map(self.run, rows.iter_rows(named=True)):
            lacking = [name for name in needs if run[name] is None]
            if self.is_of_earlier_spec(run.row):
                self.left_out[run["run"]] = LeftOut(run.label, "is of an earlier spec of this sweep", EARLIER)
            elif not (run["valid"] or run["imported"]):
                self.left_out[run["run"]] = LeftOut(run.label, run["reasons"], NOT_VALID)
            elif lacking:
                self.left_out[run["run"]] = LeftOut(run.label, f"has no {', '.join(lacking)}", LACKS_NUMBERS)
            else:
                self.used[run["run"]] = run
                selected.append(run)
        return selected

    def without_result(self) -> dict[str, int]:
        """The number of planned points without any result, by sweep name, for sweeps that have a readable plan, a
        result, and a point without one. A run that was ended before its analysis has no row in the run table.
        """
        lacking = {}
        for stem in self.paper.stems:
            name = self.paper.sweep_name(stem, self.smoke, self.suffix)
            points = self.table.filter(pl.col("sweep") == name)["point"]
            if len(points) and (number := len((self._planned_points(name) or frozenset()) - set(points))):
                lacking[name] = number
        return lacking

    def by_algorithm(
        self,
        stem: str,
        curve: Callable[[list[PaperRun]], dict[str, Any]],
        *conditions: pl.Expr,
        ccs: Iterable[str] | None = None,
        **selection: Any,
    ) -> dict[str, dict[str, Any]]:
        """`curve` of the selected runs of each algorithm (default: the paper's), or {"absent": why there are none}."""
        curves = {}
        for cc in self.paper.algorithms if ccs is None else ccs:
            selected = self.select(stem, *conditions, cc=cc, **selection)
            curves[cc] = curve(selected) if selected else {"absent": self.absence(stem, cc)}
        return curves

    def is_of_earlier_spec(self, row: dict[str, Any]) -> bool:
        """Whether the present plan of a run's sweep lacks its point. An imported run may be of no sweep."""
        if row["imported"]:
            return False
        planned = self._planned_points(row["sweep"])
        return planned is not None and row["point"] not in planned

    def _planned_points(self, sweep: str) -> frozenset[str] | None:
        if sweep not in self._points:
            self._points[sweep] = run_table.planned_points(self.results / sweep)
        return self._points[sweep]

    def _of_sweep(self, stem: str) -> pl.DataFrame:
        return self.table.filter(pl.col("sweep") == self.paper.sweep_name(stem, self.smoke, self.suffix))

    def controls(self, stem: str) -> frozenset[str]:
        """Every congestion control of the kernels of a sweep's runs; empty if no run lists them."""
        known: set[str] = set()
        kernels = self._of_sweep(stem).unique(["kernel_digest", "target", "clock"], maintain_order=True)
        for row in kernels.iter_rows(named=True):
            try:
                known |= set(self.run(row).congestion_controls)
            except InputError:
                continue
        return frozenset(known)

    def absence(self, stem: str, cc: str) -> str:
        """The reason why an algorithm has no data: no kernel has it, no imported run meets the sweep's conditions, or
        no run is valid.
        """
        controls, name = self.controls(stem), algorithms.name(cc)
        if controls and cc not in controls:
            return f"{name}: not measured,\nno kernel at hand has it"
        if len(self.imported):
            return f"{name}:\nno imported run\nunder such conditions"
        return f"{name}: no valid run"

    def provenance(self) -> dict[str, Any]:
        """The runs used so far, and the runs left out with the reason, for the figure and its page."""
        used = list(self.used.values())
        return {
            "used": sorted(run.label for run in used),
            "distinct": run_table.distinct(run.row for run in used),
            "left_out": sorted(self.left_out.values()),
            "clocks": sorted({run["clock"] for run in used}),
            "imported": sum(run["imported"] for run in used),
            "commits": sorted({(run["commit"] or "unknown")[:10] for run in used}),
        }


def _meeting(rows: pl.DataFrame, conditions: SweepConditions | None) -> pl.DataFrame:
    """The rows that meet a sweep's conditions. None of them if `conditions` is None, as for a version in real time."""
    if conditions is None:
        return rows.clear()
    flows, is_marked, buffer = conditions
    wanted = []
    if flows is not None:
        wanted.append(pl.col("flows") == flows)
    if is_marked is not None:
        wanted.append(IS_MARKED if is_marked else ~IS_MARKED)
    if buffer is not None:
        packets = float(buffer.amount) * (BDP if buffer.dimension == "bdp" else pl.lit(1.0))
        wanted.append(is_near(pl.col("buffer_packets"), packets))
    return rows.filter(*wanted)
