# SPDX-License-Identifier: MIT
"""Table 1: the rules, their conditions, and the least buffers."""

from __future__ import annotations

import textwrap

from analysis.figures.common import BLACK, Data
from analysis.papers import look
from analysis.papers.facts import Fact
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRuns, kinds
from analysis.papers.spang2021 import table_conditions, table_rows
from analysis.papers.spang2021.searches import NONEMPTY, USED
from analysis.papers.spang2021.table_conditions import MeasuredAssumption
from analysis.papers.spang2021.table_rows import RuleRow

CAPTION = "the least buffer of every rule, whether the rule's conditions hold on our own runs, and the measured value."
SWEEPS = (NONEMPTY.stem, USED.stem, table_rows.SMALL, table_conditions.PACKETS)
POINTS = 5.6
LINE_IN, PADDING_IN = 0.098, 0.055
MARKS = {True: "✓", False: "✗", None: "?"}
NUMBER = "·"
HOLDS, FAILS, OPEN = "#00734F", "#B03A00", "#767676"


COLUMNS = (  # title, left edge as a share of the width, characters that fit
    ("least buffer", 0.0, 20), ("assumes", 0.155, 30), ("source", 0.375, 10), ("conditions on our runs", 0.455, 41),
    ("predicted", 0.745, 11), ("measured", 0.825, 13), ("verdict", 0.915, 14),
)  # fmt: skip
CONDITIONS = 3  # the column


def prepare(runs: PaperRuns) -> Data:
    """The rows of the paper's table, in its order. A fact says whether the conditions of its rule hold."""
    rules, rows = table_rows.rows(runs), []
    for row in rules:
        checks = "; ".join(_marked(condition) for condition in row.conditions)
        what = f"{row.assumes} ({row.source})" + (f": {checks}" if checks else "")
        rows.append(Fact(what, row.rule, row.predicted, row.measured, row.unit, row.verdict, row.none))
    return {"rows": rules, "facts": rows}


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

    for title, x, _ in COLUMNS:
        write(x, 0.1, title, weight="bold")
    y_in = head
    rule(y_in - 0.04, 0.7)
    for row, count in zip(cells, lines, strict=True):
        for (_, x, _), cell in zip(COLUMNS, row, strict=True):
            for number, (text, color) in enumerate(cell):
                write(x, y_in + number * LINE_IN, text, color)
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
    cells = []
    for (_, _, width), text in zip(COLUMNS, _texts(row, ""), strict=True):
        cells.append([(line, BLACK) for line in textwrap.wrap(text, width) or [""]])
    conditions = []
    for condition in row.conditions:
        color = {True: HOLDS, False: FAILS, None: OPEN}[condition.holds] if condition.is_judged else BLACK
        wrapped = textwrap.wrap(_marked(condition), COLUMNS[CONDITIONS][2], subsequent_indent="   ")
        conditions += [(line, color) for line in wrapped]
    cells[CONDITIONS] = conditions or [("", BLACK)]
    return cells


def _texts(row: RuleRow, checks: str) -> tuple[str, ...]:
    predicted = "–" if row.predicted is None else f"{row.predicted:.3g}"
    measured = "–" if row.measured is None else row.measured.text(3)
    return row.rule, row.assumes, row.source, checks, predicted, measured, row.verdict


def _marked(condition: MeasuredAssumption) -> str:
    return f"{MARKS[condition.holds] if condition.is_judged else NUMBER} {condition.text}"


def table(data: Data) -> str:
    """The same rows in Markdown, for the page."""
    lines = ["| " + " | ".join(title for title, _, _ in COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    for row in data["rows"]:
        cells = _texts(row, "<br>".join(_marked(condition) for condition in row.conditions))
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


FIGURE = PaperFigure("table_1", CAPTION, SWEEPS, prepare, draw, table=table)
