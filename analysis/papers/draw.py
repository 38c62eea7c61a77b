# SPDX-License-Identifier: MIT
"""Draws figures of a paper into a directory; with all of them come the page and the list of runs."""

from __future__ import annotations

from pathlib import Path

from analysis.papers import document, facts, look, run_list
from analysis.papers.document import DrawnFigure
from analysis.papers.paper import PaperFigure
from analysis.papers.stored_runs import StoredRuns


def draw(runs: StoredRuns, output: Path, figures: tuple[PaperFigure, ...]) -> list[DrawnFigure]:
    """Raises InputError if stored runs cannot be read, OSError."""
    output.mkdir(parents=True, exist_ok=True)
    drawn = [draw_one(runs, output, figure) for figure in figures]
    if figures == runs.paper.figures:
        page = document.page(drawn, runs, reasons={})
        (output / runs.paper.page_name).write_text(page, encoding="utf-8")
        used = {each.figure.word: each.used for each in drawn}
        run_list.table(runs, used).write_parquet(output / runs.paper.run_list_name)
    return drawn


def draw_one(runs: StoredRuns, output: Path, figure: PaperFigure) -> DrawnFigure:
    """One figure and the CSV of its numbers, with those of the second set of runs if there is one."""
    runs, second = runs.unselected(), runs.second_set()
    data = figure.prepare(runs)
    look.render(figure.name, figure.draw, data, output)
    provenance = runs.provenance()
    numbers, table = figure.facts(data), figure.table(data) if figure.table else ""
    if second is not None:
        numbers = facts.with_second(numbers, figure.facts(figure.prepare(second)))
    facts.table(numbers).write_csv(output / f"{figure.name}.csv")
    return DrawnFigure(figure, numbers, provenance["used"], provenance["left_out"], table)
