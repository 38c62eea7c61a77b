# SPDX-License-Identifier: MIT
"""The stored runs that figures are drawn from: rows of the run table, and the files of each run.

A figure selects the runs that it draws, and gets only valid or imported runs. The selected runs and those left out are
recorded, so that the figure can name its runs and say how many it left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from analysis import distributions, whole
from analysis.figures import algorithms
from analysis.papers import imported_runs, measures
from analysis.papers.imported_runs import SweepConditions
from analysis.papers.paper import NS3, Paper
from lib import parquet, regular
from lib.errors import InputError
from runs import run_table
from runs.names import ENVIRONMENT


class StoredRun:
    """One repetition: its row of the run table, and its files, as far as they were kept."""

    def __init__(self, row: dict[str, Any], results: Path) -> None:
        self.row = row
        self.directory = results / row["run"]

    def __getitem__(self, column: str) -> Any:
        return self.row[column]

    @property
    def name(self) -> str:
        """The name of the job, unique in its sweep."""
        return str(Path(self.row["run"]).parent.name)

    @property
    def label(self) -> str:
        """The run's name in figures and on their page: <sweep>/<job>."""
        return f"{self['sweep']}/{self.name}"

    @cached_property
    def summary(self) -> dict[str, Any]:
        """summary.json. Raises InputError."""
        return self._document("summary.json")

    @cached_property
    def environment(self) -> dict[str, Any]:
        """environment.json. Raises InputError."""
        return self._document("environment.json")

    def table(self, name: str) -> pl.DataFrame:
        """The whole table `name`: postcards, tcp, joined or flows. Raises InputError if it is damaged or not kept."""
        return self._parquet(f"{name}.parquet")

    def measure(self, name: str, kind: Any, compute: Callable[[StoredRun], Any]) -> Any:
        """The value of `compute(self)`, which reads tables, as type `kind`. For a run that kept only its summary, as a
        published run does, the stored value (measures.py). Raises InputError.
        """
        return measures.measure(self.directory, name, kind, lambda: compute(self))

    def distribution(self, what: str, flow: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """(values, how often each occurred), by value; of one flow, or of all together. Raises InputError."""
        rows = self._distributions.filter(pl.col("what") == what)
        if flow is not None:
            rows = rows.filter(pl.col("flow") == flow)
        counts = rows.group_by("value").agg(pl.col("count").sum()).sort("value")
        return counts["value"].to_numpy(), counts["count"].to_numpy()

    @cached_property
    def _distributions(self) -> pl.DataFrame:
        return self._parquet(distributions.NAME)

    def percentile(self, what: str, percent: float) -> float | None:
        """The least value with at least `percent` of all values at or below it; None if there are none. Raises
        InputError.
        """
        values, counts = self.distribution(what)
        if not len(values):
            return None
        return float(values[np.searchsorted(counts.cumsum(), percent / 100 * counts.sum())])

    def flow_ids(self) -> list[int]:
        """The experiment's flows whose windows were traced."""
        rows = self._distributions.filter(pl.col("what") == "in_flight_packets")
        return rows["flow"].drop_nulls().unique().sort().to_list()

    def _parquet(self, name: str) -> pl.DataFrame:
        whole.check(self.directory, derived=[name])
        try:
            return parquet.read(self.directory / name)
        except (OSError, pl.exceptions.PolarsError) as error:
            why = f"of this run only {self.row['kept']} was kept" if self.row["kept"] != "all" else str(error)
            raise InputError(f"{self.directory / name}: {why.splitlines()[0]}; run the sweep again") from None

    def _document(self, name: str) -> dict[str, Any]:
        if name == ENVIRONMENT:
            whole.check(self.directory, raw=[name])
        else:
            whole.check(self.directory, derived=[name])
        try:
            path = self.directory / name
            document = json.loads(regular.read_text(path), object_hook=lambda pairs: _StoredObject(pairs, path))
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"{self.directory / name}: {error}") from None
        return document if isinstance(document, dict) else _StoredObject({}, path)


class _StoredObject(dict[str, Any]):
    """A JSON object of a stored run. A missing key (another version wrote the file) is an InputError."""

    def __init__(self, pairs: dict[str, Any], path: Path) -> None:
        super().__init__(pairs)
        self.path = path

    def __missing__(self, key: str) -> Any:
        raise InputError(
            f"{self.path}: has no {key}: another version wrote it; make replay if the raw files were kept, else run "
            "the sweep again"
        )


NOT_VALID = "not valid"
LACKS_NUMBERS = "lacking numbers"  # the run may be valid, but lacks a number that the figure needs
EARLIER = "of an earlier spec"
KINDS = (NOT_VALID, LACKS_NUMBERS, EARLIER)


class LeftOut(NamedTuple):
    """A run that was not drawn. `kind` is one of KINDS."""

    label: str
    reason: str
    kind: str


def kinds(left_out: Iterable[LeftOut]) -> str:
    """Why runs were left out, in a few words: "not valid or lacking numbers"."""
    present = {run.kind for run in left_out}
    return " or ".join(kind for kind in KINDS if kind in present)


@dataclass
class StoredRuns:
    """The runs of a paper in a results directory. `smoke` takes the short versions of the sweeps instead. `conditions`
    has the conditions of each sweep, by stem; only these assign imported runs to sweeps.
    """

    paper: Paper
    results: Path
    smoke: bool = False
    conditions: Mapping[str, SweepConditions] = field(default_factory=dict)
    beside: Any = None  # published numbers, as the paper's `read_beside` returns them
    suffix: str = ""  # end of the sweeps' names in another set of runs
    used: dict[str, StoredRun] = field(default_factory=dict)
    left_out: dict[str, LeftOut] = field(default_factory=dict)
    _points: dict[str, frozenset[str] | None] = field(default_factory=dict)

    @cached_property
    def table(self) -> pl.DataFrame:
        """The run table of all sweeps."""
        return run_table.read(self.results)

    @cached_property
    def imported(self) -> pl.DataFrame:
        """Imported runs that lie in no sweep. Raises InputError."""
        return imported_runs.outside_sweeps(self.table)

    def unselected(self) -> StoredRuns:
        """A copy without selected runs, for the next figure. The run table is not read again."""
        runs = replace(self, used={}, left_out={})
        runs.table = self.table
        return runs

    def second_set(self) -> StoredRuns | None:
        """The paper's second set of runs, none of them selected yet. None if no run of a second set is stored, or if
        these runs are another set themselves.
        """
        second = self.paper.second
        if second is None or self.suffix or not self.table["sweep"].str.contains(second.suffix, literal=True).any():
            return None
        runs = replace(self, suffix=second.suffix, conditions={}, used={}, left_out={})
        runs.table = self.table
        return runs

    def ns3_set(self) -> StoredRuns | None:
        """The runs of the sweeps in ns-3, none of them selected yet. None if no such run is stored, or if these runs
        are another set themselves.
        """
        names = [self.paper.sweep_name(stem, self.smoke, NS3) for stem in self.paper.stems]
        if self.suffix or not self.table["sweep"].is_in(names).any():
            return None
        runs = replace(self, suffix=NS3, conditions={}, used={}, left_out={})
        runs.table = self.table
        return runs

    def select(self, stem: str, *conditions: pl.Expr, needs: tuple[str, ...] = (), **equal: Any) -> list[StoredRun]:
        """The valid runs of a sweep, and the imported runs that belong to the sweep, with these values; sorted by
        algorithm, flows, buffer, mode and repetition. Runs without a number in one of the columns `needs`, and runs
        of an earlier spec, are left out.
        """
        rows = pl.concat([self._of_sweep(stem), imported_runs.meeting(self.imported, self.conditions.get(stem))])
        rows = rows.filter(*conditions, **equal).sort("cc", "flows", "buffer_packets", "mode", "repetition", "run")
        selected = []
        for run in (StoredRun(row, self.results) for row in rows.iter_rows(named=True)):
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
        curve: Callable[[list[StoredRun]], dict[str, Any]],
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
        """Whether the present plan of a run's sweep lacks its point."""
        planned = self._planned_points(row["sweep"])
        return not row["imported"] and planned is not None and row["point"] not in planned

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
                sender = StoredRun(row, self.results).environment.get("hosts", {}).get("sender", {})
            except InputError:
                continue
            known |= set(sender.get("congestion_controls", ()))
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
