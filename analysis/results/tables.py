# SPDX-License-Identifier: MIT
"""The tables postcards, tcp and joined as Parquet: zstd, sorted by time, a million rows per group.

The columns of postcards and tcp are the fields of wire/*.def, except for some that analysis/read/raw.py replaces or
adds; their names have units and clocks. In all three tables, `flow` (a number) and `five_tuple` (text; left out with
MAX_FLOWS flows or more) replace addresses and ports. joined.parquet has one row per TCP packet of the bottleneck queue,
in order of arrival.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import DTypeLike
from polars.io.plugins import register_io_source

from analysis.join.in_flight import InFlight
from analysis.join.join import NONE, Segments
from analysis.read import imported
from analysis.read.columns import Columns, rows_of, slabs
from analysis.read.flows import MAX_FLOWS, Flows
from analysis.read.load import Run
from analysis.read.postcards import POLICY_VALUE
from analysis.read.raw import known
from wire import wire

CARD = wire.POSTCARD.const
ROW_GROUP = 1 << 20
ZSTD_LEVEL = 1  # level 3 takes a third longer and saves a hundredth of the size
MOST_CATEGORIES = 0xFFFF  # from this many flows on, 5-tuples are text instead of an Enum
FIRST_COLUMNS = ("enqueue_mono_ns", "mono_ns", "rx_mono_ns", "flow")


Part = Mapping[str, np.ndarray | pl.Series]  # some rows of a table


def write_raw_tables(directory: Path, run: Run) -> None:
    """Writes postcards.parquet and tcp.parquet, the raw records. Raises OSError, for example if the disk is full."""
    cards = len(run.postcards["flow"])
    write_table(directory / "postcards.parquet", cards, lambda rows: card_columns(run, rows), run.flows)
    some_unknown = any(run.tcp["unknown_fields"][rows].any() for rows in slabs(len(run.tcp["flow"])))
    records = len(run.tcp["flow"])
    write_table(directory / "tcp.parquet", records, lambda rows: tcp_columns(run.tcp, rows, some_unknown), run.flows)


def write_joined(directory: Path, run: Run, queue: Columns, segments: Segments, in_flight: InFlight) -> None:
    """Writes joined.parquet. Raises OSError, for example if the disk is full."""

    def part(rows: slice) -> Part:
        return joined_columns(run, queue, segments, in_flight, rows)

    write_table(directory / "joined.parquet", len(segments.rows), part, run.flows)


def card_columns(run: Run, rows: slice = slice(None)) -> Part:
    """Rows of the postcards; columns that an imported run does not have are null."""
    missing = imported.unavailable(run.experiment)
    part = rows_of(run.postcards, rows)
    return {
        name: nulls(name, len(values), values.dtype) if name in missing else values for name, values in part.items()
    }


def nulls(name: str, rows: int, kind: DTypeLike) -> pl.Series:
    """A column of nulls."""
    return pl.Series(name, np.zeros(rows, dtype=kind)).set(pl.repeat(True, rows, eager=True), None)


def tcp_columns(tcp: Columns, rows: slice = slice(None), some_unknown: bool = True) -> Part:
    """Rows of the trace; unknown fields are null. `some_unknown`: whether any row of the trace has unknown fields."""
    part = rows_of(tcp, rows)
    return {
        name: pl.Series(name, values).set(pl.Series(~known(part, name)), None) if some_unknown else values
        for name, values in part.items()
        if name != "unknown_fields"
    }


def joined_columns(
    run: Run, queue: Columns, segments: Segments, in_flight: InFlight, part: slice = slice(None)
) -> Part:
    """Rows of the joined table. A trace field is null if the packet has no trace record, or if the record lacks the
    field.
    """
    rows = segments.rows[part]

    def card(name: str) -> np.ndarray:
        return queue[name][rows]

    def traced(at: np.ndarray, *names: str) -> Iterator[pl.Series]:
        missing = at == NONE
        at = np.where(missing, at.max(initial=0), at)  # a row near the others: they are read together
        records = len(run.tcp["flow"])
        unknown = run.tcp["unknown_fields"][at] if records else None
        for name in names:
            values = in_flight.packets if name == "in_flight_packets" else run.tcp[name]
            taken, lacks = values[at] if records else np.zeros(len(at), dtype=values.dtype), missing
            if unknown is not None and name != "in_flight_packets":  # which is estimated if the record lacks it
                lacks = missing | ~known({"unknown_fields": unknown}, name)
            yield pl.Series(name, taken).set(pl.Series(lacks), None)

    came, flags = card("enqueue_mono_ns"), card("flags")
    unknown_sojourn = nulls("sojourn_ns", len(rows), np.int64)
    traced_ns, *windows = traced(
        segments.trace_row[part], "mono_ns", "cwnd_packets", "in_flight_packets", "srtt_us", "ca_state"
    )
    (acked_ns,) = traced(segments.ack_row[part], "mono_ns")
    (resent_ns,) = traced(segments.retransmit_row[part], "mono_ns")
    return {
        "enqueue_mono_ns": came,
        "flow": card("flow"),
        "sojourn_ns": card("sojourn_ns")
        if "sojourn_ns" not in imported.unavailable(run.experiment)
        else unknown_sojourn,
        "depth_packets": card("depth_packets"),
        **({POLICY_VALUE: card(POLICY_VALUE)} if POLICY_VALUE in queue else {}),
        "dropped": (flags & CARD["POSTCARD_DROPPED"]) != 0,
        "ce_marked": (flags & CARD["POSTCARD_CE_MARKED"]) != 0,
        "seq": segments.seq[part],
        "payload_bytes": segments.payload_bytes[part],
        "new_bytes": segments.new_bytes[part],
        "retransmission": segments.retransmission[part],
        "reordered": segments.reordered[part],
        "trace_age_ns": (pl.Series(came) - traced_ns).alias("trace_age_ns"),
        **{series.name: series for series in windows},
        "packet_rtt_ns": (acked_ns - pl.Series(came)).alias("packet_rtt_ns"),
        "retransmit_mono_ns": resent_ns.alias("retransmit_mono_ns"),
    }


def table(columns: Part, flows: Flows, texts: Sequence[str]) -> pl.DataFrame:
    """The columns in file order, with the 5-tuple of each row's flow unless there are MAX_FLOWS flows or more.

    An Enum stores each 5-tuple once, but every reader of the file must read the whole list of 5-tuples. From
    MOST_CATEGORIES 5-tuples on, strings are smaller and faster: with 300,000 connections and 6 million rows the file is
    a third of the size.
    """
    first = [name for name in FIRST_COLUMNS if name in columns]
    frame = pl.DataFrame(dict(columns)).select(pl.col(first), pl.exclude(first))
    if len(flows) < MOST_CATEGORIES:
        frame = frame.with_columns(five_tuple=pl.col("flow").cat.to(pl.Enum(texts)))
    elif len(flows) < MAX_FLOWS:
        frame = frame.with_columns(five_tuple=pl.Series(texts).gather(frame["flow"]))
    return frame


def write_table(path: Path, rows: int, part: Callable[[slice], Part], flows: Flows) -> None:
    """Writes the rows of a table and their flows' 5-tuples to a Parquet file, `part` by part. Raises OSError, for
    example if the disk is full.
    """
    texts = flows.texts() if len(flows) < MAX_FLOWS else []
    write_frames(path, rows, lambda rows: table(part(rows), flows, texts))


def write_frames(path: Path, rows: int, frame: Callable[[slice], pl.DataFrame]) -> None:
    """Writes a Parquet file of so many rows, `frame` by frame. Raises OSError, for example if the disk is full."""

    def frames(*options: object) -> Iterator[pl.DataFrame]:
        return map(frame, slabs(rows))

    empty = frame(slice(0, 0))
    _write(path, register_io_source(frames, schema=empty.schema) if rows else empty.lazy())


def write_frame(path: Path, frame: pl.DataFrame) -> None:
    """Writes a Parquet file. Raises OSError, for example if the disk is full."""
    _write(path, frame.lazy())


def _write(path: Path, frame: pl.LazyFrame) -> None:
    try:
        frame.sink_parquet(path, compression="zstd", compression_level=ZSTD_LEVEL, row_group_size=ROW_GROUP)
    except pl.exceptions.ComputeError as error:  # polars has the errno only in the text of its exception
        code = re.search(r"\(os error (\d+)\)", str(error))
        if code is None:
            raise
        raise OSError(int(code[1]), os.strerror(int(code[1])), str(path)) from error
