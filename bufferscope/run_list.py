# SPDX-License-Identifier: MIT
"""The command `runs`: the run table in the terminal, the run that was analysed last at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars

from analysis import amounts
from lib.errors import BadValue, InputError, SpecError
from lib.terminal import printable
from lib.words import PATHS, SWITCH, Key
from runs import run_table
from runs.quantities import BY_NAME, QUANTITIES, TIME_NS, Quantity

KEYS = {
    "results": Key("the directory with the runs", "results", PATHS),
    "valid": Key("1: only valid runs; 0: only runs that are not valid", "", SWITCH),
    "csv": Key("1: every column as CSV", "0", SWITCH),
    **{
        quantity.name: Key(f"only the runs with this value in the run table ({quantity.about or 'a setting'})")
        for quantity in QUANTITIES
        if quantity.column and quantity.name != "valid"
    },
}


def run(given: dict[str, Any], errors: list[BadValue]) -> int:
    """Prints the table. Returns the exit status. Raises SpecError, InputError."""
    if errors:
        raise SpecError(errors)
    as_csv, results = given.pop("csv", "0") == "1", Path(given.pop("results", "results"))
    table = run_table.read(results).sort("summary_mtime_ns", "run", nulls_last=False)
    if table.is_empty():
        raise InputError(f"{results}: has no analysed run; run one (bufferscope experiment), or name another RESULTS=")
    for name, text in given.items():
        table = table.filter(polars.col(name) == _value(name, text))
    if table.is_empty():
        raise InputError(f"{results}: no run has {', '.join(f'{name}={text}' for name, text in given.items())}")
    if as_csv:
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
        return amounts.text(quantity.unit, value)
    return quantity.unit.text(value).removesuffix(TIME_NS.symbol).replace(" ", "")


def _value(name: str, text: str) -> Any:
    """`text` in the type of the column. Raises SpecError if the column is not text and `text` is not a number."""
    kind = BY_NAME[name].kind
    try:
        return text == "1" if kind is bool else kind(text)
    except ValueError:
        raise SpecError([BadValue(name.upper(), text, "is not a number; allowed: a number as in the table")]) from None
