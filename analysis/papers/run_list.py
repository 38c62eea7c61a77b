# SPDX-License-Identifier: MIT
"""The runs of the first seed paper's figures as a table: the run table's columns, and which figures were drawn from
each. Figures count their runs once they are many; here each of them is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from analysis.papers import imported_runs as theirs
from analysis.papers.stored_runs import REAL, Run, sweep_name
from runs import run_table

NAME = "spang2021-runs.parquet"
FIGURES = "figures"  # the column: "3;5a;table1", empty for runs that no figure was drawn from
SEPARATOR = ";"


def rows(results: Path, smoke: bool) -> pl.DataFrame:
    """Those of this paper's sweeps, or of their short versions, and imported ones. A sweep with another parameter (a
    name such as spang2021-ecn-rtt-5ms) is none of them, and no figure is drawn from it. Raises InputError.
    """
    everything = run_table.read(results)
    stems = [f"{path.stem}{clock}" for path in theirs.SPECS.glob("*.yaml") for clock in ("", REAL)]
    mine = everything.filter(pl.col("sweep").is_in([sweep_name(stem, smoke) for stem in stems]))
    return pl.concat([mine, theirs.of(everything)])


def table(results: Path, smoke: bool, used: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    """These rows with FIGURES. `used` has the runs (<sweep>/<job>) of each figure, by the name that users write. Raises
    InputError.
    """
    found = rows(results, smoke)
    by_figure = {figure: set(those) for figure, those in used.items()}
    names = [Run(row, results).told for row in found.iter_rows(named=True)]
    column = [SEPARATOR.join(figure for figure, those in by_figure.items() if name in those) for name in names]
    return found.with_columns(pl.Series(FIGURES, column, dtype=pl.String))
