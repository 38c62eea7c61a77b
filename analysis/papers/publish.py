# SPDX-License-Identifier: MIT
"""Puts one full set into docs/results/: figures, the page of facts, the table of its runs. Raw data stays behind."""

from __future__ import annotations

import shutil
from pathlib import Path

from analysis.papers import document, run_list
from analysis.papers import draw as paper
from analysis.papers.draw import Drawn
from lib.errors import InputError

PICTURES = "spang2021"
REASONS = "spang2021-reasons.md"
MOST_BYTES = 8 << 20  # of a repository that everybody clones


def publish(drawn: list[Drawn], results: Path, figures: Path, docs: Path, smoke: bool = False) -> list[Path]:
    """Copies all that was `drawn` into `figures` with page and table into `docs`; returns what is there now. Raises
    InputError if they are too large or reasons do not fit, and then changes nothing in `docs`; OSError.
    """
    reasons = document.read_reasons(docs / REASONS)
    page = document.page(drawn, results, smoke, reasons, PICTURES)
    pictures = [figures / f"{figure.name}.{kind}" for figure in drawn for kind in ("png", "svg")]
    rows = paper.table_of_runs(drawn, results, smoke)
    total = sum(path.stat().st_size for path in pictures) + len(page)
    if total > MOST_BYTES:
        largest = max(pictures, key=lambda path: path.stat().st_size)
        raise InputError(
            f"the figures have {total / 2**20:.1f} MiB, allowed are {MOST_BYTES >> 20}; the largest is {largest} with "
            f"{largest.stat().st_size / 2**20:.1f}: rasterize its dense parts"
        )
    (docs / PICTURES).mkdir(parents=True, exist_ok=True)
    for path in pictures:
        shutil.copyfile(path, docs / PICTURES / path.name)
    rows.write_parquet(docs / run_list.NAME)
    (docs / paper.PAGE).write_text(page, encoding="utf-8")
    return [docs / paper.PAGE, docs / run_list.NAME, *(docs / PICTURES / path.name for path in pictures)]
