# SPDX-License-Identifier: MIT
"""Reads what `ss -tin` or `ss -tinO` of iproute2 printed again and again, each time after a line with the time of
CLOCK_REALTIME in s (`date +%s.%N`): a record of each connection's window and RTT estimate at each reading. iproute2
says ssthresh only once it is finite, and leaves counts of 0 out.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from analysis.importing.fields import LINE, Events, addresses, decimal, integer, seconds, typed
from analysis.importing.text import ALWAYS_KNOWN, PROBE, Log, refuse
from analysis.read.columns import ColumnFile, Columns

TIME = r"^\s*(\d{9,10}(?:\.\d{1,9})?)\s*$"
HEAD = r"^(?:Netid\s+)?(?:State\s+)?Recv-Q\s"
END = r"(\[[0-9a-fA-F:.]+\]|[0-9.]+|\*)(?:%[^:\s]+)?:(\d+|\*)"
SOCKET = rf"^(?:tcp\s+)?(?:[A-Z][A-Z0-9-]*\s+)?\d+\s+\d+\s+{END}\s+{END}(?:\s+|$)"
FORM = (
    "lines of `date +%s.%N` and of `ss -tin` in turn (docs/your-capture.md), as 1795946360.048408221, ESTAB 0 0 "
    "10.0.0.1:80 10.0.0.2:5201"
)
INFINITE = "2147483647"  # ssthresh before the first loss
UNKNOWN = np.iinfo(np.int64).max  # the bytes that were sent, of kernels before 4.19
COUNTS = {  # name in ss -> name in wire/tcp_record.def, and what it means if ss leaves it out
    "cwnd": ("cwnd_packets", None), "ssthresh": ("ssthresh_packets", INFINITE), "mss": ("mss_bytes", None),
    "unacked": ("packets_out", "0"), "retrans": ("retrans_out", "0"), "sacked": ("sacked_out", "0"),
    "lost": ("lost_out", "0"),
}  # fmt: skip
KNOWN = ALWAYS_KNOWN | {"srtt_us"} | {name for name, _ in COUNTS.values()}


def is_log(head: str) -> bool:
    """Whether the first lines of a file are of this form."""
    lines = pl.Series(head.split("\n")[:200], dtype=pl.String)
    return bool(lines.str.contains(TIME).any() and lines.str.contains(HEAD + "|" + SOCKET).any())


def read(path: Path, directory: Path) -> Events:
    """A record (TCP_EVENT_PROBE) of each connection at each reading; `mono_ns` is CLOCK_REALTIME. `acked` and `sent`
    (int64) are the bytes since the connection's SYN, as sequence numbers count them. Raises InputError.
    """
    log, file, where = Log(path), ColumnFile(directory), str(path)
    time: str | None = None
    held: pl.DataFrame | None = None  # the last line of the block before: the next may belong to it
    for frame in log.frames():
        first = 0 if held is None else len(held)
        frame = frame if held is None else pl.concat([held, frame])
        line = pl.col("text")
        before = line.shift(1)
        belongs = line.str.contains(r"^\s") & before.str.contains(SOCKET)
        frame = frame.with_columns(
            time=line.str.extract(TIME, 1).forward_fill().fill_null(pl.lit(time, pl.String)),
            whole=pl.when(belongs).then(before + line).otherwise(line),
            form=line.str.extract(f"({TIME}|{HEAD}|{SOCKET})", 1).is_not_null() | belongs,
        )
        new = frame.slice(first)
        refuse(new.with_columns(form=pl.when("form").then(line)), "form", where, FORM)
        records = new.filter(pl.col("whole").str.contains(rf"{SOCKET}.*\scwnd:\d"))
        refuse(records, "time", where, FORM)
        file.append(_columns(records, where))
        if len(frame):
            time, held = frame["time"][-1], frame.select(LINE, "text").tail(1)
    return Events([file.columns()], {PROBE: set(KNOWN)}, cut=log.cut)


def _columns(frame: pl.DataFrame, where: str) -> Columns:
    def value(name: str, pattern: str = r"(\d\S*)", default: str | None = None) -> pl.Expr:
        return pl.col("whole").str.extract(rf"\s{name}:{pattern}", 1).fill_null(pl.lit(default, pl.String)).alias(name)

    ends = pl.col("whole").str.extract_groups(SOCKET).struct.rename_fields(["src", "src_port", "dst", "dst_port"])
    frame = frame.filter(ends.struct.field("dst_port") != "*")  # that of a listening socket
    frame = frame.with_columns(
        ends.alias("ends"),
        *(value(name, default=default) for name, (_, default) in COUNTS.items() if name != "retrans"),
        value("retrans", r"(\d+)/", "0"),
        value("rtt", r"([\d.]+)/", "0"),
        *(value(name, default="0") for name in ("bytes_acked", "bytes_sent", "bytes_retrans")),
    ).unnest("ends")
    bytes_ = ("bytes_acked", "bytes_sent", "bytes_retrans")
    kinds = [seconds("time"), integer("src_port", 16), integer("dst_port", 16), decimal("rtt")]
    kinds += [integer(name, 32) for name in COUNTS] + [integer(name, 62) for name in bytes_]
    values = {name: np.asarray(column) for name, column in typed(frame, kinds, where).items()}
    sent = values["bytes_sent"]
    columns = {name: values[of].astype(np.int64) for of, (name, _) in COUNTS.items()} | {
        "mono_ns": values["time"], "event": np.full(len(frame), PROBE), "acked": values["bytes_acked"],
        "sent": np.where((sent > 0) | (values["bytes_acked"] <= 1), 1 + sent - values["bytes_retrans"], UNKNOWN),
        "srtt_us": np.rint(values["rtt"] * 1000).astype(np.int64),
    }  # fmt: skip
    return columns | addresses(frame["src"], frame["dst"], (values["src_port"], values["dst_port"]), where, frame[LINE])
