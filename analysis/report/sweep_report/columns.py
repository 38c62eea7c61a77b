# SPDX-License-Identifier: MIT
"""The table of runs: its columns, each with a text and a sorting key for every run, and its filters.

A parameter that is the same for all runs has no column, except those of ALWAYS: the page states it once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from analysis.figures.sweep.common import with_unit, words
from analysis.wording import formats
from analysis.wording.formats import number
from runs.names import PAGE
from runs.quantities import BY_NAME, SWEEP_PAGE
from runs.stored_sweep import MISSING, NOT_VALID, VALID, Row, Stored, rank
from runs.verdict import Area

ALWAYS = ("cc", "flows", "buf")  # readers look for these even if the sweep does not vary them
LABELS = {"cc": "algorithm", "buf": "buffer", "rtt": "RTT", "mtu": "MTU", "ecn_threshold": "ECN threshold"}


class ReportColumn(NamedTuple):
    """A column: its title and explanation, and each row's text and sorting key (None sorts last)."""

    title: str
    about: str
    text: Callable[[Row], str]
    order: Callable[[Row], Any]
    is_number: bool = True


class Cell(NamedTuple):
    """`order` is the sorting key as text. It is "" if `text` is the same, or if there is no key."""

    text: str
    order: str
    is_number: bool


class Filter(NamedTuple):
    """`options` are the texts to choose from. Line.chosen has a row's text at the index of the filter."""

    label: str
    options: list[str]


class Line(NamedTuple):
    """A row of the table. `report` links to the run's report, if there is one."""

    verdict: str
    reasons: str
    report: str | None
    chosen: list[str]
    cells: list[Cell]


def _measured(name: str) -> ReportColumn:
    quantity = BY_NAME[name]
    return ReportColumn(
        quantity.title, quantity.about, lambda row: formats.text(quantity.unit, row[name], quantity.digits),
        lambda row: row[name],
    )  # fmt: skip


def ledger(row: Row) -> str:
    """The state of the ledger, with the number of missing packets if any."""
    if row["ledger_missing"] is None:
        return "–"
    if row["ledger_missing"]:
        return f"{number(row['ledger_missing'])} missing"
    return "broken" if Area.LEDGER.is_in(row["reasons"]) else "complete"


def fidelity(row: Row) -> str:
    """Whether the run kept its fidelity limits, and its largest lateness."""
    if row["verdict"] == MISSING:
        return "–"
    late = "" if row["lateness_max_us"] is None else f", {number(row['lateness_max_us'], 3)} µs"
    return ("failed" if Area.FIDELITY.is_in(row["reasons"]) else "kept") + late


def table(sweep: Stored, exists: Callable[[str], bool]) -> tuple[list[ReportColumn], list[Filter], list[Line]]:
    """Columns, filters and lines of a sweep. `exists` says whether a path below the sweep's directory exists."""
    keys = [*ALWAYS, *(key for key in sweep.parameters if key not in ALWAYS)]
    columns = [_parameter(sweep, key) for key in keys]
    columns += [_measured("buffer_over_bdp"), _measured("repetition")]
    columns += [column for column in map(_measured, SWEEP_PAGE) if _worth_it(column, sweep.rows)]
    columns += [
        ReportColumn("ledger", "packets and TCP events that did not reach the analysis", ledger, ledger, False),
        ReportColumn(
            "fidelity", "whether the emulation kept its limits; largest lateness of a frame", fidelity,
            lambda row: row["lateness_max_us"], False,
        ),
    ]  # fmt: skip
    verdicts = [verdict for verdict in (VALID, NOT_VALID, MISSING) if any(r["verdict"] == verdict for r in sweep.rows)]
    filters = [Filter(LABELS.get(key, key.replace("_", " ")), _texts(sweep, key)) for key in keys]
    filters.append(Filter("verdict", verdicts))
    lines = []
    for row in sweep.rows:
        report = f"{row['directory']}/{PAGE}"
        lines.append(
            Line(
                row["verdict"],
                row["reasons"],
                report if exists(report) else None,
                [*(value_text(sweep, row, key) for key in keys), row["verdict"]],
                [_cell(column, row) for column in columns],
            )
        )
    return columns, filters, lines


def value_text(sweep: Stored, row: Row, key: str) -> str:
    """A parameter's value for a column whose title names the parameter."""
    value = sweep.value(row, key)
    if key in ("flows", "buf", "mtu", "ecn_threshold"):
        return number(value)
    return str(value) if isinstance(value, str) else with_unit(key, value) or words(key, value) if value else "–"


def _texts(sweep: Stored, key: str) -> list[str]:
    rows = sorted(sweep.rows, key=lambda row: rank(sweep.value(row, key)))
    return list(dict.fromkeys(value_text(sweep, row, key) for row in rows))


def _parameter(sweep: Stored, key: str) -> ReportColumn:
    return ReportColumn(
        LABELS.get(key, key.replace("_", " ")), "a parameter of the run",
        lambda row: value_text(sweep, row, key), lambda row: sweep.value(row, key),
        all(isinstance(sweep.value(row, key), (int, float)) for row in sweep.rows),
    )  # fmt: skip


def _worth_it(column: ReportColumn, rows: list[Row]) -> bool:
    """Whether the column has information: marks if there are any, attempts if any run had more than one, any other
    column if any run has a value.
    """
    orders = {column.order(row) for row in rows}
    if column.title == "attempts":
        return max((order for order in orders if order), default=1) > 1
    return bool(orders - {None, 0}) if column.title == "marks" else orders != {None}


def _cell(column: ReportColumn, row: Row) -> Cell:
    text, order = column.text(row), column.order(row)
    return Cell(text, "" if order is None or str(order) == text else f"{order:.9g}" if isinstance(order, float) else
                str(order), column.is_number)  # fmt: skip
