# SPDX-License-Identifier: MIT
"""Reads text traces, gzipped or not: the artifact's postcards.tr, and lines of tcp:tcp_probe and tcp:tcp_retransmit_skb
from any kernel since 4.16, as tracefs, `trace-cmd report` and `perf script` print them. The artifact's trace.tr has
such lines, and the tool brucespang/tcp_probe writes them.

polars' regular expressions split lines into columns. A killed writer leaves a last line without a newline, which is
counted and left out. Any other malformed line is an error.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import polars as pl

from analysis.importing.fields import (
    LINE,
    Cards,
    Events,
    InputColumn,
    addresses,
    hexadecimal,
    integer,
    prefixed,
    seconds,
    text,
    typed,
)
from analysis.read.columns import ColumnFile, Columns
from lib import regular
from lib.errors import InputError
from lib.terminal import one_line
from wire import wire

EVENT, CARD = wire.TCP_RECORD.const, wire.POSTCARD.const
PROBE, RETRANSMIT = EVENT["TCP_EVENT_PROBE"], EVENT["TCP_EVENT_RETRANSMIT"]
GZIP_MAGIC = b"\x1f\x8b"
TOFINO_CELL_BYTES = 80
# comm-pid (perf: comm pid, or comm pid/tid), optional thread group, [cpu], optional flags, time, event (perf: with its
# system), the event's fields.
TRACE_LINE = (
    r"^\s*.+[-\s]\d+(?:/\d+)?\s+(?:\(\s*[-\d]+\)\s+)?\[(?<cpu>\d+)\]\s+(?:[^\s:]{4,6}\s+)?"
    r"(?<time>\d+\.\d+):\s+(?:\w+:)?(?<event>\w+):\s?(?<rest>.*)$"
)
COMMENT = r"^(?:#|cpus=\d+$|version = \d+$|CPU \d+ is empty$)"  # the latter are of trace-cmd
LOST_LINE = r"^CPU:\s*\d+ \[LOST (?:(\d+) )?EVENTS\]\s*$"  # without a number if the reader of the file `trace` was slow
OVERRUN_LINE = r"^# entries-in-buffer/entries-written: (\d+)/(\d+)\s"  # the head of the file `trace`
BLOCK_BYTES = 1 << 23  # of a log that are parsed at once
MOST_UNPACKED = 100  # times the packed size; a trace shrinks to a tenth
TRACE_FORM = "a line of trace_pipe: comm-pid [cpu] flags seconds: event: fields"
CARD_FORM = "a line of the artifact's collector: seconds: postcard: name=value ..."
ADDRESS = r"[0-9a-fA-F:.]+|\[[0-9a-fA-F:.]+\]"
PROBE_FIELDS = {  # name in the trace -> name in wire/tcp_record.def
    "data_len": "data_bytes", "snd_nxt": "snd_nxt", "snd_una": "snd_una", "snd_cwnd": "cwnd_packets",
    "ssthresh": "ssthresh_packets", "snd_wnd": "snd_wnd_bytes", "rcv_wnd": "rcv_wnd_bytes", "srtt": "srtt_us",
}  # fmt: skip
RETRANSMIT_FIELDS = ("family", "sport", "dport", "saddr", "daddr", "saddrv6", "daddrv6")
ALWAYS_KNOWN = {"mono_ns", "event", "src_port", "dst_port", "src_addr_hi", "src_addr_lo", "dst_addr_hi", "dst_addr_lo"}
# Fields that the artifact's text logs and tables lack. The artifact's postcards have ingress_port, but the published
# decoders lose its lowest bit.
CARDS_UNKNOWN = frozenset(
    {
        "switch_id", "ingress_port", "queue_id", "policy", "card_seq", "sojourn_ns", "depth_bytes", "threshold",
        "packet_bytes", "tcp_flags",
    }
)  # fmt: skip


@dataclass
class Log:
    """A text log, in blocks of lines. `cut` is known after `frames` was read to its end."""

    path: Path
    cut: int = 0  # incomplete lines at its end, which are left out

    def frames(self) -> Iterator[pl.DataFrame]:
        """Blocks of lines (columns `text`, and `line` from 1), the first of them empty. Raises InputError."""
        line, rest, size = 1, b"", 0
        try:
            with regular.opened(self.path) as file:
                is_packed, most = file.read(2) == GZIP_MAGIC, self.path.stat().st_size * MOST_UNPACKED
                file.seek(0)
                source = gzip.GzipFile(fileobj=file) if is_packed else file
                for block in chain((b"",), iter(lambda: source.read(BLOCK_BYTES), b"")):
                    size += len(block)
                    if is_packed and size > most:
                        raise InputError(
                            f"{self.path}: unpacks to more than {MOST_UNPACKED} times its size; allowed: a text log; "
                            "unpack it first"
                        )
                    if len(rest) > BLOCK_BYTES:
                        raise InputError(f"{self.path}, line {line}: is longer than {BLOCK_BYTES} bytes")
                    whole, newline, rest = (rest + block).rpartition(b"\n")
                    rows = whole.decode("ascii", errors="replace").split("\n") if newline else []
                    frame = pl.DataFrame({"text": rows}, schema={"text": pl.String})
                    frame = frame.select(pl.int_range(line, line + pl.len(), dtype=pl.Int64).alias(LINE), "text")
                    line += len(rows)
                    yield frame.filter(pl.col("text").str.strip_chars() != "")
        except OSError as error:
            raise InputError(f"{self.path}: not readable: {one_line(error)}") from None
        except (EOFError, zlib.error) as error:
            raise InputError(f"{self.path}: damaged gzip: {error}; get the file again") from None
        self.cut = int(bool(rest))


def head_of(path: Path) -> str:
    """The first lines of a log; empty if it cannot be read."""
    try:
        with regular.opened(path) as file:
            head = file.read(1 << 16)
        head = zlib.decompressobj(31).decompress(head, 1 << 16) if head[:2] == GZIP_MAGIC else head
    except (OSError, zlib.error):
        return ""
    return head.decode("ascii", errors="replace")


def kind(path: Path) -> str | None:
    """`trace` or `postcards`, by the first lines; None if they are neither."""
    for line in head_of(path).split("\n")[:200]:
        if ": postcard: " in line:
            return "postcards"
        if any(f"{event}: " in line for event in ("tcp_probe", "tcp_retransmit_skb")) or "# tracer: " in line:
            return "trace"
    return None


def read_trace(path: Path, directory: Path) -> Events:
    """All events tcp_probe and tcp_retransmit_skb of a trace; other events are counted. Raises InputError."""
    log, where = Log(path), str(path)
    probes, resent = Probes(directory), ColumnFile(directory)
    lost = losses = others = back_ns = 0
    last = None
    for frame in log.frames():
        is_comment = pl.col("text").str.contains(COMMENT)
        heads = frame.filter(is_comment)["text"].str.extract_groups(OVERRUN_LINE).struct.unnest().drop_nulls()
        lost += sum(int(written) - int(kept) for kept, written in heads.iter_rows())
        frame = frame.filter(~is_comment)
        is_lost = frame["text"].str.contains(LOST_LINE)
        numbers = frame.filter(is_lost)["text"].str.extract(LOST_LINE, 1)
        lost, losses = lost + int(numbers.cast(pl.Int64, strict=False).sum() or 0), losses + numbers.null_count()
        frame = frame.filter(~is_lost)
        frame = frame.with_columns(pl.col("text").str.extract_groups(TRACE_LINE).struct.unnest())
        refuse(frame, "event", where, TRACE_FORM)
        of_probes = frame.filter(pl.col("event") == "tcp_probe")
        of_resent = frame.filter(pl.col("event") == "tcp_retransmit_skb")
        others += len(frame) - len(of_probes) - len(of_resent)
        probes.add(of_probes.with_columns(*map(_value, (*PROBE_FIELDS, "src", "dest", "sock_cookie"))), where)
        resent.append(retransmits(of_resent.with_columns(*map(_value, RETRANSMIT_FIELDS)), where))
        times = np.asarray(typed(frame, [seconds("time")], where)["time"])
        if len(times):
            back_ns = max(back_ns, -int(np.diff(times, prepend=times[0] if last is None else last).min()))
            last = times[-1]
    counts = {"lost": lost, "losses": losses, "others": others, "cut": log.cut, "back_ns": back_ns}
    both = [probes.events(), retransmit_events(resent.columns())]
    return joined(both, **counts)


class Probes:
    """Collects probe events from blocks of text columns with the names of the trace, and `time`."""

    def __init__(self, directory: Path) -> None:
        self._file = ColumnFile(directory)
        self._is_hexadecimal: bool | None = None
        self._has_cookie = True

    def add(self, frame: pl.DataFrame, where: str) -> None:
        """Raises InputError."""
        if self._is_hexadecimal is None and len(frame) and "snd_nxt" in frame.columns:  # a table has decimal numbers
            self._is_hexadecimal = frame.select(pl.col("snd_nxt").str.starts_with("0x").fill_null(True).all()).item()
        columns = _probes(frame, where, integer if self._is_hexadecimal is False else prefixed)
        self._has_cookie &= "socket_cookie" in columns
        self._file.append({"socket_cookie": np.zeros(len(frame), dtype=np.uint64)} | columns)

    def events(self) -> Events:
        columns = self._file.columns()
        if not self._has_cookie:
            del columns["socket_cookie"]
        known = ALWAYS_KNOWN | set(PROBE_FIELDS.values()) | ({"socket_cookie"} & columns.keys())
        return Events([columns], {PROBE: known})


def _probes(frame: pl.DataFrame, where: str, number: Callable[[str, int], InputColumn]) -> Columns:
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
    if "sock_cookie" in frame.columns and not frame["sock_cookie"].is_null().any():  # since Linux 5.0
        columns["socket_cookie"] = np.asarray(typed(frame, [hexadecimal("sock_cookie", 64)], where)["sock_cookie"])
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
    return columns | addresses(src, dst, (src_port, dst_port), where, frame[LINE]) | _digest(frame)


def retransmit_events(columns: Columns) -> Events:
    """From all rows of `retransmits`."""
    return Events([columns], {RETRANSMIT: set(ALWAYS_KNOWN)})


def retransmits(frame: pl.DataFrame, where: str) -> Columns:
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
    return columns | ends | _digest(frame)


def _digest(frame: pl.DataFrame) -> Columns:
    """A number for the content of each row, its line apart."""
    return {"digest": frame.select(pl.exclude(LINE)).hash_rows().to_numpy()}


def counts(events: list[Events]) -> dict[str, int]:
    """Those of several logs together."""
    result = {name: sum(getattr(part, name) for part in events) for name in ("lost", "losses", "others", "cut")}
    return result | {"back_ns": max(part.back_ns for part in events)}


def joined(parts: list[Events], **counts: int) -> Events:
    """The events of all parts. A column that a part lacks is unknown for all events of that kind."""
    known: dict[int, set[str]] = {}
    for part in parts:
        for event, names in part.known.items():
            known[event] = known.get(event, names) & names
    return Events([piece for part in parts for piece in part.pieces], known, **counts)


def leave_out_copies(events: Events, directory: Path) -> int:
    """Leaves out copies of events, and returns their number: a trace may have been saved twice. Equal retransmits alone
    are no copies: older kernels print several of one socket in one us alike.
    """
    rows, first = events.again(directory, "mono_ns", 1)["row"], 0
    for part in events.parts("event") if len(rows) else ():
        last = first + len(part["event"])
        if (part["event"][rows[slice(*np.searchsorted(rows, (first, last)))] - first] == PROBE).any():
            events.leave_out(directory, rows)
            return len(rows)
        first = last
    return 0


def read_cards(path: Path, directory: Path) -> tuple[Cards, int]:
    """All postcards of a log, and the number of incomplete last lines (0 or 1). Raises InputError."""
    names = (
        "ipv4_src_addr", "ipv4_dst_addr", "src_port", "dst_port", "seq_no", "ack_no", "queue_depth_cells",
        "was_dropped", "egress_port",
    )  # fmt: skip
    log, file = Log(path), ColumnFile(directory)
    for frame in log.frames():
        frame = frame.with_columns(time=pl.col("text").str.extract(r"^(\d+\.\d+): postcard: ", 1), rest=pl.col("text"))
        refuse(frame, "time", str(path), CARD_FORM)
        file.append(card_columns(frame.with_columns(*map(_value, names)), str(path)))
    return cards(file.columns()), log.cut


def cards(columns: Columns) -> Cards:
    """From all rows of `card_columns`."""
    return Cards([columns], set(CARDS_UNKNOWN), TOFINO_CELL_BYTES)


def card_columns(frame: pl.DataFrame, where: str) -> Columns:
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
    content = {name: values for name, values in (columns | ends).items() if not name.endswith("_ns")}
    return columns | ends | {"digest": pl.DataFrame(content).hash_rows().to_numpy()}


def _value(name: str) -> pl.Expr:
    return pl.col("rest").str.extract(rf"(?:^|\s){name}=(\S+)", 1).alias(name)


def refuse(frame: pl.DataFrame, column: str, where: str, form: str) -> None:
    """Raises InputError for the first line in which this column is null."""
    wrong = frame[column].is_null()
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        raise InputError(f"{where}, line {frame[LINE][row]}: {frame['text'][row][:60]!a} is malformed; allowed: {form}")
