# SPDX-License-Identifier: MIT
"""One run that figures are drawn from. Figures ask a run for its row of the run table, its spec, values of its summary,
distributions and measures, and nothing else: each answer is noted, so publishing a run stores exactly what its figures
need (published.py). Whole tables are read inside of measures only, because a published run has no tables.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pydantic import TypeAdapter, ValidationError

from analysis import distributions, whole
from lib import parquet, regular
from lib.errors import InputError
from lib.terminal import one_line
from model.experiment import Experiment
from model.record import problems
from runs.names import ENVIRONMENT, SUMMARY

Distribution = tuple[np.ndarray, np.ndarray]  # values, ascending, and how often each occurred
Key = str | float


@dataclass
class Asked:
    """The answers to what figures asked of one run."""

    values: dict[tuple[Key, ...], Any] = field(default_factory=dict)  # by path in the summary, or percentile
    measures: dict[str, Any] = field(default_factory=dict)
    distributions: dict[tuple[str, int | None], Distribution] = field(default_factory=dict)
    needs_tables: bool = False  # a figure reads whole tables outside of a measure


class StoredRun:
    """One repetition: its row of the run table, and answers from its files, as far as they were kept."""

    def __init__(self, row: dict[str, Any], results: Path, asked: Asked | None = None) -> None:
        self.row = row
        self.directory = results / row["run"]
        self.asked = Asked() if asked is None else asked

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

    @property
    def experiment(self) -> Experiment:
        """Raises InputError."""
        return experiment_of(dict(self.summary["spec"]), f"{self.directory / SUMMARY}: spec")

    def value(self, *path: Key) -> Any:
        """The value at this path of the summary. Raises InputError, also if another version wrote the summary."""
        value: Any = self.summary
        for key in path:
            value = value[key]
        self.asked.values[path] = value
        return value

    def measure(self, name: str, kind: Any, compute: Callable[[StoredRun], Any]) -> Any:
        """The value of `compute(self)` as type `kind`, one that JSON can express. `compute` may read tables and the
        whole summary. If it gets another definition, it needs another `name`: published runs have stored values.
        Raises InputError.
        """
        aside = copy.copy(self)
        aside.asked = Asked()
        value = json.loads(json.dumps(compute(aside), default=_listed))  # the same types as from a file
        self.asked.measures[name] = value
        return typed(value, kind, f"{self.directory}: {name}")

    def distribution(self, what: str) -> Distribution:
        """The distribution of all flows together. Raises InputError."""
        counts = self._counted(pl.col("what") == what)
        self.asked.distributions[what, None] = counts
        return counts

    def distributions_of_flows(self, what: str) -> dict[int, Distribution]:
        """The distribution of each traced flow of the experiment, by the flow's id. Raises InputError."""
        flows = self._distributions.filter(pl.col("what") == what)["flow"].drop_nulls().unique().sort()
        by_flow = {flow: self._counted(pl.col("what") == what, pl.col("flow") == flow) for flow in flows}
        self.asked.distributions |= {(what, flow): counts for flow, counts in by_flow.items()}
        return by_flow

    def percentile(self, what: str, percent: float) -> float | None:
        """The least value with at least `percent` of all values at or below it; None if there are none. Raises
        InputError.
        """
        values, counts = self._counted(pl.col("what") == what)
        at = float(values[np.searchsorted(counts.cumsum(), percent / 100 * counts.sum())]) if len(values) else None
        self.asked.values["percentile", what, percent] = at
        return at

    @property
    def congestion_controls(self) -> tuple[str, ...]:
        """The congestion controls of the sender's kernel; none if they are not known. Raises InputError."""
        return tuple(self._document(ENVIRONMENT).get("hosts", {}).get("sender", {}).get("congestion_controls", ()))

    @cached_property
    def summary(self) -> dict[str, Any]:
        """summary.json, for `compute` of a measure. Raises InputError."""
        return self._document(SUMMARY)

    def table(self, name: str) -> pl.DataFrame:
        """The whole table `name`: postcards, tcp, joined or flows. Raises InputError if it is damaged or not kept."""
        self.asked.needs_tables = True
        return self._parquet(f"{name}.parquet")

    def _counted(self, *conditions: pl.Expr) -> Distribution:
        counts = self._distributions.filter(*conditions).group_by("value").agg(pl.col("count").sum()).sort("value")
        return counts["value"].to_numpy(), counts["count"].to_numpy()

    @cached_property
    def _distributions(self) -> pl.DataFrame:
        return self._parquet(distributions.NAME)

    def _parquet(self, name: str) -> pl.DataFrame:
        whole.check(self.directory, derived=[name])
        try:
            return parquet.read(self.directory / name)
        except (OSError, pl.exceptions.PolarsError) as error:
            why = f"of this run only {self.row['kept']} was kept" if self.row["kept"] != "all" else one_line(error)
            raise InputError(f"{self.directory / name}: {why}; run the sweep again") from None

    def _document(self, name: str) -> dict[str, Any]:
        if name == ENVIRONMENT:
            whole.check(self.directory, raw=[name])
        else:
            whole.check(self.directory, derived=[name])
        try:
            path = self.directory / name
            document = json.loads(regular.read_text(path), object_hook=lambda pairs: _StoredObject(pairs, path))
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"{self.directory / name}: {one_line(error)}") from None
        return document if isinstance(document, dict) else _StoredObject({}, path)


def _listed(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be stored as a measure")


def experiment_of(content: Any, what: str) -> Experiment:
    """Raises InputError if another version wrote the spec."""
    try:
        return Experiment.model_validate(content)
    except ValidationError as error:
        raise InputError(f"{what}: {problems(error)}; run the sweep again") from None


def typed(value: Any, kind: Any, what: str) -> Any:
    """Raises InputError if the value of a measure does not have the type `kind`."""
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        problem = error.errors()[0]["msg"]
        raise InputError(f"{what}: {problem}; run the sweep again") from None


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
