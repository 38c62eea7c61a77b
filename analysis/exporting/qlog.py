# SPDX-License-Identifier: MIT
"""Exports a run as a qlog file (draft-ietf-quic-qlog-main-schema-02, qlog_version 0.3, JSON-SEQ), the form that qvis
reads. The group_id of each event is the flow's 5-tuple.

    transport:packet_sent       a TCP segment with payload came to the queue; packet_number counts the flow's
    recovery:packet_lost        the queue dropped it; a sender learns this later
    recovery:metrics_updated    what a record of the TCP trace has otherwise than the flow's record before it

Times are ms since the first packet or record. Lengths and windows count payload;
TCP counts windows in segments of mss bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from analysis.exporting.flent import LONGEST_UNLIMITED, realtime_minus_mono_ns
from analysis.exporting.tables import readable
from analysis.read import complete_run
from lib import parquet
from lib.errors import InputError

VERSION, FORMAT = "0.3", "JSON-SEQ"
TABLES = ("joined.parquet", "tcp.parquet")
ROWS = 1 << 16  # packets that become text at once
SENT = ("enqueue_mono_ns", "flow", "payload_bytes", "dropped")
TRACED = (
    "mono_ns", "flow", "cwnd_packets", "ssthresh_packets", "in_flight_packets", "srtt_us", "rtt_min_us", "mss_bytes",
    "pacing_rate_bytes_per_s",
)  # fmt: skip
_MSS = pl.col("mss_bytes").cast(pl.Int64)
METRICS = {  # the fields of recovery:metrics_updated, in ms, bytes and bit/s
    "congestion_window": pl.col("cwnd_packets") * _MSS,
    "bytes_in_flight": pl.col("in_flight_packets") * _MSS,
    "packets_in_flight": pl.col("in_flight_packets").cast(pl.Int64),
    "ssthresh": pl.when(pl.col("ssthresh_packets") < LONGEST_UNLIMITED).then(pl.col("ssthresh_packets") * _MSS),
    "smoothed_rtt": pl.col("srtt_us").cast(pl.Float64) / 1000,
    "min_rtt": pl.col("rtt_min_us").cast(pl.Float64) / 1000,
    "pacing_rate": pl.when(pl.col("pacing_rate_bytes_per_s") < 2**60).then(pl.col("pacing_rate_bytes_per_s") * 8),
}
UNKNOWN_RTT = ("smoothed_rtt", "min_rtt")  # all ones or 0 before the first sample


def write(repetition: Path, output: Path) -> int:
    """Exports the whole run, its warm-up included, with memory that does not depend on its length. Returns the number
    of events. Raises InputError, OSError.
    """
    complete_run.check(repetition, derived=TABLES)
    joined, tcp = (repetition / name for name in TABLES)
    if not (joined.is_file() and tcp.is_file()):
        raise InputError(
            f"{repetition}: has no joined.parquet or tcp.parquet; allowed: an analysed run that kept tables"
        )
    with readable(joined), readable(tcp):
        start = min([_first(joined, "enqueue_mono_ns"), _first(tcp, "mono_ns")])
        names = _names(joined) | _names(tcp)
        count, last = 0, pl.DataFrame()
        sent = np.zeros(max(names, default=0) + 1, dtype=np.int64)  # segments of each flow so far
        with output.open("wb") as file:
            file.write(b"\x1e" + json.dumps(_head(repetition, start)).encode() + b"\n")
            for packets, records in _together(joined, tcp):
                events, last = _of_records(records, last)
                events = pl.concat([events, *_of_packets(packets, sent)]).sort("at", "order", maintain_order=True)
                file.write("".join(_lines(events, start, names)).encode())
                count += len(events)
    return count


def _head(repetition: Path, start_ns: int) -> dict[str, Any]:
    offset_ns = 0  # without postcards nobody knows the date of CLOCK_MONOTONIC
    with suppress(OSError):
        offset_ns = realtime_minus_mono_ns(repetition)
    name = f"{repetition.parent.name}/{repetition.name}"
    return {
        "qlog_version": VERSION,
        "qlog_format": FORMAT,
        "title": name,
        "description": "exported by bufferscope; packet_lost is the moment at which the queue dropped the packet",
        "trace": {
            "vantage_point": {"name": "sender and bottleneck queue", "type": "unknown"},
            "title": name,
            "common_fields": {
                "protocol_type": ["TCP"], "time_format": "relative", "reference_time": (start_ns + offset_ns) / 1e6,
            },
        },
    }  # fmt: skip


def _first(table: Path, column: str) -> int:
    first = pl.scan_parquet(table).select(column).head(1).collect()
    return int(first.item()) if len(first) else 2**62


def _names(table: Path) -> dict[int, str]:
    """The 5-tuple of each flow, without the protocol; "flow 7" where the table has none."""
    frame = pl.scan_parquet(table)
    has_names = "five_tuple" in frame.collect_schema()
    text = pl.col("five_tuple").cast(pl.String) if has_names else pl.format("flow {}", "flow")
    return dict(frame.select(pl.col("flow").cast(pl.Int64), text.alias("text")).unique().collect().iter_rows())


def _together(joined: Path, tcp: Path) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Both tables, each in the order of its times, in parts of one time: the records up to a part's last packet."""
    slabs = parquet.slabs(tcp, [*TRACED])
    waiting = next(slabs)
    for slab in parquet.slabs(joined, [*SENT]):
        for packets in slab.iter_slices(ROWS):
            end = packets["enqueue_mono_ns"][-1]
            while not len(waiting) or waiting["mono_ns"][-1] <= end:
                more = next(slabs, None)
                if more is None:
                    break
                waiting = pl.concat([waiting, more])
            yield packets, waiting.filter(pl.col("mono_ns") <= end)
            waiting = waiting.filter(pl.col("mono_ns") > end)
    for rest in (waiting, *slabs):
        yield pl.DataFrame(schema=_schema(joined)), rest


def _schema(joined: Path) -> dict[str, Any]:
    schema = pl.scan_parquet(joined).collect_schema()
    return {name: schema[name] for name in SENT}


def _of_packets(packets: pl.DataFrame, sent: np.ndarray) -> list[pl.DataFrame]:
    """The events of segments with payload. Counts them in `sent`."""
    packets = packets.filter(pl.col("payload_bytes") > 0).with_columns(
        pl.col("flow").cast(pl.Int64), at="enqueue_mono_ns", number=pl.int_range(pl.len()).over("flow")
    )
    flows = packets["flow"].to_numpy()
    packets = packets.with_columns(number=pl.col("number") + pl.Series(sent[flows], dtype=pl.Int64))
    sent += np.bincount(flows, minlength=len(sent))
    header, length = '"data":{"header":{"packet_type":"1RTT","packet_number":', pl.col("payload_bytes")
    went = _text(header, pl.col("number"), '},"raw":{"length":', length, ',"payload_length":', length, "}}")
    lost = packets.filter("dropped")
    return [
        _events(packets, 1, "transport:packet_sent", went),
        _events(lost, 2, "recovery:packet_lost", _text(header, pl.col("number"), "}}")),
    ]


def _of_records(records: pl.DataFrame, last: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The events of trace records, and each flow's newest metrics. `last` are those before these records."""
    metrics = records.select(pl.col("flow").cast(pl.Int64), at="mono_ns", **METRICS)
    known = {name: pl.when(pl.col(name) > 0, pl.col(name) < 4e6).then(name) for name in UNKNOWN_RTT}
    metrics = metrics.with_columns(**known, is_new=True)
    metrics = pl.concat([last.with_columns(is_new=False), metrics]) if len(last) else metrics
    # A value that is not known says nothing new.
    metrics = metrics.with_columns(pl.col(*METRICS).forward_fill().over("flow"))
    differs = {name: pl.col(name).ne_missing(pl.col(name).shift(1).over("flow")) for name in METRICS}
    parts = [pl.when(differs[name]).then(_text(f',"{name}":', pl.col(name))) for name in METRICS]
    text = pl.concat_str(parts, ignore_nulls=True).str.strip_prefix(",")
    changed = metrics.with_columns(text=text).filter(pl.col("is_new") & (pl.col("text") != ""))
    newest = metrics.group_by("flow", maintain_order=True).last()
    data = _text('"data":{', pl.col("text"), "}")
    return _events(changed, 0, "recovery:metrics_updated", data), newest.select(metrics.columns)


def _events(rows: pl.DataFrame, order: int, name: str, data: pl.Expr) -> pl.DataFrame:
    return rows.select("at", "flow", order=pl.lit(order), text=_text(f'"name":"{name}",', data))


def _text(*parts: str | pl.Expr) -> pl.Expr:
    return pl.concat_str([pl.lit(part) if isinstance(part, str) else part.cast(pl.String) for part in parts])


def _lines(events: pl.DataFrame, start_ns: int, names: dict[int, str]) -> Iterator[str]:
    relative = pl.col("at") - start_ns
    groups = {flow: json.dumps(text.removesuffix(" tcp")) for flow, text in names.items()}
    group = pl.col("flow").replace_strict(groups, return_dtype=pl.String)
    fraction = (relative % 10**6).cast(pl.String).str.zfill(6)
    parts = ('\x1e{"time":', relative // 10**6, ".", fraction, ',"group_id":', group, ",", pl.col("text"), "}\n")
    yield from events.select(_text(*parts)).to_series()
