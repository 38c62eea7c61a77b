# SPDX-License-Identifier: MIT
"""The command `runs`: the run table in the terminal, the run that was analysed last at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars
from pydantic import create_model

from analysis.wording import formats
from lib.errors import InputError
from lib.keys import Keys, field, flag
from lib.terminal import printable
from lib.words import SWITCH
from runs import run_table
from runs.quantities import QUANTITIES, TIME_NS, Quantity


class Options(Keys):
    results: Path = field("the directory with the runs", default="results")
    valid: bool | None = field("1: only valid runs; 0: only runs that are not valid", values=SWITCH)
    csv: bool = flag("1: every column as CSV")


def _column(quantity: Quantity) -> Any:
    """The field of a column of the run table."""
    about = f"only the runs with this value in the run table ({quantity.about or 'a setting'})"
    if quantity.kind is bool:
        return (bool | None, field(about, values=SWITCH))
    return (str | float | None, field(about, str if quantity.kind is str else _number))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("is not a number; allowed: a number as in the table") from None


_COLUMNS: dict[str, Any] = {each.name: _column(each) for each in QUANTITIES if each.column and each.name != "valid"}
Asked = create_model("Asked", __base__=Options, **_COLUMNS)


def run(asked: Options) -> int:
    """Prints the table. Returns the exit status. Raises InputError."""
    results = asked.results
    table = run_table.read(results).sort("summary_mtime_ns", "run", nulls_last=False)
    if table.is_empty():
        raise InputError(f"{results}: has no analysed run; run one (bufferscope experiment), or name another RESULTS=")
    given = asked.model_fields_set - {"csv", "results"}
    wanted = {name: getattr(asked, name) for name in Asked.model_fields if name in given}
    for name, value in wanted.items():
        table = table.filter(polars.col(name) == value)
    if table.is_empty():
        raise InputError(f"{results}: no run has {', '.join(f'{name}={value}' for name, value in wanted.items())}")
    if asked.csv:
        print(table.write_csv(), end="")
        return 0
    rows = [(*(quantity.listed for quantity in LISTED), "verdict")]
    for row in table.iter_rows(named=True):
        verdict = "valid" if row["valid"] else f"NOT VALID: {row['reasons']}"
        rows.append((*(_cell(quantity, row[quantity.name]) for quantity in LISTED), verdict))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for cells in rows:
        print(printable("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()))
    return 0


LISTED = tuple(quantity for quantity in QUANTITIES if quantity.listed)


def _cell(quantity: Quantity, value: Any) -> str:
    """Measured times are in the unit of the column's head. Rates and times that people set have the unit that suits."""
    if value is None:
        return "-"
    if quantity.kind is str:
        return str(value)
    if quantity.unit.base and quantity.path.startswith("spec."):
        return formats.text(quantity.unit, value)
    return quantity.unit.text(value).removesuffix(TIME_NS.symbol).replace(" ", "")
