# SPDX-License-Identifier: MIT
"""One side of a router: its captures in the order of time, as slabs of packets that analysis/matching compares.

Segments that GRO or TSO merged are split again, packets that the capture has twice are left out, and neighbours whose
times are out of order are sorted. The memory is that of some slabs.
"""

from __future__ import annotations

import glob
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from analysis.importing.wrong_times import CONTEXT, DISORDER_NS, mended, with_end
from analysis.matching.match import keys
from analysis.read.columns import Columns, joined, rows_of
from analysis.read.flows import PROTOCOL_NUMBERS
from analysis.read.postcards import wire_bytes
from captures.reader import TUNNELS, Capture, is_capture
from lib import regular
from lib.errors import InputError
from lib.frames import ETHERNET_BYTES, IPV4_BYTES, IPV6_BYTES, LEAST_IP_BYTES, MOST_IP_BYTES, TCP_BYTES
from lib.terminal import counted
from wire.wire import CAPTURED_PACKET

CONST = CAPTURED_PACKET.const
HAS_IP, HAS_PORTS, HAS_TCP, HAS_OPTIONS, IS_SHORT = (
    np.uint8(CONST[f"CAPTURED_{name}"]) for name in ("HAS_IP", "HAS_PORTS", "HAS_TCP", "HAS_OPTIONS", "IS_SHORT")
)
TCP, UDP = PROTOCOL_NUMBERS["tcp"], PROTOCOL_NUMBERS["udp"]
FIN, SYN, PSH, CWR = 0x01, 0x02, 0x08, 0x80
TWICE_NS = 1_000_000  # between the copies of a packet; TCP sends nothing again so soon
MOSTLY_TWICE = 0.4  # share of copies among the packets of a capture that has (nearly) all of them twice
GAP_NS = 50_000_000  # jumps of the time from here on are remembered: the clock may have been set
MOST_GAPS = 1 << 16
MOST_STRANGE = 0.01  # share of the packets that may be tunnels, or too short to match
COPIED = (
    "src_addr_hi", "src_addr_lo", "dst_addr_hi", "dst_addr_lo", "src_port", "dst_port", "ip_protocol", "ip_bytes",
    "tcp_seq", "tcp_ack", "tcp_flags", "payload_bytes", "options_digest", "ttl", "checksum", "mss_bytes", "flags",
)  # fmt: skip


def matching(pattern: str) -> list[Path]:
    """The files of a pattern, if no file has it as its name; the pattern as a path if there are none."""
    found = [] if Path(pattern).exists() else sorted(map(Path, glob.glob(pattern)))  # noqa: PTH207 (absolute, too)
    return found or [Path(pattern)]


@dataclass
class Tap:
    """A side, `BEFORE` or `AFTER`. The counts are those of the last complete reading."""

    name: str
    files: list[Path]
    packets: int = 0  # IP packets, as captured
    others: int = 0  # frames without IP
    tunnels: Counter[int] = field(default_factory=Counter)
    short: int = 0  # packets whose headers were cut by the snap length
    without_options: int = 0  # TCP segments whose options were cut, and datagrams of whose payload too little is left
    merged: int = 0  # frames that GRO or TSO merged
    twice: int = 0
    lost: int = 0  # by the capture's own counters
    damage: list[str] = field(default_factory=list)
    full_bytes: Counter[int] = field(default_factory=Counter)  # lengths of full packets, by the MSS options
    gaps: list[tuple[int, int]] = field(default_factory=list)  # (row, ns since the row before)
    wrong: list[np.ndarray] = field(default_factory=list)  # rows whose times were wrong
    disordered: int = 0  # packets that came more than DISORDER_NS too late
    strays: int = 0  # packets to hosts that no packet behind the queue goes to
    extra: tuple[str, ...] = ()  # columns beside COPIED

    @classmethod
    def of(cls, name: str, patterns: Iterable[str]) -> Tap:
        """Raises InputError for a pattern without files, and for files that are no captures."""
        files = [path for pattern in patterns for path in matching(pattern)]
        for path in files:
            if not path.is_file() or not is_capture(path):
                what = "is no capture" if path.is_file() else regular.NOT_REGULAR if path.exists() else "does not exist"
                raise InputError(f"{path}: {what}; allowed for {name}: pcap or pcapng files, or a quoted pattern")
        return cls(name, files if len(files) < 2 else sorted(files, key=_first_ns))

    def read(self) -> Iterator[Columns]:
        """All IP packets in the files' order: COPIED, the columns of analysis/matching, `row` (over all files)."""
        for name, kind in vars(type(self)(self.name, [])).items():
            if name not in ("name", "files", "extra"):
                setattr(self, name, kind)
        last_ns = None
        for records, times, is_wrong in mended(self._records()):
            part = self._columns(records, times, is_wrong)
            if not len(part["row"]):
                continue
            step = np.diff(part["time_ns"], prepend=part["time_ns"][0] if last_ns is None else last_ns)
            last_ns = int(part["time_ns"][-1])
            jumps = np.flatnonzero((step < -DISORDER_NS) | (step > GAP_NS))[: MOST_GAPS - len(self.gaps)]
            self.gaps += zip(part["row"][jumps].tolist(), step[jumps].tolist(), strict=True)
            yield part
        if not self.packets:
            raise InputError(f"{self.name}: the captures have no IP packet; allowed: captures of a link with IP")
        for count, what in (
            (sum(self.tunnels.values()), f"are of tunnels ({', '.join(TUNNELS[kind] for kind in self.tunnels)})"),
            (self.short, "are cut before the end of their TCP or UDP header: capture with a larger snap length"),
        ):
            if count > MOST_STRANGE * (self.packets + self.others):
                raise InputError(
                    f"{self.name}: {count} of {self.packets + self.others} packets {what}; allowed: captures of plain "
                    "IP packets with whole TCP headers"
                )

    def _records(self) -> Iterator[np.ndarray]:
        for path in self.files:
            capture = Capture(path)
            yield from capture.batches()
            self.lost += capture.lost
            self.damage += [capture.damage] if capture.damage else []

    def _columns(self, records: np.ndarray, times_ns: np.ndarray, is_wrong: np.ndarray) -> Columns:
        self.tunnels.update(records["tunnel"][records["tunnel"] != 0].tolist())
        is_ip = records["flags"] & HAS_IP != 0
        self.others += int(np.count_nonzero(~is_ip))
        if not is_ip.all():
            records, times_ns, is_wrong = records[is_ip], times_ns[is_ip], is_wrong[is_ip]
        part = {name: np.array(records[name]) for name in (*COPIED, *self.extra)}  # a view cannot be written to
        is_tcp = part["flags"] & HAS_TCP != 0
        cut = (part["flags"] & IS_SHORT != 0) & np.isin(part["ip_protocol"], (TCP, UDP))
        self.short += int(np.count_nonzero(cut))
        has_digest = is_tcp | ((part["ip_protocol"] == UDP) & (part["flags"] & HAS_PORTS != 0) & ~cut)
        self.without_options += int(np.count_nonzero(has_digest & (part["flags"] & HAS_OPTIONS == 0)))
        if is_wrong.any():
            self.wrong.append(self.packets + np.flatnonzero(is_wrong))
        is_syn = is_tcp & (part["tcp_flags"] & SYN != 0)
        part["options_digest"][is_syn] = 0  # routers lower the MSS
        of_mss = part["mss_bytes"] > 0
        headers = np.where(part["src_addr_lo"][of_mss] >> np.uint64(32) == 0xFFFF, IPV4_BYTES, IPV6_BYTES) + TCP_BYTES
        full = part["mss_bytes"][of_mss] + headers
        self.full_bytes.update(full[(full >= LEAST_IP_BYTES) & (full <= MOST_IP_BYTES)].tolist())
        count = len(is_tcp)
        part |= {
            "row": np.arange(self.packets, self.packets + count),
            "time_ns": times_ns,
            "ip_id": records["ip_id"] ^ records["fragment"].astype(np.uint32) << np.uint32(16),
            "ecn": records["tos"] & np.uint8(3),
        }
        self.packets += count
        return part

    def ready(self, parts: Iterable[Columns], mtu_bytes: int, rate_bps: int) -> Iterator[Columns]:
        """Packets in the order of time, as they went over a link of this MTU and rate; with `frame_bytes`."""
        waiting: Columns = {}
        digests, digest_ns = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
        latest = emitted = np.iinfo(np.int64).min
        for part in with_end(parts):
            if part is not None:
                part = self.split(part, mtu_bytes, rate_bps)
                waiting = joined(waiting, part) if waiting else part
                latest = max(latest, int(part["time_ns"].max(initial=latest)))
            if not waiting:
                return
            waiting = rows_of(waiting, np.argsort(waiting["time_ns"], kind="stable"))
            times = waiting["time_ns"]
            until = len(times) if part is None else int(np.searchsorted(times, latest - DISORDER_NS))
            slab, waiting = rows_of(waiting, slice(until)), rows_of(waiting, slice(until, None))
            if not len(slab["time_ns"]):
                continue
            late = slab["time_ns"] < emitted
            self.disordered += int(np.count_nonzero(late))
            slab["time_ns"][late] = emitted
            emitted = int(slab["time_ns"][-1])
            copy, digests, digest_ns = _copies(slab, digests, digest_ns)
            self.twice += int(np.count_nonzero(copy))
            slab = rows_of(slab, ~copy) if copy.any() else slab
            yield slab | {"frame_bytes": slab["ip_bytes"] + np.uint32(ETHERNET_BYTES)}

    def split(self, part: Columns, mtu_bytes: int, rate_bps: int) -> Columns:
        """Splits TCP segments of more than the MTU. The capture has the time of the last; those before it came as fast
        as the link carries them.
        """
        headers = part["ip_bytes"].astype(np.int64) - part["payload_bytes"]
        merged = (part["ip_bytes"] > mtu_bytes) & (part["flags"] & HAS_TCP != 0) & (headers <= mtu_bytes // 2)
        if not merged.any():
            return part
        self.merged += int(np.count_nonzero(merged))
        most = np.where(merged, mtu_bytes - headers, np.maximum(part["payload_bytes"], 1))
        count = np.maximum(-(-part["payload_bytes"].astype(np.int64) // most), 1)
        row = np.repeat(np.arange(len(count)), count)
        number = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
        whole, is_last = rows_of(part, row), number == count[row] - 1
        payload = np.minimum(most[row], whole["payload_bytes"] - number * most[row])
        before = (count[row] - 1 - number) * wire_bytes(most + headers + ETHERNET_BYTES)[row]
        many = merged[row]
        flags = whole["tcp_flags"] & ~np.where(is_last, 0, FIN | PSH) & ~np.where(number == 0, 0, CWR)
        return whole | {
            "time_ns": whole["time_ns"] - before * 8_000_000_000 // rate_bps * many,
            "tcp_seq": (whole["tcp_seq"] + number * most[row]).astype(np.uint32),
            "payload_bytes": np.where(many, payload, whole["payload_bytes"]).astype(np.uint32),
            "ip_bytes": np.where(many, headers[row] + payload, whole["ip_bytes"]).astype(np.uint32),
            "ip_id": whole["ip_id"] + np.where(many & (whole["ip_id"] > 0), number, 0).astype(np.uint32),
            "tcp_flags": np.where(many, flags, whole["tcp_flags"]).astype(np.uint8),
            "checksum": np.where(many, 0, whole["checksum"]).astype(np.uint16),
        }  # fmt: skip

    def notes(self) -> list[str]:
        """Faults of the captures, one line each."""
        tunnels, wrong = sum(self.tunnels.values()), sum(map(len, self.wrong))
        faults = (
            (self.lost, f"the capture lost {counted(self.lost, 'packet')}, by its own counters"),
            (self.twice, f"{counted(self.twice, 'packet')} came twice; the copies are left out"),
            (self.merged, f"{counted(self.merged, 'frame')} of GRO or TSO are split; the times within are assumed"),
            (
                wrong := sum(map(len, self.wrong)),
                f"{counted(wrong, 'packet')} have wrong times; assumed are those before",
            ),
            (self.disordered, f"{counted(self.disordered, 'packet')} have times before those of earlier packets"),
            (tunnels, f"{counted(tunnels, 'packet')} of tunnels count as plain IP, or are left out"),
            (self.short, f"{counted(self.short, 'packet')} are too short to compare"),
        )
        return [f"{self.name}: {text}" for number, text in faults if number]


def _first_ns(path: Path) -> int:
    batches = Capture(path).batches()
    try:
        return next((int(np.median(records["real_ns"][:CONTEXT].view(np.int64))) for records in batches), 0)
    finally:
        batches.close()  # type: ignore[attr-defined]


def _copies(slab: Columns, digests: np.ndarray, digest_ns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mask of the packets that are copies of one just before: equal also in what a router changes. Also the digests and
    times of the last packets, which the next slab needs. A datagram without IP id may be sent twice: it is a copy only
    if most packets come twice.
    """
    changed = slab["ttl"] | slab["checksum"].astype(np.uint64) << np.uint64(8)
    own = keys(slab) ^ changed * np.uint64(0x9E3779B97F4A7C15)
    has_number = (slab["ip_id"] != 0) | ((slab["flags"] & HAS_TCP != 0) & (slab["payload_bytes"] > 0))
    every, times = np.concatenate((digests, own)), np.concatenate((digest_ns, slab["time_ns"]))
    order = np.argsort(every, kind="stable")
    same = (every[order[1:]] == every[order[:-1]]) & (times[order[1:]] - times[order[:-1]] <= TWICE_NS)
    copy = np.zeros(len(every), dtype=bool)
    copy[order[1:][same]] = True
    result, last = copy[len(digests) :], times > slab["time_ns"][-1] - TWICE_NS
    if np.count_nonzero(result & has_number) < MOSTLY_TWICE * np.count_nonzero(has_number):
        result &= has_number
    return result, every[last], times[last]
