# SPDX-License-Identifier: MIT
"""The committed pages of the papers are current: the published runs give the numbers of every figure, and people edit
the files of reasons, which only publishing copies into the pages.
"""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

from analysis.papers import document, draw, look, published, registry
from analysis.papers.paper import Paper
from analysis.papers.paper_runs import PaperRuns
from analysis.papers.published import PublishedRuns
from experiments.commands.figures import conditions
from runs import run_table

RESULTS = Path(__file__).resolve().parents[2] / "docs/results"
PAPERS = registry.installed()
SLOW = ("5a", "arrival")  # their fits take half a minute; test_figures_of_sweeps.py fits fewer points
REFRESH = "publish again: make figures PAPER={} RUNS=published DRAW=only PUBLISH=1"


@pytest.mark.parametrize("paper", PAPERS.values(), ids=PAPERS)
def test_page__has_the_reasons_word_for_word_and_every_figure(paper: Paper) -> None:
    refresh = REFRESH.format(paper.key)
    page = (RESULTS / paper.page_name).read_text(encoding="utf-8")
    reasons = document.read_reasons(RESULTS / paper.reasons_name)
    assert {document.IN_SHORT, document.DIFFERENCES, document.RUNS} < set(reasons)
    assert [title for title, text in reasons.items() if f"\n\n{text}\n\n" not in page] == [], refresh
    shown = set(re.findall(r"\]\(([^)#]+?\.(?:svg|csv))\)", page))
    kinds = [(figure.name, ("csv",) if figure.is_table else ("csv", "svg")) for figure in paper.figures]
    kinds += [(f"{figure.name}-points", ("csv",)) for figure in paper.figures if figure.points]
    assert shown == {f"{paper.key}/{name}.{kind}" for name, of in kinds for kind in of}, refresh
    assert {path.name for path in (RESULTS / paper.key).iterdir()} == {Path(name).name for name in shown}, refresh


def measured(path: Path) -> dict[str, tuple[object, ...]]:
    """The measured numbers of a figure's CSV, by their names. What people read off the paper is not measured."""
    rows = pl.read_csv(path, infer_schema_length=None).filter(pl.col("measured").is_not_null())
    return {row[0]: row[1:] for row in rows.drop("paper", "why").iter_rows()}


@pytest.mark.parametrize("paper", PAPERS.values(), ids=PAPERS)
def test_published_runs__give_the_numbers_of_the_figures(
    paper: Paper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without figures that also need runs of which only the rows are published."""
    monkeypatch.setattr(look, "render", lambda *_: None)
    stored = PublishedRuns(RESULTS / paper.published_name)
    runs = PaperRuns(paper, tmp_path, conditions=conditions(paper), published=stored)
    lacking = ";".join(stored.without_answers[published.FIGURES]).split(published.SEPARATOR)
    other = []
    for figure in paper.figures:
        if figure.word not in (*lacking, *SLOW):
            draw.draw_one(runs, tmp_path, figure)
            now, was = (measured(path / f"{figure.name}.csv") for path in (tmp_path, RESULTS / paper.key))
            other += [(figure.name, what) for what, numbers in now.items() if was.get(what) != numbers]
            other += [(figure.name, "no number")] * (bool(was) > bool(now))
    assert other == [], REFRESH.format(paper.key)


@pytest.mark.parametrize("paper", PAPERS.values(), ids=PAPERS)
def test_runs__list_the_figures_of_each_run(paper: Paper) -> None:
    refresh, page = REFRESH.format(paper.key), (RESULTS / paper.page_name).read_text(encoding="utf-8")
    used = published.rows(RESULTS / paper.published_name).filter(
        pl.col(published.FIGURES) != "", ~pl.col("sweep").str.ends_with("-ns3")
    )
    if paper.second:  # the page counts the runs of the first set
        used = used.filter(~pl.col("sweep").str.ends_with(paper.second.suffix))
    distinct = run_table.distinct(used.iter_rows(named=True))
    assert f"\n\n{distinct} valid runs in " in page, refresh
    known = {figure.word for figure in paper.figures}
    assert set(used[published.FIGURES].str.split(published.SEPARATOR).explode()) <= known
