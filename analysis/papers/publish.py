# SPDX-License-Identifier: MIT
"""Publishes all figures of a paper in docs/results/, with the page of facts, the table of runs, and archives of the
runs' summaries, which `make figures RUNS=published` reads. Raw data are not published.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from analysis.papers import document, run_list
from analysis.papers.document import DrawnFigure
from analysis.papers.paper import Paper
from analysis.papers.stored_runs import StoredRuns
from lib.errors import InputError
from lib.terminal import counted
from runs import archive

MOST_BYTES = 300_000  # of a picture: everybody who clones the repository downloads it


def publish(drawn: list[DrawnFigure], runs: StoredRuns, figures: Path, docs: Path) -> list[Path]:
    """Copies the pictures as SVG, their numbers (CSV) and the run table from `figures` to `docs`, and writes the page
    and the archives there. Returns the new files. Raises OSError; InputError if a picture or the runs of the first
    repetition are too large, or if the file of reasons names a figure that was not drawn: `docs` is then unchanged.
    """
    paper = runs.paper
    reasons = document.read_reasons(docs / paper.reasons_name)
    pictures = [figures / f"{each.figure.name}.svg" for each in drawn if not each.figure.is_table]
    by_repetition = _by_repetition(runs)
    with archive.packed(docs, runs.results, by_repetition) as packed:
        missing = sum(len(by_repetition[number]) for number in packed.left_out)
        page = document.page(drawn, runs, reasons, paper.key, _about_archives(packed, missing, paper))
        for path in pictures:
            if (size := path.stat().st_size) > MOST_BYTES:
                raise InputError(f"{path}: has {size} bytes; allowed: {MOST_BYTES}; thin or rasterize its dense parts")
        archives = packed.replace(docs / paper.archives_name)
    numbers = [figures / f"{each.figure.name}.csv" for each in drawn]
    numbers += [figures / each.figure.points_name for each in drawn if each.figure.points]
    copies = {path: docs / paper.key / path.name for path in (*pictures, *numbers)}
    copies[figures / paper.run_list_name] = docs / paper.run_list_name
    (docs / paper.key).mkdir(parents=True, exist_ok=True)
    for path, copy in copies.items():
        shutil.copyfile(path, copy)
    (docs / paper.page_name).write_text(page, encoding="utf-8")
    return [docs / paper.page_name, *archives, *copies.values()]


def _about_archives(packed: archive.Packed, missing: int, paper: Paper) -> str:
    """The sentence about the runs that were too large for the archives; "" if there are none."""
    if not packed.left_out:
        return ""
    first, last = packed.left_out[0], packed.left_out[-1]
    repetitions = f"repetition {first}" if first == last else f"repetitions {first} to {last}"
    return (
        f"[{paper.archives_name}]({paper.archives_name}) lacks the {counted(missing, 'run')} of {repetitions}: the "
        f"archives may have {archive.MOST_PACKED_BYTES >> 20} MiB. `RUNS=published` does these runs again, with the "
        "same seeds."
    )


def _by_repetition(runs: StoredRuns) -> dict[int, list[str]]:
    """The runs of all sets by repetition, so that a new repetition does not change the archives of the others. Runs
    of an earlier spec are left out: an archive has no plan, so nobody could tell them from runs of the present spec.
    """
    by_repetition: dict[int, list[str]] = {}
    for row in run_list.with_other_sets(runs).sort("repetition").iter_rows(named=True):
        if not runs.is_of_earlier_spec(row):
            by_repetition.setdefault(row["repetition"], []).append(row["run"])
    return by_repetition


def unpublished(runs: StoredRuns) -> int:
    """The number of runs that no archive can have, because figures need the runs' tables."""
    paths = [path for of_repetition in _by_repetition(runs).values() for path in of_repetition]
    return sum(not archive.needs_no_table(runs.results / path) for path in paths)
