# SPDX-License-Identifier: MIT
"""The runs of a paper's figures as a table: the run table's columns, and which figures were drawn from each run.
A figure with many runs gives only their number; this table names each run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from analysis.papers.paper import NS3, REAL
from analysis.papers.stored_runs import StoredRun, StoredRuns

FIGURES = "figures"  # the column: "3;5a;table1", empty for runs that no figure was drawn from
SEPARATOR = ";"


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


def table(runs: StoredRuns, used: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    """The paper's rows and ns-3's, with the column FIGURES. `used` maps a figure's word, such as 5a, to the labels
    of the figure's runs. Raises InputError.
    """
    listed = pl.concat([rows(runs), of_ns3(runs)])
    by_figure = {figure: set(labels) for figure, labels in used.items()}
    labels = [StoredRun(row, runs.results).label for row in listed.iter_rows(named=True)]
    column = [SEPARATOR.join(figure for figure, drawn in by_figure.items() if label in drawn) for label in labels]
    return listed.with_columns(pl.Series(FIGURES, column, dtype=pl.String))
