# SPDX-License-Identifier: MIT
"""What an import of one capture keeps beside its postcards: flows.parquet, a row for each connection in the order of
their starts, and rate.parquet, packets and bytes in bins of time.

`limit` is what limited a connection's data for most of its time (captures/connections.c). Its time is divided into
pauses and round trips, and each round trip has the first limit of these that holds:

* application: the sender had nothing to send: all was acknowledged, and it sent no segment for more than half an RTT;
  or each eighth new segment was short. (Zhang et al., "On the characteristics and origins of internet flow rates",
  SIGCOMM 2002, call this an application limit; Siekkinen et al., "A root cause analysis toolkit for TCP", Computer
  Networks 52, 2008, find it by idle times and short segments.)
* window: the bytes in flight come within three segments of the window that the receiver advertises (Siekkinen et al.).
* access link: the rate is at least 0.9 of the connection's access rate, and that is below 0.9 of this link's.
* this link: it was busy for at least 0.9 of the round trip; or the connection recovers from a loss, and the link was
  busy before it (Zhang et al. call both congestion).
* window, again: the bytes in flight do not grow for four round trips without a loss: a cap of the sender.
* elsewhere: the connection recovers from a loss, and this link was not busy.
* start-up: nothing of this; the window grows. Most short connections end so (Zhang et al.: opportunity-limited).

What is in flight is that of the sender: of each segment, the ACKs count that the sender can have known, which passed
the capture a way to the sender and back before it. The access rate is the largest over five packets in a row, so it is
too large if a queue before the capture compressed them all.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from analysis.read.flows import PROTOCOL_NAMES, address_text
from lib.errors import InputError
from lib.terminal import one_line
from wire.wire import CONNECTION

FILE, BINS_FILE = "flows.parquet", "rate.parquet"
BIN_NS, MOST_BINS, LEAST_BINS = 1_000_000, 1 << 22, 100
CONST = CONNECTION.const
LIMITS = {
    "application_ns": "application", "window_ns": "window", "access_ns": "access link", "link_ns": "this link",
    "elsewhere_ns": "elsewhere", "start_up_ns": "start-up",
}  # fmt: skip
NO_DATA = "no data"
LIMIT = pl.Enum([*LIMITS.values(), NO_DATA])
WAYS = ("forward", "back")


class Bins:
    """Packets and bytes on the link (with preamble and gap), each way, in bins of 1 ms from the first packet on. The
    bins become twice as long whenever there would be more than MOST_BINS.
    """

    def __init__(self) -> None:
        self.bin_ns, self.start_ns, self.last_ns = BIN_NS, 0, 0
        self._counts = np.zeros((4, 0), dtype=np.uint64)

    def __len__(self) -> int:
        return int((self.last_ns - self.start_ns) // self.bin_ns) + 1 if self.last_ns else 0

    @property
    def span_ns(self) -> tuple[int, int]:
        return self.start_ns, self.last_ns + 1

    def add(self, times_ns: np.ndarray, wire_bytes: np.ndarray, way: int) -> None:
        """Packets of one way, 0 or 1, nearly in the order of time."""
        if not len(times_ns):
            return
        if not self.last_ns:
            self.start_ns = self.last_ns = int(times_ns[0]) // BIN_NS * BIN_NS
        self.last_ns = max(self.last_ns, int(times_ns.max()))
        while len(self) > MOST_BINS:
            whole = np.pad(self._counts, ((0, 0), (0, self._counts.shape[1] % 2)))
            self._counts = whole[:, ::2] + whole[:, 1::2]
            self.bin_ns *= 2
        if len(self) > self._counts.shape[1]:
            more = max(len(self) - self._counts.shape[1], self._counts.shape[1], 1024)
            self._counts = np.pad(self._counts, ((0, 0), (0, more)))
        bins = np.maximum(times_ns - self.start_ns, 0) // self.bin_ns
        first = int(bins.min())
        for row, weights in ((2 * way, None), (2 * way + 1, wire_bytes)):
            found = np.bincount(bins - first, weights)
            self._counts[row, first : first + len(found)] += found.astype(np.uint64)

    def most_bps(self, over_ns: int) -> float:
        """The largest rate of either way over so long a time, or over the whole capture if it is shorter; a capture of
        less than LEAST_BINS counts as that long.
        """
        bins = max(min(over_ns // self.bin_ns, len(self)), 1)
        long_ns = max(min(bins * self.bin_ns, self.last_ns - self.start_ns), LEAST_BINS * self.bin_ns)
        sums = np.cumsum(self._counts[1::2, : len(self)], axis=1, dtype=np.int64)
        sums[:, bins:] -= sums[:, :-bins].copy()
        return 8e9 * float(sums.max(initial=0)) / long_ns

    def frame(self, rows: slice) -> pl.DataFrame:
        part = self._counts[:, rows]
        columns = {
            f"{what}_{way}": part[2 * n + m]
            for n, way in enumerate(WAYS)
            for m, what in enumerate(("packets", "wire_bytes"))
        }
        return pl.DataFrame({"start_ns": self.start_ns + np.arange(rows.start, rows.stop) * self.bin_ns, **columns})


def frame(rows: np.ndarray) -> pl.DataFrame:
    """Rows of flows.parquet from records of wire/connection.def. Unknown values are null."""

    def has(name: str) -> np.ndarray:
        return rows["flags"] & CONST[f"CONNECTION_{name}"] != 0

    def addresses(end: str) -> list[str]:
        halves = zip(rows[f"{end}_addr_hi"].tolist(), rows[f"{end}_addr_lo"].tolist(), strict=True)
        return [address_text(hi << 64 | lo) for hi, lo in halves]

    def positive(name: str) -> pl.Series:
        values = pl.Series(rows[name].astype(np.int64))
        return values.set(values <= 0, None)

    is_tcp, both = has("IS_TCP"), has("BOTH_WAYS")
    limited = np.stack([rows[name].astype(np.int64) for name in LIMITS])
    total = limited.sum(axis=0)
    limit = np.where(total > 0, limited.argmax(axis=0), len(LIMITS))
    names = [PROTOCOL_NAMES.get(number, str(number)) for number in rows["ip_protocol"].tolist()]
    duration = (rows["end_ns"] - rows["start_ns"]).astype(np.int64)
    shares = {f"{name.removesuffix('_ns')}_share": limited[n] / np.maximum(total, 1) for n, name in enumerate(LIMITS)}
    return pl.DataFrame(
        {
            "start_ns": rows["start_ns"].astype(np.int64), "duration_ns": duration,
            "protocol": pl.Series(names, dtype=pl.String),
            "src": pl.Series(addresses("src"), dtype=pl.String), "src_port": rows["src_port"],
            "dst": pl.Series(addresses("dst"), dtype=pl.String), "dst_port": rows["dst_port"],
            "out_is_forward": has("OUT_IS_FORWARD"),
            **{name: rows[name].astype(np.int64) for name in (
                "packets_out", "packets_back", "ip_bytes_out", "ip_bytes_back", "payload_bytes_out",
                "payload_bytes_back", "retransmissions_out", "retransmissions_back", "reordered", "unseen_bytes",
            )},
            "data_is_back": has("DATA_IS_BACK"), "rtt_handshake_ns": positive("handshake_ns"),
            "rtt_least_ns": positive("rtt_least_ns"), "rtt_median_ns": positive("rtt_median_ns"),
            "rtt_samples": rows["rtt_samples"].astype(np.int64), "in_flight_bytes": positive("in_flight_bytes"),
            "window_bytes": positive("window_bytes").set(pl.Series(~has("HAS_WINDOW")), None),
            "mss_bytes": positive("mss_bytes"), "access_bps": positive("access_bps"),
            "writes": np.where(is_tcp & (total > 0), rows["pauses"].astype(np.int64) + 1, 0),
            "pauses": rows["pauses"].astype(np.int64),
            "idle_share": rows["pause_ns"] / np.maximum(duration, 1),
            "limit": pl.Series([*LIMITS.values(), NO_DATA]).gather(limit).cast(LIMIT), **shares,
            "has_start": has("HAS_START"), "has_end": has("HAS_END"), "both_ways": both, "forgotten": has("FORGOTTEN"),
        }
    )  # fmt: skip


def scan(directory: Path) -> pl.LazyFrame:
    return pl.scan_parquet(directory / FILE)


def collect(frame: pl.LazyFrame) -> pl.DataFrame:
    """Raises InputError if the file cannot be read."""
    try:
        return frame.collect(engine="streaming")
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{FILE}: cannot be read: {one_line(error)}; import the capture again") from None


def of_data(flows: pl.LazyFrame) -> pl.LazyFrame:
    """Connections with data, from the sender of the data to its receiver: protocol, src, dst, src_port, dst_port;
    data_bytes (payload, with retransmissions), forward (whether the data goes forward on the link), retransmissions,
    rtt_ns (the least; by timestamps, else by the handshake), and all other columns.
    """
    back = pl.col("data_is_back")

    def either(if_back: str, if_out: str) -> pl.Expr:
        return pl.when(back).then(pl.col(if_back)).otherwise(pl.col(if_out))

    return flows.with_columns(
        data_bytes=either("payload_bytes_back", "payload_bytes_out"),
        data_packets=either("packets_back", "packets_out"),
        retransmissions=either("retransmissions_back", "retransmissions_out"),
        forward=pl.col("out_is_forward") != back,
        rtt_ns=pl.min_horizontal("rtt_least_ns", "rtt_handshake_ns"),
        src=either("dst", "src"), dst=either("src", "dst"),
        src_port=either("dst_port", "src_port"), dst_port=either("src_port", "dst_port"),
    ).filter(pl.col("data_bytes") > 0)  # fmt: skip


def mean_rtt_ns(flows: pl.LazyFrame) -> int | None:
    """The harmonic mean of the connections' least RTTs, weighted by their bytes: the rate of a flow is inversely
    proportional to its RTT. None if no connection has an RTT.
    """
    known = of_data(flows).filter(pl.col("rtt_ns").is_not_null(), pl.col("forward"))
    sums = collect(known.select(pl.col("data_bytes").sum(), (pl.col("data_bytes") / pl.col("rtt_ns")).sum().alias("x")))
    data, inverse = sums.row(0)
    return round(data / inverse) if inverse else None
