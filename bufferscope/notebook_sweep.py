# SPDX-License-Identifier: MIT
"""A stored sweep as Python objects: the table of its runs, means with intervals, its figures."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars

from analysis.figures.sweep.registry import FIGURES
from bufferscope.drawn import drawn
from lib.errors import InputError
from runs import run_table, stored_sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class NotebookSweep:
    """`directory` is results/<sweep>. Raises InputError if it is not a sweep."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._stored = stored_sweep.read(directory)

    def __repr__(self) -> str:
        return f"<sweep {self.directory}, {len(self._stored.valid)} of {len(self._stored.rows)} runs valid>"

    @property
    def parameters(self) -> dict[str, list[Any]]:
        """The parameters that the sweep varies, with their values."""
        return self._stored.parameters

    @cached_property
    def runs(self) -> polars.DataFrame:
        """The run table of the sweep's analysed repetitions, as bufferscope.index has it."""
        analysed = [row for row in self._stored.rows if row["verdict"] != stored_sweep.MISSING]
        return polars.DataFrame(analysed, schema=run_table.SCHEMA)

    @cached_property
    def means(self) -> polars.DataFrame:
        """A row for each combination of the parameters: the number of valid repetitions, and for each quantity its mean
        and the ends of the mean's 95 % Student's t interval (null for a single repetition). Utilization and loss are
        shares from 0 to 1.
        """
        from analysis.report.sweep_report import means

        rows = []
        for line in means.of(self._stored):
            row = line.parameters | {"runs": line.runs}
            for name, interval in line.intervals.items():
                value, low, high = interval[:3] if interval else (None, None, None)
                row |= {name: value, f"{name}_low": low, f"{name}_high": high}
            rows.append(row)
        return polars.DataFrame(rows, infer_schema_length=None)

    @property
    def plot(self) -> SweepPlots:
        """The figures of the sweep's page."""
        return SweepPlots(self._stored)


class SweepPlots:
    """A method for each figure of the page: `sweep.plot.queueing_delay()` returns a matplotlib Figure, which a notebook
    shows. Raises InputError for a figure without data in this sweep.
    """

    def __init__(self, stored: stored_sweep.Stored) -> None:
        self._stored = stored

    def __dir__(self) -> list[str]:
        return list(FIGURES)

    def __getattr__(self, name: str) -> Callable[[], Figure]:
        if name not in FIGURES:
            raise AttributeError(f"{name} is not a figure; there are: {', '.join(FIGURES)}")
        return lambda: self._draw(name)

    def _draw(self, name: str) -> Figure:
        data = FIGURES[name].prepare(self._stored) if self._stored.valid else None
        if data is None:
            raise InputError(f"{self._stored.directory}: has no data for {name}")
        return drawn(FIGURES[name].draw, data)
