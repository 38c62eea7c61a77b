# SPDX-License-Identifier: MIT
"""One run that figures are drawn from. Figures ask a run for its row of the run table, its spec, values of its summary,
distributions and measures, and nothing else: each answer is noted, so publishing a run stores exactly what its figures
need (published.py). Whole tables are read inside of measures only, because a published run has no tables.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl
from pydantic import TypeAdapter, ValidationError

from analysis.read import complete_run
from analysis.results import distributions
from lib import parquet, regular
from lib.errors import InputError
from lib.terminal import one_line
from model.experiment import Experiment
from model.record import problems
from runs.names import ENVIRONMENT, SUMMARY

Distribution = tuple[np.ndarray, np.ndarray]  # values, ascending, and how often each occurred
Key = str | float
T = TypeVar("T")


@dataclass
class Asked:
    """The answers to what figures asked of one run."""

    values: dict[tuple[Key, ...], Any] = field(default_factory=dict)  # by path in the summary, or percentile
    measures: dict[str, Any] = field(default_factory=dict)
    distributions: dict[tuple[str, int | None], Distribution] = field(default_factory=dict)
    needs_tables: bool = False  # a figure reads whole tables outside of a measure


class PaperRun:
    """One repetition: its row of the run table, and answers from its files, as far as they were kept. A published run
    (published.py) has only the answers to what figures asked before: every other question raises InputError.
    """

    def __init__(
        self, row: dict[str, Any], results: Path, asked: Asked | None = None, published: Mapping[str, Any] | None = None
    ) -> None:
        self.row, self.results, self.published = row, results, published
        self.directory = results / row["run"]
        if not published:
            self.asked = Asked() if asked is None else asked

    @cached_property
    def asked(self) -> Asked:
        """The answers of a published run."""
        stored = self.published or {}
        distributions: dict[tuple[str, int | None], Distribution] = {
            (of["what"], of["flow"]): (np.cumsum(of["steps"], dtype=np.int64), np.array(of["counts"], np.int64))
            for of in stored["distributions"]
        }
        values = {tuple(path): value for path, value in json.loads(stored["summary"])}
        return Asked(values, json.loads(stored["measures"]), distributions)

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
    def experiment(self) -> Experiment:
        """Raises InputError, also if another version wrote the spec."""
        if self.published:
            spec, where = json.loads(self.published["spec"]), f"{self.results}: {self.label}"
        else:
            spec, where = dict(self.summary["spec"]), f"{self.directory / SUMMARY}: spec"
        try:
            return Experiment.model_validate(spec)
        except ValidationError as error:
            raise InputError(f"{where}: {problems(error)}; run the sweep again") from None

    def value(self, *path: Key) -> Any:
        """The value at this path of the summary. Raises InputError, also if another version wrote the summary."""

        def found() -> Any:
            value: Any = self.summary
            for key in path:
                value = value[key]
            return value

        return self._ask(self.asked.values, path, ".".join(map(str, path)), found)

    def measure(self, name: str, kind: Any, compute: Callable[[PaperRun], Any]) -> Any:
        """The value of `compute(self)` as type `kind`, one that JSON can express. `compute` may read tables and the
        whole summary. If it gets another definition, it needs another `name`: published runs have stored values.
        Raises InputError.
        """

        def computed() -> Any:
            aside = copy.copy(self)
            aside.asked = Asked()
            return json.loads(json.dumps(compute(aside), default=_listed))  # the same types as from a file

        value = self._ask(self.asked.measures, name, name, computed)
        try:
            return TypeAdapter(kind).validate_python(value)
        except ValidationError as error:
            problem = error.errors()[0]["msg"]
            raise InputError(f"{self.directory}: {name}: {problem}; run the sweep again") from None

    def distribution(self, what: str) -> Distribution:
        """The distribution of all flows together. Raises InputError."""
        return self._ask(self.asked.distributions, (what, None), what, lambda: self._counted(pl.col("what") == what))

    def distributions_of_flows(self, what: str) -> dict[int, Distribution]:
        """The distribution of each traced flow of the experiment, by the flow's id. Raises InputError."""
        known = self.asked.distributions
        if self.published:
            return {flow: counts for (name, flow), counts in known.items() if name == what and flow is not None}
        flows = self._distributions.filter(pl.col("what") == what)["flow"].drop_nulls().unique().sort()
        by_flow = {flow: self._counted(pl.col("what") == what, pl.col("flow") == flow) for flow in flows}
        known |= {(what, flow): counts for flow, counts in by_flow.items()}
        return by_flow

    def percentile(self, what: str, percent: float) -> float | None:
        """The least value with at least `percent` of all values at or below it; None if there are none. Raises
        InputError.
        """

        def at() -> float | None:
            values, counts = self._counted(pl.col("what") == what)
            rank = np.searchsorted(counts.cumsum(), percent / 100 * counts.sum())
            return float(values[rank]) if len(values) else None

        return self._ask(self.asked.values, ("percentile", what, percent), f"percentile of {what}", at)

    def _ask(self, known: dict[Any, T], key: Any, name: str, compute: Callable[[], T]) -> T:
        """The answer to a question, noted in `known`."""
        if not self.published:
            known[key] = compute()
        elif key not in known:
            raise self._lacks(name)
        return known[key]

    def _lacks(self, what: str) -> InputError:
        return InputError(
            f"{self.results}: the published run {self.label} has no {what}: no figure asked for it before; leave "
            "RUNS=published out, and run the sweep again"
        )

    @property
    def congestion_controls(self) -> tuple[str, ...]:
        """The congestion controls of the sender's kernel; none if they are not known. Raises InputError."""
        if self.published:
            return tuple(self.published["congestion_controls"].split())
        return tuple(self._document(ENVIRONMENT).get("hosts", {}).get("sender", {}).get("congestion_controls", ()))

    @cached_property
    def summary(self) -> dict[str, Any]:
        """summary.json, for `compute` of a measure. Raises InputError."""
        return self._document(SUMMARY)

    def table(self, name: str) -> pl.DataFrame:
        """The whole table `name`: postcards, tcp, joined or flows. Raises InputError if it is damaged or not kept."""
        self.asked.needs_tables = True
        return self._parquet(f"{name}.parquet")

    def slabs(self, name: str, *columns: str) -> Iterator[pl.DataFrame]:
        """These columns of the table `name`, a million rows at a time. Raises as `table` does."""
        self.asked.needs_tables = True
        with self._stored(f"{name}.parquet") as path:
            yield from parquet.slabs(path, list(columns))

    def _counted(self, *conditions: pl.Expr) -> Distribution:
        counts = self._distributions.filter(*conditions).group_by("value").agg(pl.col("count").sum()).sort("value")
        return counts["value"].to_numpy(), counts["count"].to_numpy()

    @cached_property
    def _distributions(self) -> pl.DataFrame:
        return self._parquet(distributions.NAME)

    def _parquet(self, name: str) -> pl.DataFrame:
        with self._stored(name) as path:
            return parquet.read(path)

    @contextmanager
    def _stored(self, name: str) -> Iterator[Path]:
        if self.published:
            raise self._lacks(name)
        complete_run.check(self.directory, derived=[name])
        try:
            yield self.directory / name
        except (OSError, pl.exceptions.PolarsError) as error:
            why = f"of this run only {self.row['kept']} was kept" if self.row["kept"] != "all" else one_line(error)
            raise InputError(f"{self.directory / name}: {why}; run the sweep again") from None

    def _document(self, name: str) -> dict[str, Any]:
        if self.published:
            raise self._lacks(name)
        complete_run.check(self.directory, **{"raw" if name == ENVIRONMENT else "derived": [name]})
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
