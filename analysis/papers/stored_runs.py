# SPDX-License-Identifier: MIT
"""The stored runs that figures are drawn from: rows of the run table, and the small tables that lie beside them.

A figure asks for the runs it wants; those that are not valid are never handed out, and both are remembered, so that the
figure can name its runs and say how many it left out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from analysis import distributions, imported, whole
from analysis.papers import imported_runs as theirs
from analysis.papers.look import TELLS_NO
from lib import parquet, regular
from lib.errors import InputError
from runs import run_table
from runs.names import ENVIRONMENT

PREFIX = "spang2021-"  # of the names of its sweeps in results/
REAL, SMOKE = "-real", "-smoke"  # and what their versions' names end with


def sweep_name(stem: str, smoke: bool) -> str:
    """The directory's name of a sweep, experiments/specs/spang2021/<stem>.yaml, or of its short version."""
    return f"{PREFIX}{stem}{SMOKE * smoke}"


class Run:
    """One repetition: its row of the run table, and its files as far as they were kept."""

    def __init__(self, row: dict[str, Any], results: Path) -> None:
        self.row = row
        self.directory = results / row["run"]

    def __getitem__(self, column: str) -> Any:
        return self.row[column]

    @property
    def name(self) -> str:
        """Of the sweep's job: enough to find the run."""
        return str(Path(self.row["run"]).parent.name)

    @property
    def told(self) -> str:
        """What figures and their page call it: <sweep>/<job>."""
        return f"{self['sweep']}/{self.name}"

    @property
    def is_imported(self) -> bool:
        """Somebody else's, of which nobody kept a ledger: drawn, and said so."""
        return (self.row["reasons"] or "").startswith(imported.REASON)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """summary.json. Raises InputError."""
        return self._document("summary.json")

    @cached_property
    def environment(self) -> dict[str, Any]:
        """environment.json. Raises InputError."""
        return self._document("environment.json")

    def table(self, name: str) -> pl.DataFrame:
        """postcards, tcp or joined, whole. Raises InputError if it was not kept."""
        return self._parquet(f"{name}.parquet")

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
        """The least value with at least so many percent of all at or below it; None if there are none. Raises
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
            document = json.loads(regular.read_text(path), object_hook=lambda said: _Said(said, path))
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"{self.directory / name}: {error}") from None
        return document if isinstance(document, dict) else _Said({}, path)


class _Said(dict[str, Any]):
    """A JSON object of a stored run. A key that it lacks, as another version leaves it, is an InputError."""

    def __init__(self, said: dict[str, Any], path: Path) -> None:
        super().__init__(said)
        self.path = path

    def __missing__(self, key: str) -> Any:
        raise InputError(f"{self.path}: has no {key}; make replay writes it anew from raw files")


@dataclass
class Runs:
    """What lies in a results directory. `smoke` takes the short versions of the sweeps instead."""

    results: Path
    smoke: bool = False
    used: dict[str, Run] = field(default_factory=dict)
    left_out: dict[str, tuple[Run, str]] = field(default_factory=dict)  # with the reason

    @cached_property
    def table(self) -> pl.DataFrame:
        """The run table of all sweeps."""
        return run_table.read(self.results)

    def sweep(self, stem: str) -> str:
        """The directory's name of a sweep: experiments/specs/spang2021/<stem>.yaml."""
        return sweep_name(stem, self.smoke)

    @cached_property
    def theirs(self) -> pl.DataFrame:
        """Imported runs that lie in no sweep of ours. Raises InputError."""
        return theirs.of(self.table)

    def select(self, stem: str, *conditions: pl.Expr, needs: tuple[str, ...] = (), **equal: Any) -> list[Run]:
        """The valid runs of a sweep with these values, by flows, buffer and repetition, imported ones that stand for
        such included; those without a number in one of the columns `needs` tell too little, and are left out.
        """
        rows = pl.concat([self.table.filter(pl.col("sweep") == self.sweep(stem)), theirs.stand_for(self.theirs, stem)])
        rows = rows.filter(*conditions, **equal).sort("cc", "flows", "buffer_packets", "mode", "repetition", "run")
        valid = []
        for run in (Run(row, self.results) for row in rows.iter_rows(named=True)):
            lacks = [name for name in needs if run[name] is None]
            if not (run["valid"] or run.is_imported):
                self.left_out[run["run"]] = (run, run["reasons"])
            elif lacks:
                self.left_out[run["run"]] = (run, f"{TELLS_NO} {', '.join(lacks)}")
            else:
                self.used[run["run"]] = run
                valid.append(run)
        return valid

    def controls(self, stem: str) -> frozenset[str]:
        """Every congestion control that the kernels of a sweep's runs have; empty if no run tells."""
        rows = self.table.filter(pl.col("sweep") == self.sweep(stem))
        found: set[str] = set()
        for row in rows.unique(["kernel_digest", "target", "clock"], maintain_order=True).iter_rows(named=True):
            try:
                sender = Run(row, self.results).environment.get("hosts", {}).get("sender", {})
            except InputError:
                continue
            found |= set(sender.get("congestion_controls", ()))
        return frozenset(found)

    def provenance(self) -> dict[str, Any]:
        """What `select` gave so far: used runs, and those left out with the reason, for the figure and its page."""
        used = list(self.used.values())
        return {
            "used": sorted(run.told for run in used),
            "distinct": run_table.distinct(run.row for run in used),
            "left_out": sorted((run.told, why) for run, why in self.left_out.values()),
            "clocks": sorted({run["clock"] for run in used}),
            "imported": sum(run.is_imported for run in used),
            "commits": sorted({(run["commit"] or "unknown")[:10] for run in used}),
        }
