# SPDX-License-Identifier: MIT
"""The committed pages of the papers are current: people edit the files of reasons, and only publishing copies them into
the pages. Every link leads to something.
"""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

from analysis.papers import document, published, registry
from analysis.papers.paper import Paper
from runs import run_table

RESULTS = Path(__file__).resolve().parents[2] / "docs/results"
PAPERS = registry.installed()
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


@pytest.mark.parametrize("name", ["README.md", *(paper.page_name for paper in PAPERS.values())])
def test_links__of_a_page_lead_to_files_and_sections(name: str) -> None:
    text = (RESULTS / name).read_text(encoding="utf-8")
    anchors = {
        f"#{title.lower().replace(' ', '-')}" for title in re.findall(r"^## +(.+?) *$", text, flags=re.MULTILINE)
    }
    links = re.findall(r"\]\(([^)]+)\)", text)
    broken = [link for link in links if link not in anchors and not (RESULTS / link.partition("#")[0]).exists()]
    assert broken == []


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
