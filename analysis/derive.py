# SPDX-License-Identifier: MIT
"""Writes the derived files of a repetition: all into a directory of their own first, then each into its place, summary.json
last. Whatever goes wrong before that leaves earlier results as they were.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from analysis.analyse import analyse
from analysis.figures.drawing import draw_all
from analysis.load import InputError
from analysis.report import render
from analysis.summary import summarize
from analysis.tables import write_tables

SUMMARY = "summary.json"
SCRATCH = ".derived"


def derive(directory: Path, force: bool = False, pool: Executor | None = None) -> tuple[dict[str, Any], list[str]]:
    """Analyses a repetition and writes its derived files. Returns the summary, and a line for each damaged raw file.

    `pool` draws the figures; without one they are drawn here. Raises InputError if it cannot be analysed, or if a raw file
    is damaged and there are earlier results (unless `force`), and OSError if a file cannot be written.
    """
    with _only_one(directory):
        analysis = analyse(directory)
        damage = [text for raw in analysis.run.raw.values() if (text := raw.damage())]
        if damage and (directory / SUMMARY).exists() and not force:
            raise InputError(f"{directory}: {damage[0]}; its earlier results are kept (--force replaces them)")
        with _scratch(directory) as scratch:
            figures = scratch / "figures"
            figures.mkdir()
            jobs = draw_all(analysis, figures, pool)
            with ThreadPoolExecutor(1) as writer:  # polars works without the interpreter's lock
                tables = writer.submit(
                    write_tables, scratch, analysis.run, analysis.queue, analysis.segments, analysis.trace
                )
                summary = summarize(analysis)
                tables.result()
            for job in jobs:
                job.result()
            page = render(summary, analysis.run.documents["environment"], figures)
            (scratch / "report.html").write_text(page, encoding="utf-8")
            (scratch / SUMMARY).write_text(json.dumps(summary, indent=1, allow_nan=False) + "\n")
            _put_in_place(scratch, directory)
    return summary, damage


@contextmanager
def _only_one(directory: Path) -> Iterator[None]:
    """Two analyses of one repetition would mix their files. The lock ends with the process, however it ends."""
    try:
        lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise InputError(
            f"{directory}: {error.strerror}; give the directory of a repetition (results/<run>/rep-<k>)"
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise InputError(f"{directory}: is being analysed already; wait for that to end") from None
    finally:
        os.close(lock)


@contextmanager
def _scratch(directory: Path) -> Iterator[Path]:
    """An empty directory on the same file system, gone afterwards; one that a killed analysis left is removed."""
    scratch = directory / SCRATCH
    if scratch.exists():
        shutil.rmtree(scratch)
    scratch.mkdir()
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _put_in_place(scratch: Path, directory: Path) -> None:
    files = sorted(path.relative_to(scratch) for path in scratch.rglob("*") if path.is_file())
    (directory / "figures").mkdir(exist_ok=True)
    for file in sorted(files, key=lambda path: path.name == SUMMARY):
        os.replace(scratch / file, directory / file)
