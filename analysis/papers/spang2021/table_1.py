# SPDX-License-Identifier: MIT
"""Table 1: the rules, their conditions, and the least buffers."""

from __future__ import annotations

import textwrap
from typing import NamedTuple

from analysis.figures.common import BLACK, Data
from analysis.papers import look
from analysis.papers.facts import Fact
from analysis.papers.paper import PaperFigure
from analysis.papers.spang2021 import table_conditions, table_rows
from analysis.papers.spang2021.searches import NONEMPTY, USED
from analysis.papers.spang2021.table_conditions import MeasuredAssumption
from analysis.papers.spang2021.table_rows import RuleRow
from analysis.papers.stored_runs import StoredRuns, kinds

CAPTION = "the least buffer of every rule, whether the rule's conditions hold on our own runs, and the measured value."
SWEEPS = (NONEMPTY.stem, USED.stem, table_rows.SMALL, table_conditions.PACKETS)
POINTS = 5.6
LINE_IN, PADDING_IN = 0.098, 0.055
MARKS = {True: "✓", False: "✗", None: "?"}
NUMBER = "·"
HOLDS, FAILS, OPEN = "#00734F", "#B03A00", "#767676"


class TableColumn(NamedTuple):
    """Title, left edge as a share of the width, characters that fit."""

    title: str
    x: float
    width: int


COLUMNS = (
    TableColumn("least buffer", 0.0, 20),
    TableColumn("assumes", 0.155, 30),
    TableColumn("source", 0.375, 10),
    TableColumn("conditions on our runs", 0.455, 41),
    TableColumn("predicted", 0.745, 11),
    TableColumn("measured", 0.825, 13),
    TableColumn("verdict", 0.915, 14),
)


def prepare(runs: StoredRuns) -> Data:
    """The rows of the paper's table, in its order."""
    return {"rows": table_rows.rows(runs), "provenance": runs.provenance()}


def draw(data: Data) -> look.Figure:
    """Text in columns, rows as high as they need."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    cells = [_cells(row) for row in data["rows"]]
    lines = [max(len(cell) for cell in row) for row in cells]
    head, foot = 0.28, 0.34
    height = head + foot + sum(count * LINE_IN + PADDING_IN for count in lines)
    figure = Figure(figsize=(look.PAGE_IN, height))
    left, span = 0.012, 0.98

    def write(x: float, y_in: float, text: str, color: str = BLACK, weight: str = "normal") -> None:
        figure.text(left + x * span, 1 - y_in / height, text, fontsize=POINTS, color=color, va="top", weight=weight)

    def rule(y_in: float, width: float) -> None:
        y, color = 1 - y_in / height, BLACK if width > 0.4 else "#C8C8C8"
        figure.add_artist(Line2D([left, left + span], [y, y], color=color, linewidth=width))

    for column in COLUMNS:
        write(column.x, 0.1, column.title, weight="bold")
    y_in = head
    rule(y_in - 0.04, 0.7)
    for row, count in zip(cells, lines, strict=True):
        for column, cell in zip(COLUMNS, row, strict=True):
            for number, (text, color) in enumerate(cell):
                write(column.x, y_in + number * LINE_IN, text, color)
        y_in += count * LINE_IN + PADDING_IN
        rule(y_in - 0.03, 0.3)
    figure.text(left, 0.06 / height, _source(data), fontsize=look.FOOTER_POINTS, color=OPEN, va="bottom")
    return figure


def _source(data: Data) -> str:
    provenance = data["provenance"]
    text = f"From {provenance['distinct']} runs" if provenance["used"] else "From no run"
    if provenance["left_out"]:
        text += f", {len(provenance['left_out'])} left out ({kinds(provenance['left_out'])})"
    return f"{text}. Buffers in packets. ✓ holds, ✗ does not, ? open, · cannot fail. [n]: the paper's references."


def _cells(row: RuleRow) -> list[list[tuple[str, str]]]:
    """Each column's lines with their colours."""
    conditions = []
    for condition in row.conditions:
        color = {True: HOLDS, False: FAILS, None: OPEN}[condition.holds] if condition.is_judged else BLACK
        wrapped = textwrap.wrap(_marked(condition), COLUMNS[3].width, subsequent_indent="   ")
        conditions += [(line, color) for line in wrapped]
    predicted = "–" if row.predicted is None else f"{row.predicted:.3g}"
    measured = "–" if row.measured is None else row.measured.text(3)
    plain = (row.rule, row.assumes, row.source, None, predicted, measured, row.verdict)
    return [
        conditions or [("", BLACK)]
        if text is None
        else [(line, BLACK) for line in textwrap.wrap(text, column.width) or [""]]
        for text, column in zip(plain, COLUMNS, strict=True)
    ]


def _marked(condition: MeasuredAssumption) -> str:
    return f"{MARKS[condition.holds] if condition.is_judged else NUMBER} {condition.text}"


def facts(data: Data) -> list[Fact]:
    """One fact per rule. `what` says whether the rule's conditions hold."""
    rows = []
    for row in data["rows"]:
        checks = "; ".join(_marked(condition) for condition in row.conditions)
        what = f"{row.assumes} ({row.source})" + (f": {checks}" if checks else "")
        rows.append(Fact(what, row.rule, row.predicted, row.measured, row.unit, row.verdict, row.none))
    return rows


def table(data: Data) -> str:
    """The same rows in Markdown, for the page."""
    lines = ["| " + " | ".join(column.title for column in COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    for row in data["rows"]:
        predicted = "–" if row.predicted is None else f"{row.predicted:.3g}"
        measured = "–" if row.measured is None else row.measured.text(3)
        checks = "<br>".join(_marked(condition) for condition in row.conditions)
        cells = (row.rule, row.assumes, row.source, checks, predicted, measured, row.verdict)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


FIGURE = PaperFigure("table_1", CAPTION, SWEEPS, prepare, draw, facts, table)
