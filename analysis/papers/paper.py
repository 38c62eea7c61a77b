# SPDX-License-Identifier: MIT
"""The description of a paper: its sweeps and its figures. Everything else about it follows from these: names of files
and sweeps, the words of `make figures`, the page.

A package with a PAPER is all that a new paper needs (CONTRIBUTING.md); registry.py finds it.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from analysis.figures.common import Data
from analysis.papers.facts import Fact

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

# Ends of the names of a sweep's versions: in real time, in ns-3 beside the other runs, with short runs.
REAL, NS3, SMOKE = "-real", "-ns3", "-smoke"
PUBLISHED_END = "-runs"  # of the name of the directory of a paper's published runs
PART = re.compile(r"^([0-9]+)[a-z]$")  # of a figure: 5a, 5b
KEY = re.compile(r"[a-z][a-z0-9_]{1,31}")
FIGURE_NAME = re.compile(r"[a-z]+(_[0-9]{1,3}[a-f]?)?")


@dataclass(frozen=True)
class PaperFigure:
    """A figure or a table. `prepare` selects stored runs and returns plain data; `draw`, `facts`, `table` and `points`
    use nothing but that data. By default `facts` are in the data.
    """

    name: str  # of its files: figure_05a, table_1
    caption: str  # begins with a small letter: in sweep reports it follows the title and a colon
    sweeps: tuple[str, ...]  # stems of the specs that it is drawn from
    prepare: Callable[[Any], Data]  # Any is PaperRuns, which has a Paper: importing it would be circular
    draw: Callable[[Data], Figure]
    facts: Callable[[Data], list[Fact]] = itemgetter("facts")
    table: Callable[[Data], str] | None = None  # Markdown for the page, of some rows
    points: Callable[[Data], pl.DataFrame] | None = None  # a second CSV: each point, where facts are about all of them
    compares_clocks: bool = False  # needs the sweeps' real-time versions too, which CLOCK=real runs

    def __post_init__(self) -> None:
        if not FIGURE_NAME.fullmatch(self.name):
            raise ValueError(f"figure {self.name!r}: cannot name its files; allowed: as in figure_05a, table_1, clocks")

    def data(self, runs: Any) -> Data:
        """The data of `prepare`, with the runs that it selected."""
        data = self.prepare(runs)
        return {**data, "provenance": runs.provenance()}

    @property
    def is_table(self) -> bool:
        """Whether the page shows it as text."""
        return self.name.startswith("table")

    @property
    def points_name(self) -> str:
        """The file of its points."""
        return f"{self.name}-points.csv"

    @property
    def title(self) -> str:
        """figure_05a -> Figure 5a, clocks -> Clocks."""
        kind, _, number = self.name.partition("_")
        return f"{kind.capitalize()} {number.lstrip('0')}".rstrip()

    @property
    def word(self) -> str:
        """The figure's word in FIGURE=: figure_05a -> 5a, table_1 -> table1, clocks -> clocks."""
        kind, _, number = self.name.partition("_")
        return number.lstrip("0") if kind == "figure" else kind + number


class Second(NamedTuple):
    """A second set: all sweeps that do not vary `key` themselves, with `key` set to `value`."""

    key: str
    value: str

    @property
    def suffix(self) -> str:
        """The suffix that the word `key`=`value` after make gives to the names of sweeps."""
        return f"-{self.key}-{self.value}"


@dataclass(frozen=True)
class Paper:
    """`key` begins the names of its sweeps and files; `specs` is the folder of its sweeps' specs: the spec in
    <stem>.yaml has the name <key>-<stem>.
    """

    key: str
    title: str
    citation: str
    specs: Path
    figures: tuple[PaperFigure, ...]  # in the order of the page
    algorithms: tuple[str, ...] = ("reno",)  # congestion controls, in the order of legends and tables
    telling: tuple[str, ...] = ()  # names of one or two figures that the page shows first
    second: Second | None = None  # the same sweeps with one key changed: a column of the page
    read_beside: Callable[[Path], Any] | None = None  # published numbers from a checkout; raises ValueError

    def __post_init__(self) -> None:
        if not KEY.fullmatch(self.key):
            raise ValueError(
                f"key {self.key!r}: cannot name files; allowed: 2 to 32 small letters, digits and _, the first a letter"
            )
        names = [figure.name for figure in self.figures]
        if not names or len(set(names)) < len(names):
            raise ValueError("figures: allowed: one or more, each name once")
        if unknown := set(self.telling) - set(names):
            raise ValueError(f"telling: no figure has the name {min(unknown)}; allowed: {', '.join(names)}")

    @cached_property
    def stems(self) -> tuple[str, ...]:
        """The specs of its sweeps, without .yaml."""
        return tuple(sorted(path.stem for path in self.specs.glob("*.yaml")))

    def sweep_name(self, stem: str, smoke: bool = False, suffix: str = "") -> str:
        """The directory of a sweep in results. `smoke` selects the short version, `suffix` another set of the sweep."""
        return f"{self.key}-{stem}{suffix}{SMOKE * smoke}"

    def output_name(self, smoke: bool = False) -> str:
        """The directory of its figures in results/figures."""
        return self.key + SMOKE * smoke

    @property
    def page_name(self) -> str:
        return f"{self.key}.md"

    @property
    def reasons_name(self) -> str:
        """The file with the reasons that people write for its figures, beside the published page."""
        return f"{self.key}-reasons.md"

    @property
    def run_list_name(self) -> str:
        return f"{self.key}-runs.parquet"

    @property
    def published_name(self) -> str:
        """The directory of the published runs, a file for each sweep (published.py)."""
        return self.key + PUBLISHED_END

    @property
    def comparing_clocks(self) -> tuple[PaperFigure, ...]:
        """The figures that need runs in real time."""
        return tuple(figure for figure in self.figures if figure.compares_clocks)

    def choose(self, wanted: str | None) -> tuple[PaperFigure, ...]:
        """The figures that FIGURE= means, in the order of the page: 3, 5a, table1, all parts of a figure (5 is 5a
        and 5b), or several of these with commas between them. Raises ValueError.
        """
        if wanted is None:
            return self.figures
        words = wanted.split(",")
        of_words = {word: self._of_word(word) for word in words}
        if unknown := [word for word, figures in of_words.items() if not figures]:
            problem = "is not known" if len(words) == 1 else f"has {unknown[0]!r}, which is not known"
            known = ", ".join(figure.word for figure in self.figures)
            raise ValueError(f"{problem}; allowed: {known}, or several of these with commas between them")
        return tuple(figure for figure in self.figures if any(figure in figures for figures in of_words.values()))

    def _of_word(self, word: str) -> list[PaperFigure]:
        text = re.sub(r"[ _-]", "", word.lower()).removeprefix("figure").lstrip("0")
        return [figure for figure in self.figures if text in (figure.word, PART.sub(r"\1", figure.word))]


def figures_of(package: str, file: str) -> tuple[PaperFigure, ...]:
    """The FIGURE of each module figure_<number>.py, then table_<number>.py, beside `file`: pass the package's __name__
    and __file__.
    """
    stems = [path.stem for path in Path(file).parent.glob("*.py") if re.match("(figure|table)_[0-9]", path.stem)]
    stems.sort(key=lambda stem: [int(part) if part.isdigit() else part for part in re.split("([0-9]+)", stem)])
    return tuple(importlib.import_module(f"{package}.{stem}").FIGURE for stem in stems)


def sweeps(figures: tuple[PaperFigure, ...]) -> tuple[str, ...]:
    """The stems of the sweeps that these figures are drawn from, each once."""
    return tuple(dict.fromkeys(stem for figure in figures for stem in figure.sweeps))
