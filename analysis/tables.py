# SPDX-License-Identifier: MIT
"""The tables as Parquet (zstd, sorted by time, about a million rows a group): postcards, tcp, joined.

Columns are those of wire/*.def, addresses and ports replaced by `flow`, a number, and `five_tuple`, its text; units and
clocks are in the names. joined.parquet has one row for each TCP packet of the bottleneck queue, in order of arrival.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from analysis.flows import MAX_FLOWS
from analysis.join import NONE, Segments, Trace
from analysis.load import Run
from wire import wire

CARD = wire.POSTCARD.const
ROW_GROUP = 1 << 20
ZSTD_LEVEL = 1  # level 3 takes a third longer and saves a hundredth
FIRST_COLUMNS = ("enqueue_mono_ns", "mono_ns", "rx_mono_ns", "flow")


def write_tables(directory: Path, run: Run, queue: dict[str, np.ndarray], segments: Segments, trace: Trace) -> None:
    """Writes the three files. Raises OSError, for example when the disk is full."""
    names = [str(flow) for flow in run.flows]
    _write(directory / "postcards.parquet", run.postcards, names)
    _write(directory / "tcp.parquet", run.tcp | {"in_flight_packets": trace.in_flight}, names)
    _write(directory / "joined.parquet", joined_columns(run, queue, segments, trace), names)


def joined_columns(
    run: Run, queue: dict[str, np.ndarray], segments: Segments, trace: Trace
) -> dict[str, np.ndarray | pl.Series]:
    """The joined table. What the trace does not tell of a packet is null."""
    rows = segments.rows
    whole = len(rows) == len(queue["flags"])

    def card(name: str) -> np.ndarray:
        return queue[name] if whole else queue[name][rows]

    def traced(name: str, values: np.ndarray, at: np.ndarray) -> pl.Series:
        if not len(values):
            return pl.Series(name, np.zeros(len(at), dtype=values.dtype)).clear().extend_constant(None, len(at))
        return pl.Series(name, values[np.maximum(at, 0)]).set(pl.Series(at == NONE), None)

    came, flags, tcp = card("enqueue_mono_ns"), card("flags"), run.tcp
    ack_ns = traced("ack_mono_ns", tcp["mono_ns"], segments.ack_row)
    return {
        "enqueue_mono_ns": came,
        "flow": card("flow"),
        "sojourn_ns": card("sojourn_ns"),
        "depth_packets": card("depth_packets"),
        "depth_bytes": card("depth_bytes"),
        "dropped": (flags & CARD["POSTCARD_DROPPED"]) != 0,
        "ce_marked": (flags & CARD["POSTCARD_CE_MARKED"]) != 0,
        "seq": segments.seq,
        "payload_bytes": segments.payload_bytes,
        "new_bytes": segments.new_bytes,
        "retransmission": segments.retransmission,
        "reordered": segments.reordered,
        "trace_mono_ns": traced("trace_mono_ns", tcp["mono_ns"], segments.trace_row),
        "cwnd_packets": traced("cwnd_packets", tcp["cwnd_packets"], segments.trace_row),
        "in_flight_packets": traced("in_flight_packets", trace.in_flight, segments.trace_row),
        "srtt_us": traced("srtt_us", tcp["srtt_us"], segments.trace_row),
        "ca_state": traced("ca_state", tcp["ca_state"], segments.trace_row),
        "ack_mono_ns": ack_ns,
        "packet_rtt_ns": (ack_ns - pl.Series(came)).alias("packet_rtt_ns"),
        "retransmit_mono_ns": traced("retransmit_mono_ns", tcp["mono_ns"], segments.retransmit_row),
    }


def _write(path: Path, columns: dict[str, np.ndarray | pl.Series], flow_names: list[str]) -> None:
    order = [name for name in FIRST_COLUMNS if name in columns]
    frame = pl.DataFrame({name: columns[name] for name in [*order, *(set(columns) - set(order))]})
    frame = frame.select([*order, *(name for name in columns if name not in order)])
    if len(flow_names) < MAX_FLOWS:
        frame = frame.with_columns(pl.col("flow").cat.to(pl.Enum(list(dict.fromkeys(flow_names)))).alias("five_tuple"))
    frame.write_parquet(path, compression="zstd", compression_level=ZSTD_LEVEL, row_group_size=ROW_GROUP)
