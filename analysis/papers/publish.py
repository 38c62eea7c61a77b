# SPDX-License-Identifier: MIT
"""Publishes all figures of a paper in docs/results/, with the page of facts and the runs (published.py), from which
`make figures RUNS=published` draws the figures again. Raw data are not published.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.papers import document, draw, published
from analysis.papers.document import DrawnFigure
from analysis.papers.paper import NS3
from analysis.papers.paper_runs import PaperRuns
from lib.errors import InputError
from runs import run_table

MOST_BYTES = 300_000  # of a picture: everybody who clones the repository downloads it


def publish(drawn: list[DrawnFigure], runs: PaperRuns, figures: Path, docs: Path) -> list[Path]:
    """Copies the pictures as SVG and their numbers (CSV) from `figures` to `docs`, and writes the page there and the
    runs of each sweep that changed. Returns the new files. Raises OSError; InputError if a picture or a sweep's runs
    are too large, or if the file of reasons names a figure that was not drawn.
    """
    paper = runs.paper
    reasons = document.read_reasons(docs / paper.reasons_name)
    pictures = [figures / f"{each.figure.name}.svg" for each in drawn if not each.figure.is_table]
    page = document.page(drawn, runs, reasons, paper.key, paper.published_name)
    for path in pictures:
        if (size := path.stat().st_size) > MOST_BYTES:
            raise InputError(f"{path}: has {size} bytes; allowed: {MOST_BYTES}; thin or rasterize its dense parts")
    tables = publish_runs(runs, draw.by_figure(drawn), docs / paper.published_name)
    numbers = [figures / f"{each.figure.name}.csv" for each in drawn]
    numbers += [figures / each.figure.points_name for each in drawn if each.figure.points]
    copies = {path: docs / paper.key / path.name for path in (*pictures, *numbers)}
    (docs / paper.key).mkdir(parents=True, exist_ok=True)
    for path, copy in copies.items():
        shutil.copyfile(path, copy)
    (docs / paper.page_name).write_text(page, encoding="utf-8")
    return [docs / paper.page_name, *tables, *copies.values()]


def publish_runs(runs: PaperRuns, used: Mapping[str, set[str]], directory: Path) -> list[Path]:
    """Writes the runs of all sets of a paper into `directory`, a file for each sweep. A run of `runs` replaces the
    published run with its KEY, other published runs keep their rows. Runs of an earlier spec are left out: nobody could
    tell them from runs of the present spec. Returns the files that changed. Raises InputError, OSError.
    """
    sweeps: dict[str, list[dict[str, Any]]] = {}
    second = [runs.paper.second.suffix] if runs.paper.second else []
    for row in runs.of_sets("", NS3, *second).iter_rows(named=True):
        if not runs.is_of_earlier_spec(row):
            run = runs.run(row)
            sweeps.setdefault(row["sweep"], []).append(published.stored(run, published.figures_of(run, used)))
    if runs.published is not None:  # those that figures cannot use, because they lack answers
        for row in run_table.lacking(runs.published.without_answers, runs.table).iter_rows(named=True):
            sweeps.setdefault(row["sweep"], []).append(row)
    paths = {directory / f"{sweep.removeprefix(f'{runs.paper.key}-')}.parquet": of for sweep, of in sweeps.items()}
    directory.mkdir(parents=True, exist_ok=True)
    return [path for path, of in sorted(paths.items()) if published.write(path, of)]


def lacking_answers(runs: PaperRuns) -> int:
    """The number of runs whose figures read whole tables: published, figures cannot be drawn from them."""
    return sum(asked.needs_tables for asked in runs.asked.values())
