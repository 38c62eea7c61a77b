# SPDX-License-Identifier: MIT
"""The committed page of Spang et al.'s figures is current: people edit the file of reasons, and only publishing
copies the reasons into the page.
"""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

from analysis.papers import document, run_list
from analysis.papers.spang2021 import PAPER
from runs import run_table

RESULTS = Path(__file__).resolve().parents[2] / "docs/results"
REFRESH = "publish again: make figures PAPER=spang2021 DRAW=only PUBLISH=1 RESULTS=<the set>"
REASONS = document.read_reasons(RESULTS / PAPER.reasons_name)


@pytest.fixture(scope="module")
def sections():
    """Title -> text of each section of the page. The text before the first section is the overview."""
    text = (RESULTS / PAPER.page_name).read_text(encoding="utf-8")
    before, *rest = re.split(r"^## +(.+?) *$", text, flags=re.MULTILINE)
    return {document.OVERVIEW: before} | dict(zip(rest[::2], rest[1::2], strict=True))


def test_reasons__exist_for_the_overview_and_figures():
    assert len(REASONS) > 1
    assert document.OVERVIEW in REASONS


@pytest.mark.parametrize("title", REASONS)
def test_page__has_the_reasons_word_for_word(sections, title):
    assert title in sections, REFRESH
    assert f"\n\n{REASONS[title]}\n\n" in sections[title], REFRESH


def test_page__has_every_figure_and_shows_existing_files(sections):
    for figure in PAPER.figures:
        (shown,) = re.findall(r"!\[.*?\]\((.+?)\)", sections[figure.title])
        assert (RESULTS / shown).is_file(), REFRESH


def test_table__lists_the_figures_of_each_run(sections):
    table = pl.read_parquet(RESULTS / PAPER.run_list_name)
    assert table.columns == [*run_table.COLUMNS, run_list.FIGURES], REFRESH
    used = table.filter(pl.col(run_list.FIGURES) != "")
    distinct = run_table.distinct(used.iter_rows(named=True))
    assert f"\n\n{distinct} valid runs in " in sections[document.OVERVIEW], REFRESH
    twice = f"({len(used)} if each sweep's runs are counted apart)"
    assert (twice in sections[document.OVERVIEW]) == (len(used) > distinct), REFRESH
    known = {figure.word for figure in PAPER.figures}
    assert set(used[run_list.FIGURES].str.split(run_list.SEPARATOR).explode()) <= known
