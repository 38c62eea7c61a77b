# SPDX-License-Identifier: MIT
"""One capture of a link becomes a run: its connections, its rate over time, and its arrivals at a queue.

Two readings of bounded memory. The first finds the sides of the link (sides.py) and its MTU. The second measures each
connection (captures/connections.c), counts packets and bytes in bins of time, and puts the packets of the forward way
into a queue without a limit that sends at RATE: their departures and depths are computed, not captured. A capture
taken behind a queue therefore shows an almost empty one, and one taken before it shows the queue that it met.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl

from analysis.importing import write
from analysis.importing.fields import Cards
from analysis.importing.sides import BACK, FORWARD, NEITHER, Sides
from analysis.importing.tap import HAS_TCP, Tap
from analysis.importing.traffic import MOST_FLOWS, Traffic
from analysis.importing.windows import Log, Windows
from analysis.matching.depths import with_depths
from analysis.matching.recorded import Watched, write_postcards
from analysis.read import connections
from analysis.read.columns import Columns, in_order, rows_of
from analysis.read.flows import FiveTuple
from analysis.read.postcards import wire_bytes
from analysis.results.tables import write_frames
from captures.connections import ConnectionTable
from lib.errors import InputError
from lib.frames import ETHERNET_BYTES, MOST_IP_BYTES, wire_bytes_of_ip
from lib.terminal import counted
from lib.units import show
from model.experiment import UNKNOWN_IF_RECORDED, Link
from runs.names import POSTCARDS_FILE, TCP_FILE

MOST_SECOND = 1.25  # of RATE, that the packets of a second may have: before a queue it is more than passes it
ECN_CE = 3
NEEDED = ("tcp_window", "window_scale", "ts_value", "ts_echo", "src_mac", "dst_mac")
WHOLE = 1 << 30  # an MTU for which no frame is split


@dataclass
class _Queue:
    """A queue without a limit: departures of packets, in integer ns with the remainder carried within a slab."""

    rate_bps: int
    free_ns: int = 0  # when its last packet has left
    deepest: int = 0

    def departures(self, packets: Columns) -> Columns:
        came = packets["time_ns"]
        bits = np.cumsum(wire_bytes(packets["frame_bytes"])) * 8
        seconds, rest = np.divmod(bits, self.rate_bps)
        sent_ns = seconds * 10**9 + (rest * (1e9 / self.rate_bps)).astype(np.int64)
        before_ns = np.append(0, sent_ns[:-1])
        free = np.maximum.accumulate(np.maximum(came, self.free_ns) - before_ns)
        left = free + sent_ns
        self.free_ns = int(left[-1])
        no = np.zeros(len(came), dtype=bool)
        return packets | {"departure_ns": left, "dropped": no, "marked": no}

    def watch(self, slab: Columns) -> Columns:
        self.deepest = max(self.deepest, int(slab["depth_packets"].max(initial=0)) + 1)
        return slab


@dataclass
class LinkExperiment:
    """An experiment on one captured link. `write` reads the captures; the rest is known then."""

    tap: Tap
    conditions: write.Conditions
    mtu_bytes: int | None  # None: by the handshakes
    log: Log | None = None  # of the senders' windows
    source: write.Provenance = field(default_factory=lambda: write.Provenance("a capture of a link"))
    name: str = "capture"
    can_replay: bool = True

    @property
    def damage(self) -> list[str]:
        return self.tap.damage

    def write(self, directory: Path) -> None:
        """Writes all but derived files into an empty `directory`. Raises InputError, OSError."""
        tap, rate_bps, sides = self.tap, self.conditions.rate_bps, Sides()
        tap.extra = NEEDED
        for part in tap.read():
            sides.add(part)
        sides.settle()
        full = tap.full_bytes.most_common(1)
        mtu_bytes = self.mtu_bytes or (full[0][0] if full else 1500)
        found, bins, queue = Counter[str](), connections.Bins(), _Queue(rate_bps)
        windows = self.log and Windows(self.log, directory, "FROM")
        with ConnectionTable(directory, rate_bps, mtu_bytes) as table:
            arrivals = self._arrivals(table, sides, found, bins, mtu_bytes, windows)
            packets = (queue.watch(slab) for slab in with_depths(map(queue.departures, arrivals)))
            count = write_postcards(directory / POSTCARDS_FILE, packets, Watched(1, 0, 1, 0))
            table.end()
            self._check_rate(bins, mtu_bytes)
            with (directory / TCP_FILE).open("xb") as file:
                if windows:
                    windows.write(file, 0)
            write_frames(directory / connections.BINS_FILE, len(bins), bins.frame)
            order = np.argsort(table.column("start_ns"), kind="stable")
            write_frames(
                directory / connections.FILE, len(order), lambda rows: connections.frame(table.rows(order[rows]))
            )
        flows, link = connections.scan(directory), Link(**found)
        self._say(flows, link, sides)
        rtt_ns = self.conditions.rtt_ns or connections.mean_rtt_ns(flows)
        if not rtt_ns:
            raise InputError(
                "the capture has neither a handshake nor TCP timestamps of both ways, so the RTT is unknown: add "
                "RTT=20ms"
            )
        traffic = _traffic(flows, bins, self.conditions.flows, self.source)
        if windows:
            windows.say(self.source, traffic.flows)
        warmup = self.conditions.warmup_ns or 0
        length = traffic.end_ns - traffic.start_ns
        if warmup >= length:
            raise InputError(f"WARMUP is {warmup / 1e9:g} s, and the capture lasts {length / 1e9:.3f} s; allowed: less")
        conditions = replace(
            self.conditions, mtu_bytes=mtu_bytes, rtt_ns=rtt_ns, warmup_ns=warmup,
            buffer_packets=self.conditions.buffer_packets or max(queue.deepest, 1),
            duration_ns=self.conditions.duration_ns or length - warmup,
        )  # fmt: skip
        self.source.files += [write.digest(path) for path in tap.files]
        unknown = Cards([], set(UNKNOWN_IF_RECORDED))
        write.describe(
            directory, traffic, conditions, self.source, unknown, None, [] if windows else ["trace"], count, link=link
        )

    def _arrivals(
        self,
        table: ConnectionTable,
        sides: Sides,
        found: Counter[str],
        bins: connections.Bins,
        mtu_bytes: int,
        windows: Windows | None,
    ) -> Iterator[Columns]:
        """The packets of the forward way as they went over the link, in the order of time."""
        tap, rate_bps = self.tap, self.conditions.rate_bps
        merged_ns = MOST_IP_BYTES * 2 * 8_000_000_000 // rate_bps

        def split() -> Iterator[Columns]:
            for slab in tap.ready(tap.read(), WHOLE, rate_bps):
                way = sides.way(slab)
                table.add(slab, way)
                if windows:
                    tcp = np.flatnonzero((slab["flags"] & HAS_TCP != 0) & (way != NEITHER))
                    windows.add(rows_of(slab, tcp), way[tcp] == FORWARD)
                found["neither"] += int(np.count_nonzero(way == NEITHER))
                found["marked"] += int(np.count_nonzero((slab["ecn"] == ECN_CE) & (way == FORWARD)))
                for each in (FORWARD, BACK):
                    packets = tap.split(rows_of(slab, way == each), mtu_bytes, rate_bps)
                    packets |= {"frame_bytes": packets["ip_bytes"] + np.uint32(ETHERNET_BYTES)}
                    bins.add(packets["time_ns"], wire_bytes(packets["frame_bytes"]), each)
                    found["packets_back" if each else "packets"] += len(packets["time_ns"])
                    if each == FORWARD:
                        bound = np.maximum.accumulate(packets["time_ns"]) - merged_ns
                        yield packets | {"bound_ns": bound}

        return (slab for slab in in_order(split(), "time_ns", "bound_ns") if len(slab["time_ns"]))

    def _check_rate(self, bins: connections.Bins, mtu_bytes: int) -> None:
        rate_bps, second_bps = self.conditions.rate_bps, round(bins.most_bps(10**9))
        if second_bps > MOST_SECOND * rate_bps:
            raise InputError(
                f"RATE is {show(rate_bps, 'rate')}, and the capture carries up to {second_bps / 1e6:.4g} Mb/s in a "
                "second; allowed: the rate of the link that was captured"
            )
        if second_bps > most_behind_bps(rate_bps, mtu_bytes):
            self.source.remarks.append(
                f"the busiest second has {second_bps / 1e6:.4g} Mb/s, more than RATE: the capture is of packets before "
                "the queue"
            )

    def _say(self, flows: pl.LazyFrame, link: Link, sides: Sides) -> None:
        source = self.source
        is_tcp = pl.col("protocol") == "tcp"
        rows, tcp, both, started, unseen, forgotten = connections.collect(
            flows.select(
                pl.len(), is_tcp.sum().alias("tcp"), (is_tcp & pl.col("both_ways")).sum().alias("both"),
                (is_tcp & pl.col("has_start")).sum().alias("started"), pl.col("unseen_bytes").sum(),
                pl.col("forgotten").sum(),
            )
        ).row(0)  # fmt: skip
        source.remarks.insert(
            0,
            f"user traffic: {counted(link.packets, 'packet')} forward and {link.packets_back} back, of "
            f"{counted(rows, 'connection')}, {tcp} of TCP; {connections.FILE} has them",
        )
        source.notes += [*self.tap.notes(), *self.damage]
        if tcp and not both:
            source.remarks.append(
                "only one way was captured: RTTs are those of handshakes, and without what is in flight a cap of "
                "the window is not found"
            )
        elif tcp and not started:
            source.remarks.append("no connection began within the capture: the receivers' windows are unknown")
        if sides.groups > 1:
            kind = "hosts" if not sides.has_link_addresses else "Ethernet addresses"
            source.remarks.append(
                f"{sides.groups} groups of {kind} never talk to each other: forward is the way with more bytes, of each"
            )
        if link.neither:
            source.remarks.append(f"{counted(link.neither, 'packet')} stay on one side of the link, and are left out")
        if unseen:
            source.notes.append(f"{unseen} bytes of TCP were acknowledged, but the capture does not have them")
        if forgotten:
            source.notes.append(f"{counted(forgotten, 'connection')} may have two rows: too many were open at once")


def most_behind_bps(rate_bps: int, mtu_bytes: int) -> int:
    """The most that a second of a full link counts: a frame more than its rate, since frames count where they end."""
    return rate_bps + 8 * wire_bytes_of_ip(mtu_bytes)


def _traffic(flows: pl.LazyFrame, bins: connections.Bins, most: int | None, source: write.Provenance) -> Traffic:
    """The flows that carry data forward, those with the most bytes first, as flows from the sender of the data."""
    ends = ["protocol", "src", "dst", "src_port", "dst_port"]
    forward = connections.of_data(flows).filter(pl.col("protocol").is_in(["tcp", "udp"]), pl.col("forward"))
    every = forward.group_by(ends).agg(pl.col("data_bytes").sum())
    ranked = every.sort("data_bytes", *ends, descending=[True, *[False] * len(ends)])
    chosen = connections.collect(ranked.head(most or MOST_FLOWS))
    number, amount = connections.collect(every.select(pl.len(), pl.col("data_bytes").sum())).row(0)
    if len(chosen) < number:
        share = chosen["data_bytes"].sum() / amount
        source.remarks.append(f"{len(chosen)} of {number} flows, with {share:.1%} of the bytes, are in the report")
    found = [FiveTuple.of(*row) for row in chosen.select(ends).iter_rows()]
    return Traffic(sorted(found, key=lambda f: (f.src_port, f.dst_port, f.src, f.dst)), *bins.span_ns)
