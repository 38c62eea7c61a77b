# SPDX-License-Identifier: MIT
"""Publishes all figures of a paper in docs/results/, with the page of facts, the table of runs, and archives of the
runs' summaries, which `make figures RUNS=published` reads. Raw data are not published.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from analysis.papers import document, run_list
from analysis.papers.document import DrawnFigure
from analysis.papers.stored_runs import StoredRuns
from lib.errors import InputError
from runs import archive

MOST_BYTES = 8 << 20  # of a repository that everybody clones


def publish(drawn: list[DrawnFigure], runs: StoredRuns, figures: Path, docs: Path) -> list[Path]:
    """Copies the drawn figures and the run table from `figures` to `docs`, and writes the page there. Returns the new
    files. Raises OSError; InputError if the files are too large, or if a figure with reasons was not drawn: `docs` is
    then unchanged.
    """
    paper = runs.paper
    reasons = document.read_reasons(docs / paper.reasons_name)
    page = document.page(drawn, runs, reasons, paper.key)
    pictures = [figures / f"{each.figure.name}.{kind}" for each in drawn for kind in ("png", "svg")]
    total = sum(path.stat().st_size for path in pictures) + len(page)
    if total > MOST_BYTES:
        largest = max(pictures, key=lambda path: path.stat().st_size)
        raise InputError(
            f"the figures have {total / 2**20:.1f} MiB, allowed are {MOST_BYTES >> 20}; the largest is {largest} with "
            f"{largest.stat().st_size / 2**20:.1f}: rasterize its dense parts"
        )
    numbers = [figures / f"{each.figure.name}.csv" for each in drawn]
    packed = archive.pack_all(docs / paper.archives_name, runs.results, _by_repetition(runs))
    copies = {path: docs / paper.key / path.name for path in (*pictures, *numbers)}
    copies[figures / paper.run_list_name] = docs / paper.run_list_name
    (docs / paper.key).mkdir(parents=True, exist_ok=True)
    for path, copy in copies.items():
        shutil.copyfile(path, copy)
    (docs / paper.page_name).write_text(page, encoding="utf-8")
    return [docs / paper.page_name, *packed, *copies.values()]


def _by_repetition(runs: StoredRuns) -> dict[int, list[str]]:
    """The runs of all sets by repetition, so that a new repetition changes no archive of another. Runs of an earlier
    spec are left out: an archive has no plan, so nobody could tell them from runs of the present spec.
    """
    by_repetition: dict[int, list[str]] = {}
    for row in run_list.with_other_sets(runs).sort("repetition").iter_rows(named=True):
        if not runs.is_of_earlier_spec(row):
            by_repetition.setdefault(row["repetition"], []).append(row["run"])
    return by_repetition


def unpublished(runs: StoredRuns) -> int:
    """The number of runs that the archives lack, because figures need the runs' tables."""
    paths = [path for of_repetition in _by_repetition(runs).values() for path in of_repetition]
    return sum(not archive.needs_no_table(runs.results / path) for path in paths)
