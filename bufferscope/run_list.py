# SPDX-License-Identifier: MIT
"""The command `runs`: the run table in the terminal, the run that was analysed last at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars

from analysis.figures.common import si
from lib.errors import BadValue, InputError, SpecError
from lib.terminal import printable
from lib.words import PATHS, SWITCH, Key
from runs import run_table

KEYS = {
    "results": Key("the directory with the runs", "results", PATHS),
    "valid": Key("1: only valid runs; 0: only runs that are not valid", "", SWITCH),
    "csv": Key("1: every column as CSV", "0", SWITCH),
    **{
        name: Key("only the runs with this value in the run table (analysis/README.md)")
        for name in run_table.COLUMNS
        if name != "valid"
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
    rows = [HEAD, *(_cells(row) for row in table.iter_rows(named=True))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print(printable("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()))
    return 0


HEAD = (
    "run", "clock", "cc", "flows", "rate", "RTT", "buffer (p)", "buffer (BDP)", "utilization (mean)", "worst 1 %",
    "depth p50 (p)", "p99 (p)", "delay p50 (ms)", "p99 (ms)", "drops (p)", "verdict",
)  # fmt: skip


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    def shown(name: str, form: str = "") -> str:
        return "-" if row[name] is None else format(row[name], form)

    rate, rtt = row["rate_bps"], row["rtt_ns"]
    return (
        row["run"], shown("clock"), shown("cc"), shown("flows"), "-" if rate is None else si(rate, "b/s"),
        "-" if rtt is None else si(rtt / 1e9, "s"), shown("buffer_packets"), shown("buffer_over_bdp", ".3g"),
        shown("utilization_mean", ".2%"), shown("utilization_p01", ".2%"), shown("depth_p50_packets", ".0f"),
        shown("depth_p99_packets", ".0f"), _ms(row["queue_delay_p50_ns"]), _ms(row["queue_delay_p99_ns"]),
        shown("drops"),
        "valid" if row["valid"] else f"NOT VALID: {row['reasons']}",
    )  # fmt: skip


def _ms(delay_ns: int | None) -> str:
    return "-" if delay_ns is None else f"{delay_ns / 1e6:.4g}"


def _value(name: str, text: str) -> Any:
    """`text` in the type of the column. Raises SpecError if the column is not text and `text` is not a number."""
    kind = run_table.SCHEMA[name]
    if name == "valid":
        return text == "1"
    try:
        return text if kind == polars.String() else float(text) if kind == polars.Float64() else int(text)
    except ValueError:
        raise SpecError([BadValue(name.upper(), text, "is not a number; allowed: a number as in the table")]) from None
