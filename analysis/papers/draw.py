# SPDX-License-Identifier: MIT
"""Draws figures of a paper into a directory. If all figures are drawn, also writes the page and the list of runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from analysis.figures.common import Data
from analysis.papers import document, facts, look, published
from analysis.papers.document import DrawnFigure
from analysis.papers.paper import NS3, PaperFigure
from analysis.papers.paper_runs import PaperRuns

OF_NS3 = "ns3"  # the key of ns-3's data in the data of a figure


def draw(runs: PaperRuns, output: Path, figures: tuple[PaperFigure, ...]) -> list[DrawnFigure]:
    """Raises OSError, and InputError if stored runs cannot be read."""
    output.mkdir(parents=True, exist_ok=True)
    drawn = [draw_one(runs, output, figure) for figure in figures]
    if figures == runs.paper.figures:
        page = document.page(drawn, runs, reasons={})
        (output / runs.paper.page_name).write_text(page, encoding="utf-8")
        _listed(runs, by_figure(drawn)).write_parquet(output / runs.paper.run_list_name)
    return drawn


def _listed(runs: PaperRuns, used: dict[str, set[str]]) -> pl.DataFrame:
    """The paper's runs and ns-3's, with the figures that were drawn from each. A figure with many runs gives only their
    number; this table names each run.
    """
    rows = pl.concat([runs.listed(), runs.of_sets(NS3)])
    figures = [published.figures_of(runs.run(row), used) for row in rows.iter_rows(named=True)]
    return rows.with_columns(pl.Series(published.FIGURES, figures, dtype=pl.String))


def by_figure(drawn: Iterable[DrawnFigure]) -> dict[str, set[str]]:
    """The labels of the runs of each figure, by the figure's word, such as 5a."""
    return {each.figure.word: {*each.used, *each.ns3_used} for each in drawn}


def draw_one(runs: PaperRuns, output: Path, figure: PaperFigure) -> DrawnFigure:
    """Draws one figure and writes the CSV of its numbers, and the CSV of its points if it has one. If there is a second
    set of runs, or runs of ns-3, the CSV has their numbers, too. The key `ns3` of the figure's data holds the data of
    ns-3's runs, for `draw` and `table`.
    """
    runs, second = runs.unselected(), runs.second_set()
    data = figure.data(runs)
    provenance = data["provenance"]
    ns3 = _of_ns3(runs, figure)
    if ns3:
        data = {**data, OF_NS3: ns3}
    look.render(figure.name, figure.draw, data, output)
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


def _of_ns3(runs: PaperRuns, figure: PaperFigure) -> Data | None:
    """The figure's data from ns-3's runs; None if the figure selects none of them."""
    simulated = runs.ns3_set()
    if simulated is None:
        return None
    data = figure.data(simulated)
    return data if simulated.used or simulated.left_out else None
