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

from analysis.importing.fields import Addresses, Cards, Events
from analysis.join.join import TCP_SYN
from analysis.read.columns import slabs
from analysis.read.flows import PROTOCOL_NUMBERS, WORDS, FiveTuple, Flows, FlowTable
from lib.errors import InputError
from lib.terminal import counted
from wire import wire

SSH = 22  # the artifact's hosts were controlled over the measured link
CARRIERS = (PROTOCOL_NUMBERS["tcp"], PROTOCOL_NUMBERS["udp"])
CARD, EVENT = wire.POSTCARD.const, wire.TCP_RECORD.const
SYN_AND_FIN = 2  # sequence numbers that a flow without data takes
INITIAL_WINDOW = 10  # packets (RFC 6928), Linux's default
NO_THRESHOLD = 10**9  # packets; the slow start threshold of a new connection is 2^31 - 1
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
    parts = [(part, _numbers(part, table)) for part in (cards, events) if part and len(part.columns["mono_ns"])]
    if not parts:
        return Traffic([], 0, 1)
    flows = table.tuples()
    parts = [(part, np.minimum(numbers, len(flows))) for part, numbers in parts]  # the last: flows beyond MAX_FLOWS
    counts = np.bincount(parts[0][1], minlength=len(flows))[: len(flows)]
    present = np.flatnonzero((counts > 0) & _may_carry(flows))
    sends = _sends(*parts[0], len(flows))[present]
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
    rows = [_rows(part, numbers, chosen) for part, numbers in parts]
    first = [part.columns["mono_ns"][of_part] for (part, _), of_part in zip(parts, rows, strict=True)]
    last = [_arrivals(part)[of_part] for (part, _), of_part in zip(parts, rows, strict=True)]
    begun = len(chosen) - int(np.logical_or.reduce([_begins(part, numbers, chosen) for part, numbers in parts]).sum())
    if begun:
        notes.append(
            f"{begun} of {counted(len(chosen), 'flow')} may have begun before the source: WARMUP counts from the first "
            "packet or record in it"
        )
    start = min(int(t.min()) for t in first if len(t))  # a source of few packets may have no later arrival
    return Traffic(
        sorted((flows[n] for n in chosen.tolist()), key=lambda f: (f.src_port, f.dst_port, f.src, f.dst)),
        start, max(start, *(int(t.max()) for t in last if len(t))), notes, remarks,
    )  # fmt: skip


def _may_carry(flows: Flows) -> np.ndarray:
    """Mask of the flows of TCP and UDP, without SSH."""
    rest = flows.words[-1]
    ports = rest >> np.uint64(16) & np.uint64(0xFFFF), rest & np.uint64(0xFFFF)
    return np.isin(rest >> np.uint64(32), CARRIERS) & (ports[0] != SSH) & (ports[1] != SSH)


def _sends(part: Cards | Events, numbers: np.ndarray, flows: int) -> np.ndarray:
    """Mask of the flows that send data, by flow number: those beside TCP, and those whose sequence numbers move."""
    if isinstance(part, Cards):
        rows, seq = _protocol(part) == PROTOCOL_NUMBERS["tcp"], part.columns["tcp_seq"]
    else:
        rows = part.columns["event"] == EVENT["TCP_EVENT_PROBE"]
        seq = part.columns.get("snd_nxt", np.zeros(len(rows), dtype=np.int64))
    result = np.ones(flows + 1, dtype=bool)
    result[numbers[rows]] = False
    first = np.zeros(flows + 1, dtype=np.uint32)
    seq = seq.astype(np.uint32)
    first[numbers[rows][::-1]] = seq[rows][::-1]  # NumPy keeps the last of several assignments
    moves = np.abs((seq - first[numbers]).view(np.int32).astype(np.int64)) > SYN_AND_FIN
    result[numbers[rows & moves]] = True
    return result


def _begins(part: Cards | Events, numbers: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Mask of the chosen flows whose beginning the source has: their first packet is a SYN or the switch's first
    packet; the window of their first record is that of a new connection.
    """
    columns = part.columns
    order = np.argsort(columns["mono_ns"], kind="stable")
    first = np.full(int(numbers.max()) + 1, -1)
    first[numbers[order[::-1]]] = order[::-1]
    rows = np.where(chosen < len(first), first[np.minimum(chosen, len(first) - 1)], -1)
    if isinstance(part, Events):
        starts = columns["event"] == EVENT["TCP_EVENT_PROBE"]
        if starts.any():
            starts &= columns["cwnd_packets"] <= INITIAL_WINDOW
            starts &= columns["ssthresh_packets"] >= NO_THRESHOLD
    elif "tcp_flags" in columns:
        starts = (columns["tcp_flags"].astype(np.int64) & TCP_SYN) != 0
        if not columns["card_seq"][order[0]]:  # the switch numbers its packets from 0
            starts = np.ones(len(order), dtype=bool)
    else:
        starts = np.zeros(len(order), dtype=bool)
    return (rows >= 0) & starts[np.maximum(rows, 0)]


def _arrivals(part: Cards | Events) -> np.ndarray:
    """Times of arrival at the queue if postcards have sojourns: packets that came later may still be in the queue, and
    their postcards are not in the source.
    """
    times, sojourn = part.columns["mono_ns"], part.columns.get("sojourn_ns")
    return times if sojourn is None else times - sojourn.astype(np.int64)


def _protocol(part: Cards | Events) -> np.ndarray:
    """The IP protocol of each row; trace records are TCP."""
    return part.columns.get("ip_protocol", np.full(len(part.addresses.src), PROTOCOL_NUMBERS["tcp"]))


def _rows(part: Cards | Events, numbers: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Mask of the traffic's rows; all rows if no flow was chosen."""
    rows = np.isin(numbers, chosen) if len(chosen) else np.ones(len(numbers), dtype=bool)
    packet_bytes = part.columns.get("packet_bytes")
    if packet_bytes is None or not len(chosen) or not rows.any():
        return rows
    return rows & (packet_bytes == packet_bytes[rows].max())


def _numbers(part: Cards | Events, table: FlowTable) -> np.ndarray:
    """The flow number of each row; new flows are added to the table."""
    protocol = _protocol(part)
    return np.concatenate(
        [table.numbers(_words(part.addresses.only(rows), protocol[rows])) for rows in slabs(len(protocol))]
    )


def _words(ends: Addresses, protocol: np.ndarray) -> np.ndarray:
    """The input of FlowTable.numbers."""
    words = np.zeros((WORDS, len(ends.src)), dtype=np.uint64)
    words[0], words[1] = ends.src.T
    words[2], words[3] = ends.dst.T
    ports = (ends.src_port.astype(np.uint64), ends.dst_port.astype(np.uint64))
    words[4] = protocol.astype(np.uint64) << np.uint64(32) | ports[0] << np.uint64(16) | ports[1]
    return words
