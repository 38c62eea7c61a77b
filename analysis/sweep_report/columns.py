# SPDX-License-Identifier: MIT
"""The table of runs: its columns, each with a text and a sorting key for every run, and its filters.

A parameter that is the same for all runs has no column, except those of ALWAYS: the page states it once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from analysis.amounts import number, percent, si
from analysis.figures.sweep.common import with_unit, words
from runs.names import PAGE
from runs.stored_sweep import MISSING, NOT_VALID, VALID, Row, Stored
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


def _measured(column: str, title: str, about: str, show: Callable[[Any], str] = number) -> ReportColumn:
    return ReportColumn(title, about, lambda row: show(row[column]), lambda row: row[column])


def _delay(delay_ns: Any) -> str:
    return si(None if delay_ns is None else delay_ns / 1e9, "s")


MEASURED = (
    _measured("utilization_mean", "utilization", "mean over the measurement window", percent),
    _measured("utilization_p01", "p1", "1st percentile of utilization over windows of ten RTTs", percent),
    _measured("queue_nonempty_fraction", "found a queue", "share of packets that found the queue not empty", percent),
    _measured("goodput_bps", "goodput", "TCP payload that left the queue for the first time", lambda v: si(v, "b/s")),
    _measured("depth_p50_packets", "depth p50", "queue depth that packets found on arrival, median, packets"),
    _measured("depth_p99_packets", "depth p99", "queue depth that packets found on arrival, 99th percentile, packets"),
    _measured("queue_delay_p50_ns", "delay p50", "queueing delay of packets that were not dropped, median", _delay),
    _measured(
        "queue_delay_p99_ns", "delay p99", "queueing delay of packets that were not dropped, 99th percentile", _delay
    ),
    _measured("drops", "drops", "packets that the queue dropped in the measurement window"),
    _measured("marks", "marks", "packets that the queue marked in the measurement window"),
    _measured("jain_index", "Jain", "fairness of the flows' goodput, 1 is equal"),
    _measured(
        "delta",
        "Δ",
        "windows, from the 1st to the 99th percentile, are within a factor of Δ of the fair share",
        lambda v: number(v, 3),
    ),
    _measured("attempt", "attempts", "attempts until the run was valid or given up"),
    _measured("wall_s", "wall s", "seconds that the run took, without its analysis", lambda v: number(v, 3)),
)


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
    columns += [_measured("buffer_over_bdp", "B/BDP", "buffer over the BDP", lambda v: number(v, 3))]
    columns += [_measured("repetition", "rep", "repetition")]
    columns += [column for column in MEASURED if _worth_it(column, sweep.rows)]
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
    rows = sorted(sweep.rows, key=lambda row: _rank(sweep.value(row, key)))
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


def _rank(value: Any) -> tuple[bool, Any]:
    return (isinstance(value, str), value) if value is not None else (True, "")
