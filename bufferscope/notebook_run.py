# SPDX-License-Identifier: MIT
"""An analysed repetition as Python objects: its summary, its tables, its figures."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars

from analysis import figures
from analysis.read import complete_run
from bufferscope.drawn import drawn
from lib import parquet
from lib.errors import InputError
from lib.terminal import one_line
from model.experiment import Experiment
from runs import record, thinned, verdict
from runs.spec_file import load_spec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from analysis.judge.analyse import Analysis

TABLES = ("joined", "postcards", "tcp")
CALLER = 3  # frames up from here: the line that calls bufferscope.open


class NotebookRun:
    """`directory` is the repetition. The summary is read and checked at once, everything else at its first use."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        try:
            self.summary: dict[str, Any] = verdict.read(directory)
            """summary.json: the results, as analysis/README.md explains them; units are in the keys."""
        except FileNotFoundError:
            raise InputError(f"{directory}: is not analysed; bufferscope replay {directory} does it") from None
        except (OSError, ValueError) as error:
            raise InputError(f"{directory}: {verdict.unread(error)}") from None
        if self.reasons:
            warnings.warn(f"{directory}: NOT VALID: {self.reasons[0]}", stacklevel=CALLER)
        if unknown := record.unrecorded(directory):
            warnings.warn(unknown, stacklevel=CALLER)

    def __repr__(self) -> str:
        return f"<run {self.directory}, {'valid' if self.valid else 'NOT VALID'}>"

    @property
    def valid(self) -> bool:
        """Whether the measurement can be trusted."""
        return not self.reasons

    @property
    def reasons(self) -> list[str]:
        """Why the run is not valid; empty if it is."""
        return verdict.reasons(self.summary)

    @cached_property
    def spec(self) -> dict[str, Any]:
        """spec.yaml, the resolved experiment in SI units: rate_bps, rtt_ns, buffer_packets. Raises InputError."""
        return self.experiment.dump()

    @cached_property
    def experiment(self) -> Experiment:
        """The same as a typed record. Raises InputError."""
        return load_spec(self.directory)

    @cached_property
    def joined(self) -> polars.DataFrame:
        """A row for each TCP packet of the bottleneck queue, with the queue's depth (packets), and the sender's state
        in the flow's latest trace record at or before the packet's arrival. Sorted by arrival (enqueue_mono_ns,
        CLOCK_MONOTONIC ns). Raises InputError.
        """
        return self.table("joined").collect()

    @cached_property
    def postcards(self) -> polars.DataFrame:
        """A row for each postcard (wire/postcard.def), sorted by enqueue_mono_ns, which replaces the switch's time.
        Times are ns. `flow` and `five_tuple` replace addresses and ports. Raises InputError.
        """
        return self.table("postcards").collect()

    @cached_property
    def tcp(self) -> polars.DataFrame:
        """A row for each TCP event of the senders (wire/tcp_record.def), sorted by mono_ns; windows in packets. Raises
        InputError.
        """
        return self.table("tcp").collect()

    def table(self, name: str) -> polars.LazyFrame:
        """One of joined, postcards, tcp, for queries on tables larger than memory. Raises InputError."""
        if name not in TABLES:
            raise InputError(f"{name}: is not a table; allowed: {', '.join(TABLES)}")
        path = self.directory / f"{name}.parquet"
        complete_run.check(self.directory, derived=[path.name])
        if path.name in thinned.removed(self.directory) and not path.exists():
            kept = thinned.kept(self.directory)
            raise InputError(f"{path}: was removed to save room (KEEP={kept}); run the experiment again")
        try:
            with parquet.reading():
                lazy = polars.scan_parquet(path)
                lazy.collect_schema()
        except (OSError, polars.exceptions.PolarsError) as error:
            raise InputError(f"{path}: cannot be read: {one_line(error)}") from None
        return lazy

    @property
    def plot(self) -> Plots:
        """The figures of the report."""
        return Plots(self)

    @cached_property
    def analysis(self) -> Analysis:
        """The repetition analysed in memory, from raw files; nothing is written. Raises InputError."""
        from analysis.judge.analyse import analyse

        complete_run.load_complete(self.directory)
        return analyse(self.directory)


class Plots:
    """A method for each figure of the report: `run.plot.queue_and_windows()` returns a matplotlib Figure, which a
    notebook shows. The first figure analyses the raw files. Raises InputError for damage, and for a figure without data
    in this run.
    """

    def __init__(self, run: NotebookRun) -> None:
        self._run = run

    def __dir__(self) -> list[str]:
        return list(figures.names(self._run.experiment))

    def __getattr__(self, name: str) -> Callable[[], Figure]:
        if name not in figures.NAMES:
            raise AttributeError(f"{name} is not a figure; there are: {', '.join(figures.NAMES)}")
        return lambda: self._draw(name)

    def _draw(self, name: str) -> Figure:
        if name not in dir(self):
            raise InputError(f"{self._run.directory}: has no data for {name}; allowed: {', '.join(dir(self))}")
        module = importlib.import_module(f"analysis.figures.{name}")
        return drawn(module.draw, module.prepare(self._run.analysis))
