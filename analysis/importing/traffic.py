# SPDX-License-Identifier: MIT
"""Infers the experiment's flows and the time of its traffic, which sources do not record. The flows are those with the
most packets; without postcards, those with the most trace records. Connections of SSH, protocols other than TCP and
UDP, and receivers, whose sequence numbers stand still, are left out. The traffic lasts from the first to the last
packet or trace record of these flows. If packet lengths are known, only packets of full length count for these times,
so that connection set-up is excluded.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from analysis.importing.fields import Cards, Events
from analysis.join.join import TCP_SYN
from analysis.read.flows import PROTOCOL_NUMBERS, FiveTuple, Flows, FlowTable, flow_words
from lib.errors import InputError
from lib.terminal import counted
from wire import wire

SSH = 22  # the artifact's hosts were controlled over the measured link
CARRIERS = (PROTOCOL_NUMBERS["tcp"], PROTOCOL_NUMBERS["udp"])
EVENT = wire.TCP_RECORD.const
SYN_AND_FIN = 2  # sequence numbers that a flow without data takes
INITIAL_WINDOW = 10  # packets (RFC 6928), Linux's default
NO_THRESHOLD = 10**9  # packets; the slow start threshold of a new connection is 2^31 - 1
ENDS = ("mono_ns", "src_addr_hi", "src_addr_lo", "dst_addr_hi", "dst_addr_lo", "src_port", "dst_port")
CARD_COLUMNS = ("ip_protocol", "tcp_seq", "tcp_flags", "card_seq", "sojourn_ns", "packet_bytes")
TRACE_COLUMNS = ("event", "snd_nxt", "cwnd_packets", "ssthresh_packets")
MOST_FLOWS = 10_000  # as in the lab; the analysis takes about 10 kB for each
MOST_OTHERS = 0.01  # share of the packets that may be of flows beyond the number asked for


@dataclass
class Traffic:
    """The inferred traffic of an experiment."""

    flows: list[FiveTuple]  # sorted by ports
    start_ns: int  # mono_ns of the first and of the last packet or record
    end_ns: int
    notes: list[str] = field(default_factory=list)  # doubts about this traffic
    remarks: list[str] = field(default_factory=list)  # flows that are left out


def find(cards: Cards | None, events: Events | None, most: int | None) -> Traffic:
    """The traffic, of at most `most` flows. `cards` are those of one queue. Raises InputError for too many flows."""
    table = FlowTable()
    parts = [_Seen.read(part, table) for part in (cards, events) if part and part.rows]
    if not parts:
        return Traffic([], 0, 1)
    flows = table.tuples()
    for part in parts:
        part.grow(len(flows) + 1)
    counts = parts[0].by_flow["rows"][: len(flows)]
    present = np.flatnonzero((counts > 0) & _may_carry(flows))
    sends = parts[0].sends(present)
    notes, remarks = [], []
    if not sends.any() and len(present):
        notes.append("no flow of the source sends data (sequence numbers stand still): it is a record of receivers")
    elif not sends.all():
        remarks.append(f"{counted(int((~sends).sum()), 'flow')} that send no data are left out")
        present = present[sends]
    ranked = present[np.argsort(-counts[present], kind="stable")]
    chosen = ranked[:most]
    if len(chosen) > MOST_FLOWS:
        raise InputError(
            f"the source has {len(chosen)} flows; allowed: at most {MOST_FLOWS}, or FLOWS=n for the n flows with the "
            "most packets"
        )
    others = counts[ranked[len(chosen) :]].sum() / max(counts.sum(), 1)
    if others > MOST_OTHERS:
        notes.append(
            f"{others:.1%} of the packets or records are of flows beyond the {counted(len(chosen), 'flow')} asked for: "
            "goodput and windows are without them"
        )
    begun = len(chosen) - int(np.logical_or.reduce([part.begins(chosen) for part in parts]).sum())
    if begun:
        notes.append(
            f"{begun} of {counted(len(chosen), 'flow')} may have begun before the source: WARMUP counts from the first "
            "packet or record in it"
        )
    spans = [span for part in parts if (span := part.span(chosen))]
    start = min(first for first, _ in spans)  # a source of few packets may have no later arrival
    return Traffic(
        sorted((flows[n] for n in chosen.tolist()), key=lambda f: (f.src_port, f.dst_port, f.src, f.dst)),
        start, max(start, *(last for _, last in spans)), notes, remarks,
    )  # fmt: skip


def _may_carry(flows: Flows) -> np.ndarray:
    """Mask of the flows of TCP and UDP, without SSH."""
    rest = flows.words[-1]
    ports = rest >> np.uint64(16) & np.uint64(0xFFFF), rest & np.uint64(0xFFFF)
    return np.isin(rest >> np.uint64(32), CARRIERS) & (ports[0] != SSH) & (ports[1] != SSH)


NEVER = np.iinfo(np.int64).max
UNSEEN = {"rows": 0, "tcp": 0, "moves": 0, "seq": 0, "first_ns": NEVER, "begins": 0, "longest": -1, "start_ns": NEVER,
          "end_ns": -NEVER}  # fmt: skip


class _Seen:
    """What one part of the source, postcards or trace, shows of each flow, by its number."""

    def __init__(self) -> None:
        self.by_flow = {name: np.zeros(0, dtype=np.int64) for name in UNSEEN}
        self._first = NEVER, False  # when the part's first row came, and whether it is the switch's first packet
        self._span = NEVER, -NEVER  # of all rows

    @classmethod
    def read(cls, part: Cards | Events, table: FlowTable) -> _Seen:
        """From all rows; new flows are added to the table."""
        seen, is_trace = cls(), isinstance(part, Events)
        names = TRACE_COLUMNS if is_trace else CARD_COLUMNS
        has_numbers = isinstance(part, Cards) and "card_seq" not in part.unknown
        for rows in part.parts(*ENDS, *names):
            protocol = np.full(len(rows["mono_ns"]), PROTOCOL_NUMBERS["tcp"]) if is_trace else rows["ip_protocol"]
            flow = table.numbers(flow_words(rows, protocol)).astype(np.int64)
            seen.grow(len(table) + 1)  # the last: flows beyond MAX_FLOWS
            if is_trace:
                numbered = starts = rows["event"] == EVENT["TCP_EVENT_PROBE"]
                seq = rows["snd_nxt"]
                starts = starts & (rows["cwnd_packets"] <= INITIAL_WINDOW) & (rows["ssthresh_packets"] >= NO_THRESHOLD)
            else:
                numbered, seq = protocol == PROTOCOL_NUMBERS["tcp"], rows["tcp_seq"]
                starts = rows["tcp_flags"].astype(np.int64) & TCP_SYN != 0
            ns = rows["mono_ns"]
            came = ns if is_trace else ns - rows["sojourn_ns"].astype(np.int64)
            seen._numbers(flow[numbered], seq[numbered].astype(np.uint32))
            order = np.argsort(ns, kind="stable")
            if ns[order[0]] < seen._first[0]:
                seen._first = int(ns[order[0]]), has_numbers and not rows["card_seq"][order[0]]
            seen._starts(flow[order], ns[order], starts[order])
            seen._times(flow, ns, came, np.zeros(len(ns), dtype=np.int64) if is_trace else rows["packet_bytes"])
        return seen

    def grow(self, flows: int) -> None:
        for name, values in self.by_flow.items():
            if (more := flows - len(values)) > 0:
                self.by_flow[name] = np.append(values, np.full(max(more, len(values)), UNSEEN[name]))

    def _numbers(self, flow: np.ndarray, seq: np.ndarray) -> None:
        """Sequence numbers of packets of TCP: they move if they leave the flow's first by more than a SYN and a FIN."""
        new = self.by_flow["tcp"][flow] == 0
        self.by_flow["seq"][flow[new][::-1]] = seq[new][::-1]  # NumPy keeps the last of several assignments
        self.by_flow["tcp"][flow] = 1
        steps = (seq - self.by_flow["seq"][flow].astype(np.uint32)).view(np.int32).astype(np.int64)
        self.by_flow["moves"][flow[np.abs(steps) > SYN_AND_FIN]] = 1

    def _starts(self, flow: np.ndarray, ns: np.ndarray, starts: np.ndarray) -> None:
        """Rows in the order of time: whether a flow's first is the beginning of a connection."""
        known, first = np.unique(flow, return_index=True)
        earlier = ns[first] < self.by_flow["first_ns"][known]
        known, first = known[earlier], first[earlier]
        self.by_flow["first_ns"][known], self.by_flow["begins"][known] = ns[first], starts[first]

    def _times(self, flow: np.ndarray, ns: np.ndarray, came: np.ndarray, size: np.ndarray) -> None:
        """First time and last arrival of each flow's longest packets, and of all packets: packets that came later may
        still be in the queue, and their postcards are not in the source.
        """
        size = size.astype(np.int64)
        longest, start, end = (self.by_flow[name] for name in ("longest", "start_ns", "end_ns"))
        longer = flow[size > longest[flow]]
        start[longer], end[longer] = NEVER, -NEVER
        np.maximum.at(longest, flow, size)
        np.add.at(self.by_flow["rows"], flow, 1)
        full = size == longest[flow]
        np.minimum.at(start, flow[full], ns[full])
        np.maximum.at(end, flow[full], came[full])
        self._span = min(self._span[0], int(ns.min())), max(self._span[1], int(came.max()))

    def sends(self, flows: np.ndarray) -> np.ndarray:
        """Mask of the flows that send data: those beside TCP, and those whose sequence numbers move."""
        return (self.by_flow["tcp"][flows] == 0) | (self.by_flow["moves"][flows] > 0)

    def begins(self, flows: np.ndarray) -> np.ndarray:
        """Mask of the flows whose beginning the part has: their first packet is a SYN or comes after the switch's first
        packet; the window of their first record is that of a new connection.
        """
        return (self.by_flow["rows"][flows] > 0) & (self._first[1] | (self.by_flow["begins"][flows] > 0))

    def span(self, flows: np.ndarray) -> tuple[int, int] | None:
        """First time and last arrival of the longest packets of these flows, None without any; of all packets if no
        flow is given.
        """
        if not len(flows):
            return self._span
        flows = flows[self.by_flow["rows"][flows] > 0]
        flows = flows[self.by_flow["longest"][flows] == self.by_flow["longest"][flows].max(initial=0)]
        return (
            (int(self.by_flow["start_ns"][flows].min()), int(self.by_flow["end_ns"][flows].max()))
            if len(flows)
            else None
        )
