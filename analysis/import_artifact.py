# SPDX-License-Identifier: MIT
"""The command `import-artifact`: reads postcards of Spang et al.'s artifact from a pcap or pcapng capture, or
from concatenated datagrams. Prints a summary of the file, and writes the postcards as a table like postcards.parquet,
or prints the first ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from analysis.artifact import UDP_PORT, Imported, read
from analysis.tables import table, write_table
from lib import files
from lib.errors import BadValue, InputError, SpecError, fail
from lib.exit_codes import Exit
from lib.terminal import one_line
from lib.words import PATHS, Key, require

SHOWN_ROWS = 10
MOST_PORTS = 8  # limit of the ports named in the summary
UNSHOWN = ("flow", "flags")  # five_tuple and drop_control have the same information


KEYS = {
    "file": Key("a pcap or pcapng capture, or a file of bare datagrams one after the other", values=PATHS),
    "output": Key("the Parquet file to write (default: none, print the first rows instead)", values=PATHS),
}


def run(given: dict[str, Any], errors: list[BadValue]) -> int:
    """Prints a summary of the file. Writes the whole table or, after an error, nothing; without `output`, prints the
    first rows. Returns the exit status. Raises SpecError, InputError.
    """
    require(given, errors, file="say which capture")
    if errors:
        raise SpecError(errors)
    file, output = Path(given["file"]), Path(given["output"]) if "output" in given else None
    imported = read(file)
    print(f"{file}: {describe(imported)}")
    if output is None:
        show(imported)
    else:
        try:
            write(output, file, imported)
        except OSError as error:
            raise InputError(f"{output}: cannot write it: {one_line(error)}; nothing was written") from None
    return fail([imported.damage], Exit.DOUBTFUL) if imported.damage else Exit.DONE


def describe(imported: Imported) -> str:
    """The summary of a file in one line: postcards, flows, queues, other packets."""
    columns = imported.columns
    parts = [f"{imported.postcards} postcards"]
    if imported.postcards:
        dropped = int((columns["drop_control"] != 0).sum())
        ports = [str(port) for port in columns["egress_port"].unique().sort()]
        named = f"queue of port {ports[0]}" if len(ports) == 1 else f"queues of ports {', '.join(ports)}"
        queues = named if len(ports) <= MOST_PORTS else f"queues of {len(ports)} ports"
        parts = [
            f"{imported.postcards} postcards of {len(imported.flows)} flows ({dropped} marked as dropped)",
            queues,
            f"at most {columns['departure_depth_cells'].to_numpy().max()} cells",
        ]
    others = {
        f"packets to UDP port {UDP_PORT} that are not postcards": imported.not_postcards,
        f"packets to UDP port {UDP_PORT} cut short by the capture": imported.cut_short,
        "other packets": imported.other_packets,
    }
    return "; ".join(parts + [f"{kind}: {count}" for kind, count in others.items() if count])


def show(imported: Imported) -> None:
    """Prints the first rows, without columns of nulls."""
    frame = table(imported.columns, imported.flows).head(SHOWN_ROWS)
    shown = [name for name in frame.columns if name not in UNSHOWN and frame[name].null_count() < len(frame)]
    with pl.Config(tbl_cols=-1, tbl_width_chars=200, tbl_hide_dataframe_shape=True, fmt_str_lengths=100):
        if shown:
            print(frame.select(shown))


def write(output: Path, source: Path, imported: Imported) -> None:
    """Writes the table in a scratch directory, then renames it, so `output` is never an incomplete table. Raises
    OSError; InputError if the directory does not exist, or if the table would replace its source.
    """
    if not output.parent.is_dir():
        raise InputError(f"{output}: there is no directory {output.parent}; make it first")
    if output.exists() and output.samefile(source):
        raise InputError(f"{output}: is the capture itself; give --output another name")
    with files.complete(output) as part:
        write_table(part, imported.columns, imported.flows)
