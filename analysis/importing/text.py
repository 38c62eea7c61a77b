# SPDX-License-Identifier: MIT
"""Reads text traces, gzipped or not: the artifact's postcards.tr, and trace_pipe lines of tcp:tcp_probe and
tcp:tcp_retransmit_skb from any kernel since 4.16. The artifact's trace.tr has such lines, and the tool
brucespang/tcp_probe writes them.

polars' regular expressions split lines into columns. A killed writer leaves a last line without a newline, which is
counted and left out. Any other malformed line is an error.
"""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path

import numpy as np
import polars as pl

from analysis.importing.fields import (
    LINE,
    Addresses,
    Cards,
    Events,
    addresses,
    hexadecimal,
    integer,
    seconds,
    text,
    typed,
)
from lib import regular
from lib.errors import InputError
from lib.terminal import one_line
from wire import wire

EVENT, CARD = wire.TCP_RECORD.const, wire.POSTCARD.const
PROBE, RETRANSMIT = EVENT["TCP_EVENT_PROBE"], EVENT["TCP_EVENT_RETRANSMIT"]
GZIP_MAGIC = b"\x1f\x8b"
TOFINO_CELL_BYTES = 80
# comm-pid, optional thread group, [cpu], optional flags, time, event, the event's fields.
TRACE_LINE = (
    r"^\s*.+-\d+\s+(?:\(\s*[-\d]+\)\s+)?\[(?<cpu>\d+)\]\s+(?:[^\s:]{4,6}\s+)?"
    r"(?<time>\d+\.\d+):\s+(?<event>\w+):\s?(?<rest>.*)$"
)
LOST_LINE = r"^CPU:\s*\d+ \[LOST (?:(\d+) )?EVENTS\]\s*$"  # without a number if the reader of the file `trace` was slow
OVERRUN_LINE = r"^# entries-in-buffer/entries-written: (\d+)/(\d+)\s"  # the head of the file `trace`
MOST_UNPACKED = 100  # times the packed size; a trace shrinks to a tenth
TRACE_FORM = "a line of trace_pipe: comm-pid [cpu] flags seconds: event: fields"
CARD_FORM = "a line of the artifact's collector: seconds: postcard: name=value ..."
ADDRESS = r"[0-9a-fA-F:.]+|\[[0-9a-fA-F:.]+\]"
PROBE_FIELDS = {  # name in the trace -> name in wire/tcp_record.def
    "data_len": "data_bytes", "snd_nxt": "snd_nxt", "snd_una": "snd_una", "snd_cwnd": "cwnd_packets",
    "ssthresh": "ssthresh_packets", "snd_wnd": "snd_wnd_bytes", "rcv_wnd": "rcv_wnd_bytes", "srtt": "srtt_us",
}  # fmt: skip
ALWAYS_KNOWN = {"mono_ns", "event", "src_port", "dst_port", "src_addr_hi", "src_addr_lo", "dst_addr_hi", "dst_addr_lo"}
# Fields that the artifact's text logs and tables lack. The artifact's postcards have ingress_port, but the published
# decoders lose its lowest bit.
CARDS_UNKNOWN = frozenset(
    {
        "switch_id", "ingress_port", "queue_id", "policy", "card_seq", "sojourn_ns", "depth_bytes", "threshold",
        "packet_bytes", "tcp_flags",
    }
)  # fmt: skip


def lines(path: Path) -> tuple[pl.DataFrame, int]:
    """Lines (columns `text`, and `line` from 1), and the number of incomplete lines left out. Raises InputError."""
    try:
        with regular.opened(path) as file:
            data = file.read()
        if data[:2] == GZIP_MAGIC:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
                data, most = packed.read(len(data) * MOST_UNPACKED + 1), len(data) * MOST_UNPACKED
            if len(data) > most:
                raise InputError(
                    f"{path}: unpacks to more than {MOST_UNPACKED} times its size; allowed: a text log; unpack it first"
                )
    except OSError as error:
        raise InputError(f"{path}: not readable: {one_line(error)}") from None
    except (EOFError, zlib.error) as error:
        raise InputError(f"{path}: damaged gzip: {error}; get the file again") from None
    rows = data.decode("ascii", errors="replace").split("\n")
    cut = int(bool(rows.pop()))
    frame = pl.DataFrame({"text": rows}, schema={"text": pl.String}).with_row_index(LINE, offset=1)
    return frame.filter(pl.col("text").str.strip_chars() != ""), cut


def kind(path: Path) -> str | None:
    """`trace` or `postcards`, by the first lines; None if they are neither."""
    try:
        with regular.opened(path) as file:
            head = file.read(1 << 16)
        head = zlib.decompressobj(31).decompress(head, 1 << 16) if head[:2] == GZIP_MAGIC else head
    except (OSError, zlib.error):
        return None
    for line in head.decode("ascii", errors="replace").split("\n")[:200]:
        if ": postcard: " in line:
            return "postcards"
        if any(f" {event}: " in line for event in ("tcp_probe", "tcp_retransmit_skb")) or "# tracer: " in line:
            return "trace"
    return None


def read_trace(path: Path) -> Events:
    """All events tcp_probe and tcp_retransmit_skb of a trace; other events are counted. Raises InputError."""
    frame, cut = lines(path)
    is_comment = pl.col("text").str.starts_with("#")
    heads = frame.filter(is_comment)["text"].str.extract_groups(OVERRUN_LINE).struct.unnest().drop_nulls()
    overrun = sum(int(written) - int(kept) for kept, written in heads.iter_rows())
    frame = frame.filter(~is_comment)
    is_lost = frame["text"].str.contains(LOST_LINE)
    lost = frame.filter(is_lost)["text"].str.extract(LOST_LINE, 1)
    frame = frame.filter(~is_lost)
    parts = pl.col("text").str.extract_groups(TRACE_LINE)
    frame = frame.with_columns(parts.struct.unnest())
    _refuse(frame, "event", str(path), TRACE_FORM)
    probes = frame.filter(pl.col("event") == "tcp_probe")
    resent = frame.filter(pl.col("event") == "tcp_retransmit_skb")
    both = [_probes(probes, str(path)), _retransmits(resent, str(path))]
    times = np.asarray(typed(frame, [seconds("time")], str(path))["time"])
    return joined(both, lost=int(lost.cast(pl.Int64, strict=False).sum() or 0) + overrun, losses=lost.null_count(),
                  cut=cut, others=len(frame) - len(probes) - len(resent),
                  back_ns=-int(np.diff(times).min(initial=0)))  # fmt: skip


def _probes(frame: pl.DataFrame, where: str) -> Events:
    names = [*PROBE_FIELDS, "src", "dest", "sock_cookie"]
    frame = frame.with_columns(*(_value(name) for name in names))
    return probes(frame, where)


def probes(frame: pl.DataFrame, where: str) -> Events:
    """Probe events from text columns with the names of the trace, and `time`."""
    has_numbers = len(frame) and "snd_nxt" in frame.columns
    is_hexadecimal = (
        frame.select(pl.col("snd_nxt").str.starts_with("0x").fill_null(True).all()).item() if has_numbers else True
    )
    number = hexadecimal if is_hexadecimal else integer  # a table has decimal numbers
    values = typed(
        frame,
        [
            seconds("time"), integer("data_len", 32), number("snd_nxt", 32), number("snd_una", 32),
            integer("snd_cwnd", 32), integer("ssthresh", 32), integer("snd_wnd", 32), integer("rcv_wnd", 32),
            integer("srtt", 32), text("src", rf"(?:{ADDRESS}):\d{{1,5}}", "address:port"),
            text("dest", rf"(?:{ADDRESS}):\d{{1,5}}", "address:port"),
        ],
        where,
    )  # fmt: skip
    columns = {record_name: np.asarray(values[name]) for name, record_name in PROBE_FIELDS.items()}
    columns["mono_ns"] = np.asarray(values["time"])
    columns["event"] = np.full(len(frame), PROBE)
    known = ALWAYS_KNOWN | set(PROBE_FIELDS.values())
    if "sock_cookie" in frame.columns and not frame["sock_cookie"].is_null().any():  # since Linux 5.0
        columns["socket_cookie"] = np.asarray(typed(frame, [hexadecimal("sock_cookie", 64)], where)["sock_cookie"])
        known = known | {"socket_cookie"}
    columns["data_bytes"] = np.minimum(columns["data_bytes"], 0xFFFF)  # a GRO segment can be too long for 16 bits
    ends = []
    for name in ("src", "dest"):
        series = pl.Series(values[name])
        parts = pl.DataFrame({"text": series}).select(
            pl.col("text").str.extract(r"^(.*):\d+$", 1).alias("address"),
            pl.col("text").str.extract(r":(\d+)$", 1).alias("port"),
        )
        port = np.asarray(typed(parts.with_columns(frame[LINE]), [integer("port", 16)], where)["port"])
        ends.append((parts["address"], port))
    (src, src_port), (dst, dst_port) = ends
    ends_ = addresses(src, dst, (src_port, dst_port), where, frame[LINE])
    return Events(columns, ends_, {PROBE: known}, _digests(frame))


def _retransmits(frame: pl.DataFrame, where: str) -> Events:
    frame = frame.with_columns(
        *(_value(name) for name in ("family", "sport", "dport", "saddr", "daddr", "saddrv6", "daddrv6"))
    )
    return retransmits(frame, where)


def retransmits(frame: pl.DataFrame, where: str) -> Events:
    """Retransmit events, without sequence numbers, from text columns with the names of the trace, and `time`."""
    for name in ("saddr", "daddr"):  # the IPv4 columns of IPv6 connections are zeros
        if {name, f"{name}v6"} <= set(frame.columns):
            wide = pl.col(f"{name}v6")
            use = wide.is_not_null() & ~wide.str.starts_with("::ffff:") & (pl.col(name) == "0.0.0.0")
            frame = frame.with_columns(pl.when(use).then(wide).otherwise(pl.col(name)).alias(name))
    address = "an IP address"
    values = typed(
        frame,
        [seconds("time"), integer("sport", 16), integer("dport", 16), text("saddr", ADDRESS, address),
         text("daddr", ADDRESS, address)],
        where,
    )  # fmt: skip
    columns = {"mono_ns": np.asarray(values["time"]), "event": np.full(len(frame), RETRANSMIT)}
    ports = (np.asarray(values["sport"]), np.asarray(values["dport"]))
    ends = addresses(pl.Series(values["saddr"]), pl.Series(values["daddr"]), ports, where, frame[LINE])
    return Events(columns, ends, {RETRANSMIT: set(ALWAYS_KNOWN)}, _digests(frame))


def _digests(frame: pl.DataFrame) -> np.ndarray:
    """A number for the content of each row, its line apart."""
    return frame.select(pl.exclude(LINE)).hash_rows().to_numpy()


def joined(parts: list[Events], **counts: int) -> Events:
    """Concatenates events. A column that a part lacks is 0 there, and unknown for all events of that kind."""
    names = {name for part in parts for name in part.columns}
    size = [len(part.columns["mono_ns"]) for part in parts]
    columns = {
        name: np.concatenate(
            [part.columns.get(name, np.zeros(n, dtype=np.int64)) for part, n in zip(parts, size, strict=True)]
        )
        for name in names
    }
    known: dict[int, set[str]] = {}
    for part in parts:
        for event, names_known in part.known.items():
            known[event] = known.get(event, names_known) & names_known
    digests = np.concatenate([part.digests for part in parts])
    return Events(columns, Addresses.joined([part.addresses for part in parts]), known, digests, **counts)


def without_copies(events: Events) -> tuple[Events, int]:
    """The events without copies, and the number of copies: a trace may have been saved twice. Equal retransmits alone
    are no copies: older kernels print several of one socket in one us alike.
    """
    rows = np.sort(np.unique(events.digests, return_index=True)[1])
    probes = events.columns["event"] == PROBE
    if np.count_nonzero(probes[rows]) == np.count_nonzero(probes):
        return events, 0
    return events.only(rows), len(events.digests) - len(rows)


def read_cards(path: Path) -> tuple[Cards, int]:
    """All postcards of a log, and the number of incomplete last lines (0 or 1). Raises InputError."""
    frame, cut = lines(path)
    frame = frame.with_columns(time=pl.col("text").str.extract(r"^(\d+\.\d+): postcard: ", 1), rest=pl.col("text"))
    _refuse(frame, "time", str(path), CARD_FORM)
    names = (
        "ipv4_src_addr", "ipv4_dst_addr", "src_port", "dst_port", "seq_no", "ack_no", "queue_depth_cells",
        "was_dropped", "egress_port",
    )  # fmt: skip
    return cards(frame.with_columns(*(_value(name) for name in names)), str(path)), cut


def cards(frame: pl.DataFrame, where: str) -> Cards:
    """Postcards from text columns with the names of the log, and `time`."""
    ipv4 = r"(?:\d{1,3}\.){3}\d{1,3}"
    if "was_dropped" in frame.columns:  # a boolean in some tables
        frame = frame.with_columns(pl.col("was_dropped").replace({"t": "1", "f": "0", "true": "1", "false": "0"}))
    values = typed(
        frame,
        [
            seconds("time"), text("ipv4_src_addr", ipv4, "an IPv4 address"),
            text("ipv4_dst_addr", ipv4, "an IPv4 address"),
            integer("src_port", 16), integer("dst_port", 16), integer("seq_no", 32), integer("ack_no", 32),
            integer("queue_depth_cells", 32), integer("was_dropped", 3), integer("egress_port", 16),
        ],
        where,
    )  # fmt: skip
    has = CARD["POSTCARD_HAS_IP"] | CARD["POSTCARD_HAS_PORTS"] | CARD["POSTCARD_HAS_TCP"]
    columns = {
        "mono_ns": np.asarray(values["time"]),
        "enqueue_switch_ns": np.asarray(values["time"]),
        "flags": np.where(np.asarray(values["was_dropped"]) != 0, has | CARD["POSTCARD_DROPPED"], has),
        "egress_port": np.asarray(values["egress_port"]),
        "ip_protocol": np.full(len(frame), 6),
        "tcp_seq": np.asarray(values["seq_no"]),
        "tcp_ack": np.asarray(values["ack_no"]),
        "depth_cells": np.asarray(values["queue_depth_cells"]),
        "depth_unit": np.full(len(frame), CARD["POSTCARD_DEPTH_CELLS"]),
    }
    ports = (np.asarray(values["src_port"]), np.asarray(values["dst_port"]))
    ends = addresses(pl.Series(values["ipv4_src_addr"]), pl.Series(values["ipv4_dst_addr"]), ports, where, frame[LINE])
    return Cards(columns, ends, set(CARDS_UNKNOWN), TOFINO_CELL_BYTES)


def _value(name: str) -> pl.Expr:
    return pl.col("rest").str.extract(rf"(?:^|\s){name}=(\S+)", 1).alias(name)


def _refuse(frame: pl.DataFrame, column: str, where: str, form: str) -> None:
    wrong = frame[column].is_null()
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        raise InputError(f"{where}, line {frame[LINE][row]}: {frame['text'][row][:60]!a} is malformed; allowed: {form}")
