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
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import DTypeLike

from analysis.join.join import NONE, Segments
from analysis.join.trace_by_flow import TraceByFlow
from analysis.read import imported
from analysis.read.flows import MAX_FLOWS, Flows
from analysis.read.load import Run
from analysis.read.raw import Columns, known
from wire import wire

CARD = wire.POSTCARD.const
ROW_GROUP = 1 << 20
ZSTD_LEVEL = 1  # level 3 takes a third longer and saves a hundredth of the size
MOST_CATEGORIES = 0xFFFF  # from this many flows on, 5-tuples are text instead of an Enum
FIRST_COLUMNS = ("enqueue_mono_ns", "mono_ns", "rx_mono_ns", "flow")


def write_raw_tables(directory: Path, run: Run) -> None:
    """Writes postcards.parquet and tcp.parquet, the raw records. Raises OSError, for example if the disk is full."""
    write_table(directory / "postcards.parquet", card_columns(run), run.flows)
    write_table(directory / "tcp.parquet", tcp_columns(run.tcp), run.flows)


def write_joined(directory: Path, run: Run, queue: Columns, segments: Segments, trace: TraceByFlow) -> None:
    """Writes joined.parquet. Raises OSError, for example if the disk is full."""
    write_table(directory / "joined.parquet", joined_columns(run, queue, segments, trace), run.flows)


def card_columns(run: Run) -> Mapping[str, np.ndarray | pl.Series]:
    """The postcards; columns that an imported run does not have are null."""
    missing = imported.unavailable(run.experiment)
    return {
        name: nulls(name, len(values), values.dtype) if name in missing else values
        for name, values in run.postcards.items()
    }


def nulls(name: str, rows: int, kind: DTypeLike) -> pl.Series:
    """A column of nulls."""
    return pl.Series(name, np.zeros(rows, dtype=kind)).set(pl.repeat(True, rows, eager=True), None)


def tcp_columns(tcp: Columns) -> dict[str, np.ndarray | pl.Series]:
    """The trace; unknown fields are null."""
    some_unknown = tcp["unknown_fields"].any()
    return {
        name: pl.Series(name, values).set(pl.Series(~known(tcp, name)), None) if some_unknown else values
        for name, values in tcp.items()
        if name != "unknown_fields"
    }


def joined_columns(
    run: Run, queue: Columns, segments: Segments, trace: TraceByFlow
) -> dict[str, np.ndarray | pl.Series]:
    """The joined table. A trace field is null if the packet has no trace record, or if the record lacks the field."""
    rows = segments.rows
    whole = len(rows) == len(queue["flags"])

    def card(name: str) -> np.ndarray:
        return queue[name] if whole else queue[name][rows]

    def traced(name: str, at: np.ndarray) -> pl.Series:
        values = trace.in_flight if name == "in_flight_packets" else run.tcp[name]
        missing = at == NONE
        if not len(values):
            return pl.Series(name, np.zeros(len(at), dtype=values.dtype)).set(pl.Series(missing), None)
        if name != "in_flight_packets":  # known for every record: estimated if the record lacks it
            missing = missing | ~known(run.tcp, name)[np.maximum(at, 0)]
        return pl.Series(name, values[np.maximum(at, 0)]).set(pl.Series(missing), None)

    came, flags = card("enqueue_mono_ns"), card("flags")
    unknown_sojourn = nulls("sojourn_ns", len(rows), np.int64)
    return {
        "enqueue_mono_ns": came,
        "flow": card("flow"),
        "sojourn_ns": card("sojourn_ns")
        if "sojourn_ns" not in imported.unavailable(run.experiment)
        else unknown_sojourn,
        "depth_packets": card("depth_packets"),
        "dropped": (flags & CARD["POSTCARD_DROPPED"]) != 0,
        "ce_marked": (flags & CARD["POSTCARD_CE_MARKED"]) != 0,
        "seq": segments.seq,
        "payload_bytes": segments.payload_bytes,
        "new_bytes": segments.new_bytes,
        "retransmission": segments.retransmission,
        "reordered": segments.reordered,
        "trace_age_ns": (pl.Series(came) - traced("mono_ns", segments.trace_row)).alias("trace_age_ns"),
        "cwnd_packets": traced("cwnd_packets", segments.trace_row),
        "in_flight_packets": traced("in_flight_packets", segments.trace_row),
        "srtt_us": traced("srtt_us", segments.trace_row),
        "ca_state": traced("ca_state", segments.trace_row),
        "packet_rtt_ns": (traced("mono_ns", segments.ack_row) - pl.Series(came)).alias("packet_rtt_ns"),
        "retransmit_mono_ns": traced("mono_ns", segments.retransmit_row).alias("retransmit_mono_ns"),
    }


def table(columns: Mapping[str, np.ndarray | pl.Series], flows: Flows) -> pl.DataFrame:
    """The columns in file order, with the 5-tuple of each row's flow unless there are MAX_FLOWS flows or more.

    An Enum stores each 5-tuple once, but every reader of the file must read the whole list of 5-tuples. From
    MOST_CATEGORIES 5-tuples on, strings are smaller and faster: with 300,000 connections and 6 million rows the file is
    a third of the size.
    """
    first = [name for name in FIRST_COLUMNS if name in columns]
    frame = pl.DataFrame(dict(columns)).select(pl.col(first), pl.exclude(first))
    if len(flows) < MOST_CATEGORIES:
        frame = frame.with_columns(five_tuple=pl.col("flow").cat.to(pl.Enum(flows.texts())))
    elif len(flows) < MAX_FLOWS:
        frame = frame.with_columns(five_tuple=pl.Series(flows.texts()).gather(frame["flow"]))
    return frame


def write_table(path: Path, columns: Mapping[str, np.ndarray | pl.Series], flows: Flows) -> None:
    """Writes columns and their flows' 5-tuples to a Parquet file. Raises OSError, for example if the disk is full."""
    write_frame(path, table(columns, flows))


def write_frame(path: Path, frame: pl.DataFrame) -> None:
    """Writes a Parquet file. Raises OSError, for example if the disk is full."""
    try:
        frame.write_parquet(path, compression="zstd", compression_level=ZSTD_LEVEL, row_group_size=ROW_GROUP)
    except pl.exceptions.ComputeError as error:  # polars has the errno only in the text of its exception
        code = re.search(r"\(os error (\d+)\)", str(error))
        if code is None:
            raise
        raise OSError(int(code[1]), os.strerror(int(code[1])), str(path)) from error
