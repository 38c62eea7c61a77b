# SPDX-License-Identifier: MIT
"""Published runs: docs/results/<paper>-runs/<sweep>.parquet has a row for each run of a sweep. A row has the run's
columns of the run table, the figures that were drawn from the run, the spec, and the answers to all that figures asked
of the run (paper_run.py). A row without a spec has only its columns, for the map: its figures need whole tables.

A run is found by its sweep, its point's values, its seed and its repetition, never by its name (run_table.KEY).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from analysis.papers.paper import PUBLISHED_END as END
from analysis.papers.paper_run import PaperRun
from lib import files, parquet
from lib.errors import InputError
from lib.terminal import one_line
from model.experiment import Experiment
from runs import run_table

KEPT = "published"  # in the column `kept` of a published run's row
FIGURES = "figures"  # the column "3;5a;table1"; empty for runs that no figure was drawn from
SEPARATOR = ";"
MOST_BYTES = 500_000  # of a sweep's file: everybody who clones the repository downloads it
# The spec has the spread of the RTTs, the link and the queue. The delays became columns after most of these runs;
# their depths are published.
LINK_AND_QUEUE = ("rate_changes", "link_loss", "jitter_ns", "p4", "queue")
NOT_IN_A_ROW = (
    "kept", "note", "summary_mtime_ns", "rtt_spread_ns", "queue_delay_p50_ns", "queue_delay_p99_ns", "link_lost",
    *LINK_AND_QUEUE,
)  # fmt: skip
ROW = {name: kind for name, kind in run_table.SCHEMA.items() if name not in NOT_IN_A_ROW}
_INTEGERS = pl.List(pl.Int64)
_COUNTED = pl.Struct({"what": pl.String, "flow": pl.Int32, "steps": _INTEGERS, "counts": _INTEGERS})
ANSWERS = {
    "spec": pl.String(),  # JSON, without what is not of a point (model.experiment.NOT_OF_A_POINT)
    "congestion_controls": pl.String(),  # of the sender's kernel: "bbr reno"
    "summary": pl.String(),  # JSON: [[path, value], ...]
    "measures": pl.String(),  # JSON: {name: value}
    "distributions": pl.List(_COUNTED),  # `steps`: from 0 to the first value, then from value to value
}  # fmt: skip
SCHEMA: dict[str, pl.DataType] = {**ROW, FIGURES: pl.String(), **ANSWERS}


def directories(docs: Path) -> dict[str, Path]:
    """The directory of each paper's published runs, by the paper's key."""
    return {path.name.removesuffix(END): path for path in sorted(docs.glob(f"*{END}")) if path.is_dir()}


def rows(directory: Path) -> pl.DataFrame:
    """The columns ROW, LINK_AND_QUEUE and FIGURES of all runs in a paper's directory. Raises InputError."""
    return _with_link_and_queue(_read(directory, [*ROW, FIGURES, "spec"])).drop("spec")


def _with_link_and_queue(table: pl.DataFrame) -> pl.DataFrame:
    """The table, which has specs, with the columns LINK_AND_QUEUE."""
    schema = {"spec": pl.String()} | {name: run_table.SCHEMA[name] for name in LINK_AND_QUEUE}
    of_specs = [
        {"spec": spec} | run_table.link_and_queue(Experiment.model_validate_json(spec))
        for spec in table["spec"].drop_nulls().unique()
    ]
    return table.join(pl.DataFrame(of_specs, schema=schema), "spec", how="left", maintain_order="left")


def _read(directory: Path, columns: list[str]) -> pl.DataFrame:
    """Raises InputError for a file that `write` cannot have made."""
    tables = [pl.DataFrame(schema={name: SCHEMA[name] for name in columns})]
    for path in sorted(directory.glob("*.parquet")):
        try:
            table = parquet.read(path, columns=columns)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise InputError(f"{path}: {one_line(error)}; allowed: published runs") from None
        if dict(table.schema) != dict(tables[0].schema):
            raise InputError(f"{path}: has other columns than published runs; check the file out again")
        tables.append(table)
    return pl.concat(tables)


class PublishedRuns:
    """All published runs of a paper. Raises InputError."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        table = _read(directory, list(SCHEMA))
        self.without_answers = table.filter(pl.col("spec").is_null())  # no figure can be drawn from these
        whole = table.filter(pl.col("spec").is_not_null())
        known = _with_link_and_queue(whole)
        columns = [pl.lit(None, kind).alias(name) for name, kind in run_table.SCHEMA.items() if name not in known]
        self.table = known.with_columns(columns).with_columns(kept=pl.lit(KEPT)).select(run_table.COLUMNS)
        self._answers = whole.select("run", *ANSWERS)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {run: place for place, run in enumerate(self._answers["run"])}

    def run(self, row: dict[str, Any]) -> PaperRun:
        """A run whose answers are published. Its files are elsewhere."""
        answers = self._answers.row(self._places[row["run"]], named=True)
        return PaperRun(row, self.directory, published=answers)


def figures_of(run: PaperRun, used: Mapping[str, set[str]]) -> str:
    """The value of the column FIGURES. `used` has the labels of each figure's runs, by the figure's word (5a)."""
    return SEPARATOR.join(figure for figure, labels in used.items() if run.label in labels)


def stored(run: PaperRun, figures: str) -> dict[str, Any]:
    """The row of a run to publish."""
    row = {name: run[name] for name in ROW} | {FIGURES: figures}
    if run.published:
        return {**row, **run.published}
    try:
        return row | (dict.fromkeys(ANSWERS) if run.asked.needs_tables else _answers(run))
    except InputError:  # a damaged run: no figure uses it
        return row | dict.fromkeys(ANSWERS)


def _answers(run: PaperRun) -> dict[str, Any]:
    return {
        "spec": _json(run.experiment.of_point()),
        "congestion_controls": " ".join(run.congestion_controls),
        "summary": _json(sorted(run.asked.values.items(), key=str)),
        "measures": _json(run.asked.measures),
        "distributions": [
            {"what": what, "flow": flow, "steps": np.diff(values, prepend=0).tolist(), "counts": counts.tolist()}
            for (what, flow), (values, counts) in run.asked.distributions.items()
        ],
    }


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def write(path: Path, published: Iterable[Mapping[str, Any]]) -> bool:
    """Writes a sweep's runs, if they are not those in the file already; returns whether it wrote. Raises InputError for
    a file above MOST_BYTES, OSError.
    """
    table = pl.DataFrame(list(published), schema=SCHEMA).sort("point", "seed", "repetition", "run")
    if path.exists() and parquet.read(path).equals(table):
        return False
    with files.replacing(path) as file:
        table.write_parquet(file, compression="zstd", compression_level=22, statistics=False)
        if (size := file.tell()) > MOST_BYTES:
            raise InputError(
                f"{path}: {len(table)} runs have {size / 1000:.0f} kB; allowed in a repository that everybody clones: "
                f"{MOST_BYTES // 1000} kB; publish fewer points, or let figures ask for less"
            )
    return True
