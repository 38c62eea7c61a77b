# SPDX-License-Identifier: MIT
"""python -m analysis import-artifact FILE [--output TABLE.parquet]: postcards of the first seed paper's artifact.

FILE is a pcap or pcapng capture, or a file of concatenated datagrams. Prints a summary of the file, and writes the
postcards as a table like postcards.parquet, or prints the first ones. Exit status as for python -m analysis.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import polars as pl

from analysis.artifact import UDP_PORT, Imported, read
from analysis.tables import table, write_table
from lib.errors import InputError

OK, FAILED, DAMAGED = 0, 1, 3
SHOWN_ROWS = 10
DESCRIPTION = "Reads postcards that the first seed paper's artifact sent, and shows them or writes them as a table."
MOST_PORTS = 8  # limit of the ports named in the summary
UNSHOWN = ("flow", "flags")  # five_tuple and drop_control have the same information


def main(arguments: list[str]) -> int:
    """Prints the summary; errors on stderr, one line each. Returns the exit status. The table appears only complete."""
    parser = argparse.ArgumentParser(prog="python -m analysis import-artifact", description=DESCRIPTION)
    parser.add_argument("file", type=Path, help="pcap or pcapng capture, or bare datagrams one after the other")
    parser.add_argument("--output", type=Path, help="the table to write (Parquet); default: show the first rows")
    options = parser.parse_args(arguments)
    try:
        imported = read(options.file)
        print(f"{options.file}: {describe(imported)}")
        if options.output is not None:
            write(options.output, options.file, imported)
        else:
            show(imported)
    except InputError as error:
        print(f"analysis: {error}", file=sys.stderr)
        return FAILED
    except OSError as error:
        print(
            f"analysis: {options.output}: cannot write it: {error.strerror}; nothing was written",
            file=sys.stderr,
        )
        return FAILED
    if imported.damage:
        print(f"analysis: {imported.damage}", file=sys.stderr)
        return DAMAGED
    return OK


def describe(imported: Imported) -> str:
    """The summary of a file in one line: postcards, flows, queues, other packets."""
    columns = imported.columns
    parts = [f"{imported.postcards} postcards"]
    if imported.postcards:
        dropped = int((columns["drop_control"] != 0).sum())
        ports = [str(port) for port in columns["egress_port"].unique().sort()]
        queues = f"queue of port {', '.join(ports)}" if len(ports) <= MOST_PORTS else f"queues of {len(ports)} ports"
        parts = [
            f"{imported.postcards} postcards of {len(imported.flows)} flows ({dropped} say dropped)",
            queues,
            f"at most {columns['departure_depth_cells'].to_numpy().max()} cells",
        ]
    others = {
        f"to UDP port {UDP_PORT} that are no postcards": imported.not_postcards,
        f"to UDP port {UDP_PORT} cut short by the capture": imported.cut_short,
        "others": imported.other_packets,
    }
    return "; ".join(parts + [f"{count} packets {kind}" for kind, count in others.items() if count])


def show(imported: Imported) -> None:
    """Prints the first rows, without columns of nulls."""
    frame = table(imported.columns, imported.flows).head(SHOWN_ROWS)
    shown = [name for name in frame.columns if name not in UNSHOWN and frame[name].null_count() < len(frame)]
    with pl.Config(tbl_cols=-1, tbl_width_chars=200, tbl_hide_dataframe_shape=True, fmt_str_lengths=100):
        if shown:
            print(frame.select(shown))


def write(output: Path, source: Path, imported: Imported) -> None:
    """Writes the table, which appears only complete. Raises OSError, and InputError if it would replace its source."""
    if not output.parent.is_dir():
        raise InputError(f"{output}: there is no directory {output.parent}; make it first")
    if output.exists() and output.samefile(source):
        raise InputError(f"{output}: is the capture itself; give --output another name")
    # In a shared directory, another user could place a link under any predictable name: write in a private directory.
    with tempfile.TemporaryDirectory(prefix=f".{output.name}.", dir=output.absolute().parent) as scratch:
        part = Path(scratch) / output.name
        write_table(part, imported.columns, imported.flows)
        part.replace(output)
