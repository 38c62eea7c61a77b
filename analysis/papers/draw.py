# SPDX-License-Identifier: MIT
"""All figures and the table of the first seed paper, and the comparison of clocks beneath them: which there are, drawn
into a directory with the page of facts.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import polars as pl

from analysis.papers import document, run_list
from analysis.papers import look as common
from analysis.papers.look import Fact
from analysis.papers.stored_runs import Runs

CLOCKS = "clocks"  # the one that is drawn from runs in real time, too
NAMES = (
    *sorted(path.stem for path in (Path(__file__).parent / "spang2021").glob("figure_[0-9]*.py")),
    "table_1",
    CLOCKS,
)
PAGE = "spang2021.md"


class Drawn(NamedTuple):
    """What came of one figure."""

    name: str  # of its module and its files: figure_05a
    module: ModuleType
    facts: list[Fact]
    used: list[str]  # runs it was drawn from, <sweep>/<job>
    left_out: list[tuple[str, str]]  # and those that are not valid, with the reason
    table: str = ""  # Markdown of its own, beside the facts


def short(name: str) -> str:
    """figure_05a -> 5a, table_1 -> table1, clocks: what a user writes."""
    kind, _, number = name.partition("_")
    return number.lstrip("0") if kind == "figure" else kind + number


def choose(wanted: str | None) -> tuple[str, ...]:
    """The figures that FIGURE= means: 3, 5a, table1, or all parts of one (5, 11). Raises ValueError."""
    if wanted is None:
        return NAMES
    text = wanted.lower().removeprefix("figure").strip(" _-").replace("table_1", "table1").replace("table-1", "table1")
    found = tuple(name for name in NAMES if text.lstrip("0") in (short(name), short(name).rstrip("ab")))
    if not found:
        raise ValueError(f"is not known; allowed: {', '.join(map(short, NAMES))}")
    return found


def load(name: str) -> ModuleType:
    """The module of a figure."""
    return importlib.import_module(f"analysis.papers.{name}" if name == CLOCKS else f"analysis.papers.spang2021.{name}")


def sweeps(names: tuple[str, ...]) -> tuple[str, ...]:
    """The stems of the sweeps that these figures are drawn from, each once."""
    return tuple(dict.fromkeys(stem for name in names for stem in load(name).SWEEPS))


def draw(results: Path, output: Path, names: tuple[str, ...] = NAMES, smoke: bool = False) -> list[Drawn]:
    """Draws from what lies in `results` into `output`; if these are all, the page and the table of runs come with them.
    Raises InputError if stored runs cannot be read, OSError.
    """
    output.mkdir(parents=True, exist_ok=True)
    drawn = []
    rows = Runs(results, smoke).table
    for name in names:
        module = load(name)
        runs = Runs(results, smoke)
        runs.__dict__["table"] = rows  # read once for all
        data = module.prepare(runs)
        common.render(module, data, output)
        told = runs.provenance()
        table = module.table(data) if hasattr(module, "table") else ""
        drawn.append(Drawn(name, module, module.facts(data), told["used"], told["left_out"], table))
    if names == NAMES:
        text = document.page(drawn, results, smoke, document.no_reasons())
        (output / PAGE).write_text(text, encoding="utf-8")
        table_of_runs(drawn, results, smoke).write_parquet(output / run_list.NAME)
    return drawn


def table_of_runs(drawn: list[Drawn], results: Path, smoke: bool) -> pl.DataFrame:
    """All runs of this paper, with the figures that were drawn from each. Raises InputError."""
    return run_list.table(results, smoke, {short(figure.name): figure.used for figure in drawn})
