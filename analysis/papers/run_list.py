# SPDX-License-Identifier: MIT
"""The runs of a paper's figures as a table: the run table's columns, and which figures were drawn from each run.
A figure with many runs gives only their number; this table names each run.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from analysis.papers.paper import NS3, REAL
from analysis.papers.published import FIGURES, SEPARATOR
from analysis.papers.stored_runs import StoredRun, StoredRuns


def rows(runs: StoredRuns) -> pl.DataFrame:
    """The runs of this paper's sweeps, or of their short versions, and imported runs. A sweep with a changed parameter
    (a name such as spang2021-ecn-rtt-5ms) is not the paper's, and no figure is drawn from it. Raises InputError.
    """
    return pl.concat([_of_sets(runs, ""), runs.imported])


def of_ns3(runs: StoredRuns) -> pl.DataFrame:
    """The runs of this paper's sweeps that ns-3 simulated."""
    return _of_sets(runs, NS3)


def with_other_sets(runs: StoredRuns) -> pl.DataFrame:
    """The runs of this paper's sweeps, those of its second set, and those of ns-3."""
    return _of_sets(runs, "", NS3, *([runs.paper.second.suffix] if runs.paper.second else []))


def _of_sets(runs: StoredRuns, *suffixes: str) -> pl.DataFrame:
    stems = [stem + clock for stem in runs.paper.stems for clock in ("", REAL)]
    names = [runs.paper.sweep_name(stem, runs.smoke, suffix) for stem in stems for suffix in suffixes]
    return runs.table.filter(pl.col("sweep").is_in(names))


def figures_of(run: StoredRun, used: Mapping[str, set[str]]) -> str:
    """The value of the column FIGURES. `used` has the labels of each figure's runs, by the figure's word (5a)."""
    return SEPARATOR.join(figure for figure, labels in used.items() if run.label in labels)


def table(runs: StoredRuns, used: Mapping[str, set[str]]) -> pl.DataFrame:
    """The paper's rows and ns-3's, with the column FIGURES. Raises InputError."""
    listed = pl.concat([rows(runs), of_ns3(runs)])
    column = [figures_of(runs.run(row), used) for row in listed.iter_rows(named=True)]
    return listed.with_columns(pl.Series(FIGURES, column, dtype=pl.String))
