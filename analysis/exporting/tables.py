# SPDX-License-Identifier: MIT
"""Exports a run's tables as CSV or Parquet files, with every column's type and meaning in schema.json."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from analysis.read import complete_run
from lib import parquet
from lib.errors import InputError
from wire import formats

CSV_ROWS = 1 << 16  # turned into text at once: pl.sink_csv would hold many row groups
TABLES = ("postcards", "tcp", "joined", "distributions", "flows")
# Columns that are not fields in wire/*.def.
MEANINGS = {
    "enqueue_mono_ns": "CLOCK_MONOTONIC when the packet arrived at the queue",
    "rx_mono_ns": "CLOCK_MONOTONIC when the collector's kernel got the postcard",
    "flow": "number of the 5-tuple in this run; in distributions: the experiment's flow id, null for no single flow",
    "five_tuple": "source > destination and protocol of the flow",
    "in_flight_packets": "packets_out - sacked_out - lost_out + retrans_out, else (snd_nxt - snd_una) / mss",
    "dropped": "the queue policy refused the packet",
    "ce_marked": "this switch set CE",
    "seq": "TCP sequence number, unwrapped beyond 32 bits",
    "payload_bytes": "TCP payload of the packet",
    "new_bytes": "payload of this packet that left the queue for the first time",
    "retransmission": "its bytes had arrived at the queue before",
    "reordered": "first arrival of its bytes, but after later bytes",
    "trace_age_ns": "from the trace record that gives the window to the packet's arrival at the queue",
    "packet_rtt_ns": "from arrival at the queue to the ACK that covers the packet's last byte, if it was sent once",
    "retransmit_mono_ns": "CLOCK_MONOTONIC of the trace's record of this retransmission",
    "what": "which distribution (analysis/README.md)",
    "value": "a value that occurred, in the unit that `what` names",
    "count": "how often it occurred in the measurement window; in distributions over time: for how many ns",
}


def write(repetition: Path, output: Path, kind: str) -> int:
    """Exports all existing tables into the empty directory `output`. Returns the number of rows. Raises InputError,
    OSError.
    """
    complete_run.check(repetition, derived=[f"{name}.parquet" for name in TABLES])
    tables = [name for name in TABLES if (repetition / f"{name}.parquet").is_file()]
    if not tables:
        raise InputError(f"{repetition}: has no tables; allowed: a run that is analysed and whose tables were kept")
    schema: dict[str, Any] = {}
    rows = 0
    for name in tables:
        source, target = repetition / f"{name}.parquet", output / f"{name}.{kind}"
        frame = pl.scan_parquet(source)
        with readable(source):
            columns, count = frame.collect_schema(), int(frame.select(pl.len()).collect().item())
            if kind == "csv":
                with target.open("wb") as file:
                    pl.DataFrame(schema=columns).write_csv(file)
                    for part in (p for slab in parquet.slabs(source) for p in slab.iter_slices(CSV_ROWS)):
                        part.write_csv(file, include_header=False)
        if kind != "csv":
            shutil.copyfile(source, target)
        rows += count
        schema[name] = {
            "file": target.name,
            "rows": count,
            "columns": {column: {"type": _type(kind), "meaning": meaning(column)} for column, kind in columns.items()},
        }
    (output / "schema.json").write_text(json.dumps(schema, indent=1) + "\n")
    return rows


@contextmanager
def readable(table: Path) -> Iterator[None]:
    """Turns the errors of reading a damaged `table` into InputError."""
    try:
        with parquet.reading():
            yield
    except pl.exceptions.PolarsError as error:
        fault = str(error).splitlines()[0]
        raise InputError(f"{table}: is not a whole table: {fault}; make replay writes it anew from raw files") from None


def _type(kind: Any) -> str:
    """The name of a polars type, without the values of an enumeration."""
    return "text" if kind in (pl.String, pl.Categorical) or isinstance(kind, pl.Enum) else str(kind).lower()


def meaning(column: str) -> str:
    """The meaning of a column, from MEANINGS or from its remark in wire/*.def."""
    return MEANINGS.get(column) or _remarks().get(column, "")


def _remarks() -> dict[str, str]:
    remarks: dict[str, str] = {}
    for name in ("tcp_record", "postcard"):
        text = (formats.HERE / f"{name}.def").read_text()
        remarks.update(re.findall(r"^FIELD\(\d+, (\w+)\)\s*(?:// (.*))?$", text, re.M))
    return remarks
