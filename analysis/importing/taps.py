# SPDX-License-Identifier: MIT
"""Two captures of a router, BEFORE and AFTER its queue, become the postcards of that queue.

Three readings of bounded memory. The first relates the clocks (tap_clocks). The second matches each arrival with its
departure, into a table in a file. The third completes what one capture lost by the order of the queue, which is first
in, first out: a packet that only AFTER has arrived just after the packet that left before it; one that only BEFORE has,
and that the receiver acknowledged although nobody sent it again, left behind the packet that arrived before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from analysis.importing import tap_clocks, write
from analysis.importing.fields import Cards
from analysis.importing.outstanding import Outstanding
from analysis.importing.tap import HAS_TCP, SYN, TCP, UDP, Tap
from analysis.importing.tap_clocks import ENDS, Clocks
from analysis.importing.traffic import MOST_FLOWS, Traffic
from analysis.importing.windows import Log, Windows
from analysis.matching.depths import with_depths
from analysis.matching.match import KEY, Limits, Matcher
from analysis.matching.recorded import Watched, write_postcards
from analysis.read.columns import ColumnFile, Columns, joined, rows_of, slabs
from analysis.read.flows import FlowTable, flow_words
from analysis.read.postcards import wire_bytes
from analysis.read.switch_clock import MAX_DRIFT
from lib.errors import InputError
from lib.terminal import counted
from model.experiment import UNKNOWN_IF_RECORDED, Taps
from runs.names import POSTCARDS_FILE, TCP_FILE

SLACK_NS = 1_000_000  # by which a packet may seem to leave before it came
USUAL_RTT_NS = 10_000_000  # until a handshake tells
LEAST_WAIT_NS = 50_000_000
RATE_TOLERANCE = 0.02
MOST_WAITING = 1 << 20  # packets of which it is open whether AFTER lost them; older ones count as dropped
MOST_GAPS = 1 << 20  # transmissions behind each other that the rate is measured by
KEPT = {
    "time_ns": np.int64, "departure_ns": np.int64, "frame_bytes": np.uint32, "dropped": np.bool_, "marked": np.bool_,
    "ecn": np.uint8, "src_addr_hi": np.uint64, "src_addr_lo": np.uint64, "dst_addr_hi": np.uint64,
    "dst_addr_lo": np.uint64, "src_port": np.uint16, "dst_port": np.uint16, "ip_protocol": np.uint8,
    "tcp_seq": np.uint32, "tcp_ack": np.uint32, "tcp_flags": np.uint8, "payload_bytes": np.uint32,
}  # fmt: skip
OF_TCP = (
    "time_ns", "forward", "tcp_seq", "tcp_ack", "tcp_flags", "payload_bytes", "src_addr_hi", "src_addr_lo",
    "dst_addr_hi", "dst_addr_lo", "src_port", "dst_port", "ip_protocol",
)  # fmt: skip
KINDS = {name: np.dtype(kind) for name, kind in KEPT.items()}
_Traced = tuple[Outstanding, Windows | None]


@dataclass
class Flows:
    """What the import keeps of each flow, in both directions, by its number."""

    table: FlowTable = field(default_factory=FlowTable)
    columns: Columns = field(default_factory=dict)
    least_rtt_ns: int | None = None  # of handshakes

    def numbers(self, part: Columns) -> np.ndarray:
        numbers = self.table.numbers(_words(part, "src", "dst"))
        known = len(next(iter(self.columns.values()), ()))
        if len(self.table) > known:
            more = max(len(self.table) - known, known)
            for name in ("ack", "end", "packets", "data", "syn_ns"):
                kind = np.uint32 if name in ("ack", "end") else np.int64
                self.columns[name] = np.append(self.columns.get(name, np.zeros(0, kind)), np.zeros(more, kind))
        return numbers

    def handshakes(self, tcp: Columns) -> np.ndarray:
        """Round trips from a SYN to the next segment of its sender. Returns the packets' numbers of flows."""
        flow = self.numbers(tcp)
        syn, times, control = self.columns["syn_ns"], tcp["time_ns"], tcp["tcp_flags"] & (SYN | 0x10)
        is_syn = control == SYN
        begun, first = np.unique(flow[is_syn], return_index=True)
        new = syn[begun] == 0
        syn[begun[new]] = times[is_syn][first[new]]
        waiting = ~is_syn & (syn[flow] > 0)
        flows, first = np.unique(flow[waiting], return_index=True)
        if len(flows):
            round_trips = times[waiting][first] - syn[flows]
            syn[flows] = -1
            if (round_trips > 0).any():
                least = int(round_trips[round_trips > 0].min())
                self.least_rtt_ns = least if self.least_rtt_ns is None else min(least, self.least_rtt_ns)
        return flow


@dataclass
class _Lost:
    """Finds packets that came out of the queue although AFTER does not have them: the receiver acknowledged first
    transmissions that did not come out, before any copy of them did.
    """

    flows: Flows
    most_ns: int  # from an arrival to its departure
    acks: list[Columns] = field(default_factory=list)  # that BEFORE has, in the order of time
    waiting: Columns = field(default_factory=dict)  # packets that did not come out: flow, seq, end, row
    rows: list[np.ndarray] = field(default_factory=list)
    alone: Columns = field(default_factory=dict)  # time_ns and key of data that only AFTER has

    def add_alone(self, packets: Columns) -> None:
        """A slab of packets that only AFTER has, before the arrivals that were decided with it."""
        if self.alone and len(self.alone["time_ns"]):
            decided_ns = int(self.alone["time_ns"][-1]) - self.most_ns
            self.alone = rows_of(self.alone, self.alone["time_ns"] > decided_ns)
        data = (packets["ip_protocol"] == TCP) & (packets["payload_bytes"] > 0)
        keys = _key(self.flows.table.find(_words(packets, "src", "dst")), packets["tcp_seq"])
        new = rows_of({"time_ns": packets["time_ns"], "key": keys}, data)
        self.alone = joined(self.alone, new) if self.alone else new

    def add(self, packets: Columns, first_row: int) -> None:
        """A slab of matched packets, in the order of arrivals."""
        data = np.flatnonzero((packets["ip_protocol"] == TCP) & (packets["payload_bytes"] > 0))
        part = rows_of({name: packets[name] for name in KEPT}, data)
        flow, ends = self.flows.numbers(part), self.flows.columns["end"]
        end = (part["tcp_seq"] + part["payload_bytes"]).astype(np.uint32)
        begun = self.flows.columns["packets"][flow] > 0
        is_new = ~begun | ((end - ends[flow]).view(np.int32) > 0)
        np.add.at(self.flows.columns["packets"], flow, 1)
        known, which = np.unique(flow, return_inverse=True)
        ends[flow[~begun][::-1]] = part["tcp_seq"][~begun][::-1]  # NumPy keeps the last: the flow's first packet
        further = np.zeros(len(known), dtype=np.int32)
        np.maximum.at(further, which, (end - ends[flow]).view(np.int32))
        ends[known] += further.view(np.uint32)
        key = _key(flow, part["tcp_seq"])
        is_new &= _is_first(key)
        # A copy of a packet that came out may be dropped, too: only copies of those that wait are of interest.
        missed = np.append(_key(self.waiting["flow"], self.waiting["seq"]) if self.waiting else key[:0], key[is_new])
        lost = part["dropped"] & (is_new | tap_clocks.among(key, np.sort(missed)))
        new = {"flow": flow[lost], "seq": part["tcp_seq"][lost], "end": end[lost], "row": first_row + data[lost]}
        self.waiting = rows_of(joined(self.waiting, new) if self.waiting else new, slice(-MOST_WAITING, None))
        came_out = key[~part["dropped"]]
        until_ns = int(packets["time_ns"][-1])
        if self.alone:
            came_out = np.append(came_out, self.alone["key"])
            self.alone = rows_of(self.alone, self.alone["time_ns"] > until_ns)
        again = tap_clocks.among(_key(self.waiting["flow"], self.waiting["seq"]), np.sort(came_out))
        self.waiting = rows_of(self.waiting, ~again)
        self._acknowledged(until_ns)

    def _acknowledged(self, until_ns: int) -> None:
        highest = self.flows.columns["ack"]
        while self.acks and self.acks[0]["time_ns"][0] <= until_ns:
            part = self.acks.pop(0)
            count = int(np.searchsorted(part["time_ns"], until_ns, side="right"))
            flow, ack = part["flow"][:count], part["ack"][:count]
            highest[flow] = ack  # NumPy keeps the last
            if count < len(part["flow"]):
                self.acks.insert(0, rows_of(part, slice(count, None)))
        acked = highest[self.waiting["flow"]]
        passed = (acked != 0) & ((acked - self.waiting["end"]).view(np.int32) >= 0)
        rows = rows_of(self.waiting, passed)
        keys = _key(rows["flow"], rows["seq"])[::-1]  # of several copies the last came out
        self.rows.append(rows["row"][::-1][np.unique(keys, return_index=True)[1]])
        self.waiting = rows_of(self.waiting, ~passed)


def _is_first(key: np.ndarray) -> np.ndarray:
    """Mask of the first of equal keys."""
    result = np.zeros(len(key), dtype=bool)
    result[np.unique(key, return_index=True)[1]] = True
    return result


def _key(flow: np.ndarray, seq: np.ndarray) -> np.ndarray:
    return flow.astype(np.uint64) << np.uint64(32) | seq


def _words(part: Columns, src: str, dst: str) -> np.ndarray:
    """The input of FlowTable.numbers, of the way from `src` to `dst`."""
    return flow_words(part, part["ip_protocol"], src, dst)


@dataclass
class TapsExperiment:
    """An experiment between two taps. `write` reads the captures; the rest is known then."""

    before: Tap
    after: Tap
    conditions: write.Conditions
    mtu_bytes: int | None  # None: by the handshakes
    log: Log | None = None  # of the senders' windows
    source: write.Provenance = field(default_factory=lambda: write.Provenance("captures before and behind a router"))
    name: str = "captures"
    can_replay: bool = True

    @property
    def damage(self) -> list[str]:
        return [*self.before.damage, *self.after.damage]

    def write(self, directory: Path) -> None:
        """Writes all but derived files into an empty `directory`. Raises InputError, OSError."""
        rate_bps = self.conditions.rate_bps
        clocks = tap_clocks.compared(self.before, self.after, rate_bps)
        full = (self.before.full_bytes + self.after.full_bytes).most_common(1)
        mtu_bytes = self.mtu_bytes or (full[0][0] if full else 1500)
        flows = Flows()
        with (directory / TCP_FILE).open("xb") as file:
            windows = self.log and Windows(self.log, directory, "BEFORE")
            outstanding = Outstanding(file, of_acks=self.log is None or self.log.counts_bytes)
            table, behind, matcher, lost, uncovered = self._matched(
                directory, clocks, flows, (outstanding, windows), mtu_bytes
            )
            if windows:
                outstanding.records = windows.write(file, outstanding.records)
        if lost:
            table["dropped"][np.array(lost)] = np.zeros(len(lost), dtype=bool)
        rates = _Rate()
        deepest = _Deepest(flows)
        packets = deepest.watch(with_depths(rates.watch(_completed(table, behind, rate_bps))))
        count = write_postcards(directory / POSTCARDS_FILE, packets, Watched(1, 0, 1, 0))
        self.source.files += [write.digest(path) for tap in (self.before, self.after) for path in tap.files]
        self.source.notes += [*self.before.notes(), *self.after.notes(), *self.damage]
        taps = Taps(
            pairs=matcher.pairs, only_before=len(table["time_ns"]) - matcher.pairs, only_behind=len(behind["time_ns"]),
            lost_behind=len(lost), ambiguous=matcher.ambiguous, uncovered=uncovered, rate_bps=rates.bps(),
            drift_ppm=clocks.slope * 1e6, uncertainty_ns=clocks.uncertainty_ns,
            steps_ns=tuple(-shift for steps in clocks.steps.values() for _, shift in steps), nat=tuple(clocks.changed),
        )  # fmt: skip
        self._say(taps, matcher, bool(outstanding.records) and not windows)
        if self.before.strays:
            self.source.remarks.append(
                f"{counted(self.before.strays, 'packet')} of BEFORE are left out: no packet of AFTER goes there"
            )
        if self.conditions.rtt_ns == 0:
            if flows.least_rtt_ns is None:
                raise InputError("the captures have no handshake of TCP, so the RTT is unknown: add RTT=20ms")
            self.conditions.rtt_ns = flows.least_rtt_ns
            self.source.remarks.append(f"RTT: {flows.least_rtt_ns / 1e6:.3f} ms, the shortest handshake in BEFORE")
        found = _traffic(flows, table, self.conditions.flows, self.source)
        if windows:
            windows.say(self.source, found.flows)
        length, warmup = found.end_ns - found.start_ns, self.conditions.warmup_ns or 0
        if warmup >= length:
            raise InputError(
                f"WARMUP is {warmup / 1e9:g} s, and both captures together cover {length / 1e9:.3f} s; allowed: less"
            )
        conditions = replace(
            self.conditions, mtu_bytes=mtu_bytes, mode="ecn" if matcher.marks else self.conditions.mode,
            buffer_packets=self.conditions.buffer_packets or deepest.buffer_packets,
            warmup_ns=warmup, duration_ns=self.conditions.duration_ns or length - warmup,
        )  # fmt: skip
        if not self.conditions.buffer_packets:
            self.source.remarks.append(f"buffer: {counted(deepest.buffer_packets, 'packet')}, the deepest queue")
        lacks = [] if outstanding.records else ["trace"]
        unknown = Cards([], set(UNKNOWN_IF_RECORDED))
        write.describe(directory, found, conditions, self.source, unknown, None, lacks, count, taps)

    def _matched(
        self, directory: Path, clocks: Clocks, flows: Flows, traced: _Traced, mtu_bytes: int
    ) -> tuple[Columns, Columns, Matcher, list[int], int]:
        """All packets before the queue with their departures; those that only AFTER has; the rows of packets that AFTER
        lost; and how many packets are left out, because the other capture does not cover their time.
        """
        rate_bps = self.conditions.rate_bps
        has_options = not (self.before.without_options or self.after.without_options)
        limits = Limits(2 * clocks.longest_ns + LEAST_WAIT_NS, -SLACK_NS, keeps_id=True)
        lost, uncovered = _Lost(flows, limits.most_ns), 0

        def only(packets: Columns, may_stay: np.ndarray) -> Columns:
            nonlocal uncovered
            uncovered += int(np.count_nonzero(~may_stay))
            return packets if may_stay.all() else rows_of(packets, may_stay)

        def side(tap: Tap, watch: bool) -> Iterator[Columns]:
            parts = clocks.place(tap, tap.read())
            if watch:
                parts = _both_ways(parts, flows, lost, traced, self.conditions.rtt_ns)
            forward = (rows_of(part, part["forward"]) for part in parts)
            packets = tap.ready(forward, mtu_bytes, rate_bps)
            near = (only(slab, clocks.covers(tap.name, slab["time_ns"], limits.most_ns)) for slab in packets)
            return (_comparable(slab, clocks.changed, has_options) for slab in near)

        matcher = Matcher(side(self.before, True), side(self.after, False), limits)
        came, behind = (ColumnFile(directory, KINDS) for _ in range(2))
        for packets, alone in matcher:
            if alone:
                alone = only(alone, clocks.covers("AFTER", alone["time_ns"]))
            if alone and len(alone["time_ns"]):
                alone = _named(alone, clocks.changed)
                no = np.zeros(len(alone["time_ns"]), dtype=bool)
                lost.add_alone(alone)
                behind.append(alone | {"departure_ns": alone["time_ns"], "dropped": no, "marked": no})
            if packets:
                packets = only(packets, ~packets["dropped"] | clocks.covers("BEFORE", packets["time_ns"]))
            if packets and len(packets["time_ns"]):
                packets = _named(packets, clocks.changed)
                lost.add(packets, came.rows)
                came.append(packets)
        rows = np.concatenate([np.zeros(0, dtype=np.int64), *lost.rows])
        return came.columns(), behind.columns(), matcher, rows.tolist(), uncovered

    def _say(self, taps: Taps, matcher: Matcher, estimated: bool) -> None:
        notes, remarks = self.source.notes, self.source.remarks
        if taps.only_behind:
            notes.append(
                f"{counted(taps.only_behind, 'packet')} of AFTER are not in BEFORE, which lost them, or which they did "
                "not pass: their arrivals are those of their neighbours in the queue"
            )
        if taps.lost_behind:
            notes.append(
                f"{counted(taps.lost_behind, 'packet')} are not in AFTER, but were acknowledged and never sent again: "
                "AFTER lost them, and their departures are assumed"
            )
        if taps.ambiguous:
            notes.append(
                f"{counted(taps.ambiguous, 'departure')} had several equal arrivals, told apart by their times"
            )
        if abs(taps.drift_ppm) >= 1e6 * MAX_DRIFT:
            notes.append(
                f"the clocks drift by at least {abs(taps.drift_ppm):.0f} ppm, as no clock does: times in the queue are "
                "wrong; look for packets with wrong times, and leave them out (editcap -A -B)"
            )
        if taps.uncovered:
            remarks.append(
                f"{counted(taps.uncovered, 'packet')} came or left when only one of the captures was running: they are "
                "left out"
            )
        for step in taps.steps_ns:
            notes.append(f"a clock was set by {step / 1e9:+.6f} s during the captures, which is undone")
        bound = (
            "nothing bounds it: packets of one direction only"
            if taps.uncertainty_ns is None
            else (f"at most {taps.uncertainty_ns / 1000:.3f} us too short")
        )
        remarks.append(
            f"clocks: AFTER drifts by {taps.drift_ppm:+.3f} ppm against BEFORE; the packet that waited least is taken "
            f"to have found an empty queue, so times in the queue are right or too short ({bound})"
        )
        if estimated:
            remarks.append("windows: packets in flight by the sequence and ACK numbers in BEFORE; cwnd is not known")
        if taps.nat:
            remarks.append(f"NAT changes the {', '.join(taps.nat)}; addresses are those of BEFORE")
        asked = self.conditions.rate_bps
        if taps.rate_bps is None:
            notes.append("no packet left right behind another, so RATE could not be checked")
        elif abs(taps.rate_bps / asked - 1) > RATE_TOLERANCE:
            notes.append(
                f"packets behind each other left at {taps.rate_bps / 1e6:.3f} Mb/s, RATE is {asked / 1e6:.3f} Mb/s: "
                "import again with the bottleneck's rate"
            )


def _both_ways(parts: Iterator[Columns], flows: Flows, lost: _Lost, traced: _Traced, rtt_ns: int) -> Iterator[Columns]:
    """The packets of BEFORE, of which both ways are watched: handshakes, and ACKs of what went to AFTER."""
    outstanding, windows = traced
    for part in parts:
        rows = np.flatnonzero(part["flags"] & HAS_TCP != 0)
        rows = rows[np.argsort(part["time_ns"][rows], kind="stable")]
        tcp = rows_of({name: part[name] for name in OF_TCP}, rows)
        if windows:
            windows.add(tcp, tcp["forward"])
        flow = flows.handshakes(tcp).astype(np.int64)  # -1: unknown
        is_ack = ~tcp["forward"]
        flow[is_ack] = flows.table.find(_words(rows_of(tcp, is_ack), "dst", "src"))
        if not (known := flow >= 0).all():
            tcp, flow, is_ack = rows_of(tcp, known), flow[known], is_ack[known]
        acks = {"time_ns": tcp["time_ns"], "flow": flow, "ack": tcp["tcp_ack"]}
        acks = rows_of(acks, is_ack & (tcp["tcp_flags"] & 0x10 != 0))
        lost.acks += [acks] if len(acks["flow"]) else []
        outstanding.add(tcp, flow, is_ack, rtt_ns or flows.least_rtt_ns or USUAL_RTT_NS)
        yield part
    outstanding.end(rtt_ns or flows.least_rtt_ns or USUAL_RTT_NS)


def _comparable(slab: Columns, changed: list[str], has_options: bool) -> Columns:
    """The columns to compare. Those that NAT changes get other names."""
    slab = dict(slab)
    for what in changed:
        for name in ENDS[what]:
            slab[f"own_{name}"] = slab.pop(name)
    if not has_options:
        slab["options_digest"] = np.zeros_like(slab["options_digest"])
    assert {name for name in KEY if name not in slab} == {name for what in changed for name in ENDS[what]}
    return slab


def _named(packets: Columns, changed: list[str]) -> Columns:
    return packets | {name: packets[f"own_{name}"] for what in changed for name in ENDS[what]}


def _completed(table: Columns, behind: Columns, rate_bps: int) -> Iterator[Columns]:
    """The packets in the order of arrivals, with those that only AFTER has, and departures of those that AFTER lost."""
    taken = 0
    last_left = last_came = np.iinfo(np.int64).min
    for rows in slabs(len(table["time_ns"])):
        part = rows_of(table, rows)
        link_ns = wire_bytes(part["frame_bytes"]) * 8_000_000_000 // rate_bps
        known = ~part["dropped"] & (part["departure_ns"] > 0)
        part["departure_ns"][known] = np.maximum(part["departure_ns"], part["time_ns"] + 1)[known]
        entered = np.flatnonzero(~part["dropped"])
        before = np.append(-1, entered)[np.searchsorted(entered, np.arange(len(known)))]
        for row in np.flatnonzero(~part["dropped"] & ~known).tolist():
            left = part["departure_ns"][before[row]] if before[row] >= 0 else last_left
            part["departure_ns"][row] = max(left, part["time_ns"][row]) + link_ns[row]
        left = np.maximum.accumulate(np.append(last_left, part["departure_ns"][entered]))
        came = np.append(last_came, part["time_ns"][entered])
        last = rows.stop == len(table["time_ns"])
        until = len(behind["time_ns"]) if last else int(np.searchsorted(behind["departure_ns"], left[-1]))
        if until > taken:
            more = rows_of(behind, slice(taken, until))
            place = np.searchsorted(left, more["departure_ns"], side="right") - 1
            more["time_ns"] = np.maximum(np.where(came[place] > 0, came[place], more["departure_ns"] - 1), last_came)
            part = joined(part, more)
            part = rows_of(part, np.argsort(part["time_ns"], kind="stable"))
            taken = until
        last_left, last_came = int(left[-1]), int(part["time_ns"][-1])
        yield part


@dataclass
class _Deepest:
    """The least buffer that holds the deepest queue; counts the bytes of flows."""

    flows: Flows
    buffer_packets: int = 1

    def watch(self, packets: Iterable[Columns]) -> Iterator[Columns]:
        for part in packets:
            depth = part["depth_packets"][~part["dropped"]]
            self.buffer_packets = max(self.buffer_packets, int(depth.max(initial=0)) + 1)
            flow = self.flows.numbers(part)
            np.add.at(self.flows.columns["data"], flow, part["payload_bytes"].astype(np.int64))
            yield part


@dataclass
class _Rate:
    """Measures the link's rate by packets that left right behind another: they came before it had left."""

    bits: float = 0.0
    ns: float = 0.0

    def watch(self, packets: Iterable[Columns]) -> Iterator[Columns]:
        for part in packets:
            rows = np.flatnonzero(~part["dropped"])
            rows = rows[np.argsort(part["departure_ns"][rows], kind="stable")]
            left = part["departure_ns"][rows]
            gap, bits = np.diff(left), wire_bytes(part["frame_bytes"][rows])[1:] * 8
            behind = np.flatnonzero((part["time_ns"][rows][1:] < left[:-1]) & (gap > 0))
            if len(behind):
                slow = gap[behind] / bits[behind]
                usual = np.abs(slow / np.median(slow) - 1) < 0.5  # not those between which one is missing
                self.bits += float(bits[behind][usual].sum())
                self.ns += float(gap[behind][usual].sum())
            yield part

    def bps(self) -> int | None:
        return round(self.bits * 1e9 / self.ns) if self.ns else None


def _traffic(flows: Flows, table: Columns, most: int | None, source: write.Provenance) -> Traffic:
    """The flows that carry data to AFTER, those with the most bytes first."""
    tuples, data = flows.table.tuples(), flows.columns["data"][: len(flows.table)]
    protocol = tuples.words[4] >> np.uint64(32)
    carries = np.flatnonzero((data > 0) & np.isin(protocol, (TCP, UDP)))
    ranked = carries[np.argsort(-data[carries], kind="stable")]
    chosen = ranked[: most or MOST_FLOWS]
    if len(chosen) < len(ranked):
        share = data[chosen].sum() / data[ranked].sum()
        source.remarks.append(f"{len(chosen)} of {len(ranked)} flows, with {share:.1%} of the bytes, are listed")
    found = sorted((tuples[n] for n in chosen.tolist()), key=lambda f: (f.src_port, f.dst_port, f.src, f.dst))
    times = table["time_ns"]
    return Traffic(found, int(times[0]), int(times[len(times) - 1]) + 1)
