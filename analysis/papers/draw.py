# SPDX-License-Identifier: MIT
"""Draws figures of a paper into a directory. If all figures are drawn, also writes the page and the list of runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from analysis.figures.common import Data
from analysis.papers import document, facts, look, run_list
from analysis.papers.document import DrawnFigure
from analysis.papers.paper import PaperFigure
from analysis.papers.stored_runs import StoredRuns

NS3 = "ns3"  # the key of ns-3's data in the data of a figure


def draw(runs: StoredRuns, output: Path, figures: tuple[PaperFigure, ...]) -> list[DrawnFigure]:
    """Raises OSError, and InputError if stored runs cannot be read."""
    output.mkdir(parents=True, exist_ok=True)
    drawn = [draw_one(runs, output, figure) for figure in figures]
    if figures == runs.paper.figures:
        page = document.page(drawn, runs, reasons={})
        (output / runs.paper.page_name).write_text(page, encoding="utf-8")
        run_list.table(runs, by_figure(drawn)).write_parquet(output / runs.paper.run_list_name)
    return drawn


def by_figure(drawn: Iterable[DrawnFigure]) -> dict[str, set[str]]:
    """The labels of the runs of each figure, by the figure's word, such as 5a."""
    return {each.figure.word: {*each.used, *each.ns3_used} for each in drawn}


def draw_one(runs: StoredRuns, output: Path, figure: PaperFigure) -> DrawnFigure:
    """Draws one figure and writes the CSV of its numbers, and the CSV of its points if it has one. If there is a second
    set of runs, or runs of ns-3, the CSV has their numbers, too. The key `ns3` of the figure's data holds the data of
    ns-3's runs, for `draw` and `table`.
    """
    runs, second = runs.unselected(), runs.second_set()
    data = figure.prepare(runs)
    ns3 = _of_ns3(runs, figure)
    if ns3:
        data = {**data, NS3: ns3}
    look.render(figure.name, figure.draw, data, output)
    provenance = runs.provenance()
    numbers, table = figure.facts(data), figure.table(data) if figure.table else ""
    if second is not None:
        numbers = facts.with_second(numbers, figure.facts(figure.prepare(second)))
    if ns3:
        numbers = facts.with_ns3(numbers, figure.facts(ns3))
    facts.table(numbers).write_csv(output / f"{figure.name}.csv")
    if figure.points:
        facts.rounded(figure.points(data)).write_csv(output / figure.points_name)
    beside = ns3["provenance"] if ns3 else {"used": [], "left_out": []}
    left_out = [*provenance["left_out"], *beside["left_out"]]
    return DrawnFigure(figure, numbers, provenance["used"], left_out, table, beside["used"])


def _of_ns3(runs: StoredRuns, figure: PaperFigure) -> Data | None:
    """The figure's data from ns-3's runs; None if the figure selects none of them."""
    simulated = runs.ns3_set()
    if simulated is None:
        return None
    data = figure.prepare(simulated)
    data["provenance"] = simulated.provenance()
    return data if simulated.used or simulated.left_out else None
