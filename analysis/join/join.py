# SPDX-License-Identifier: MIT
"""Joins each TCP packet of the queue with the sender's trace:

* by time: the flow's latest trace record at or before the packet's arrival, of the records that know the window;
* by sequence number: the record of the ACK that first covered the packet's last byte;
* retransmissions: the trace record of the retransmit that sent this copy.

Linux fires tcp_probe before it processes the segment (net/ipv4/tcp_input.c, tcp_rcv_established), so a record has
snd_una from before its own ACK. The ACK that covered a byte is therefore the record *before* the first record whose
snd_una is past the byte.

The join goes through packets and records together in slabs of time. Between slabs it keeps, for each flow, its last
numbers and its last records, the segments that no ACK has covered yet, and the holes in its bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.arithmetic.by_flow import Axis, Groups
from analysis.arithmetic.sequence import Coverage, HeaderBytes, Unwrapped
from analysis.arithmetic.unwrap import near32
from analysis.join.in_flight import InFlight, in_flight, knows_cwnd, window_known
from analysis.join.retransmits import Retransmits, match, pieces
from analysis.read.columns import ColumnFile, Columns, rows_of, slabs, until
from analysis.read.link_loss import NAME as LINK_LOST
from analysis.read.link_loss import delivered
from analysis.read.load import Run
from analysis.read.raw import known
from wire import wire

CARD = wire.POSTCARD.const
EVENT = wire.TCP_RECORD.const
TCP_FIN, TCP_SYN = 0x01, 0x02
NONE = -1  # in place of a row number
ROW = np.int32  # of row numbers: 2^31 trace records would be 335 GB
SLAB_PACKETS = 1 << 18  # a slab takes about 50 MB


@dataclass
class Segments:
    """TCP packets of the queue in arrival order, one row each. `*_row` are rows of Run.tcp, or NONE."""

    rows: np.ndarray  # rows of the queue's postcards
    seq: np.ndarray  # int64, unwrapped; starts at the flow's first 32-bit number
    payload_bytes: np.ndarray  # uint16
    new_bytes: np.ndarray  # uint16: payload that no earlier packet carried out of the queue
    retransmission: np.ndarray  # bool: after later bytes, and its first byte had arrived at the queue before
    reordered: np.ndarray  # bool: after later bytes, but its first byte arrived for the first time
    trace_row: np.ndarray  # latest record of the flow that knows the window, at or before the arrival
    ack_row: np.ndarray  # ACK that first covered the packet; only for first transmissions of data that left the queue
    retransmit_row: np.ndarray  # trace record of the retransmit; only for retransmissions
    header_bytes: np.ndarray  # by flow number: Ethernet, IP and TCP headers of a data packet; 0 without packets
    skipped: int = 0  # arrivals that left a hole in their flow's sequence numbers
    retransmits_unmatched: int = 0  # traced retransmitted segments without a packet in the queue
    retransmits_untold: int = 0  # retransmit records without sequence numbers, which cannot match a packet


CARD_COLUMNS = ("flags", "flow", "tcp_seq", "tcp_flags", "packet_bytes", "enqueue_mono_ns", LINK_LOST)
COLUMNS = {
    "rows": np.int64, "seq": np.int64, "payload_bytes": np.uint16, "new_bytes": np.uint16, "retransmission": np.bool_,
    "reordered": np.bool_, "trace_row": ROW, "ack_row": ROW, "retransmit_row": ROW,
}  # fmt: skip


@dataclass
class _Packets:
    """TCP packets of a slab, sorted by flow, then by arrival."""

    groups: Groups
    came: np.ndarray
    seq: np.ndarray  # unwrapped
    end: np.ndarray  # of each packet's bytes
    once: np.ndarray  # mask of first transmissions of data that left the queue
    again: np.ndarray  # mask of retransmissions


@dataclass
class _Open:
    """Segments that no ACK has covered yet, of all flows."""

    flow: np.ndarray
    end: np.ndarray
    came: np.ndarray
    at: np.ndarray  # position in Segments

    @classmethod
    def none(cls) -> _Open:
        return cls(*np.empty((4, 0), dtype=np.int64))

    def and_of(self, packets: _Packets, first: int) -> _Open:
        """These, and the packets of a slab that wait for their first ACK; Segments has the slab from `first` on."""
        once, groups = packets.once, packets.groups
        new = groups.spread(groups.flow)[once], packets.end[once], packets.came[once], first + groups.rows[once]
        return _Open(*(np.concatenate(pair) for pair in zip(vars(self).values(), new, strict=True)))

    def only(self, mask: np.ndarray) -> _Open:
        return _Open(*(values[mask] for values in vars(self).values()))


def join(run: Run, queue: Columns) -> tuple[Segments, InFlight]:
    """Joins the postcards of one queue (columns sorted by enqueue_mono_ns) with the trace of `run`."""
    flows = len(run.flows) + 1
    headers, first, last_ack_row = HeaderBytes(flows), _First(flows), np.full(flows, NONE)
    for part in slabs(len(queue["flags"])):
        cards = _tcp_cards(queue, part, "flow", "tcp_seq", "tcp_flags", "packet_bytes", "enqueue_mono_ns")
        groups = Groups.of(cards["flow"])
        cards = {name: column[groups.rows] for name, column in cards.items()}
        control = (cards["tcp_flags"] & (TCP_SYN | TCP_FIN)) != 0
        first.add(groups, headers.seen, cards["tcp_seq"], cards["enqueue_mono_ns"])
        headers.add(groups, cards["tcp_seq"], cards["packet_bytes"].astype(np.int64), control)
    for part in slabs(len(run.tcp["flow"])):
        acks = part.start + np.flatnonzero(_acks(rows_of(run.tcp, part)))
        last_ack_row[run.tcp["flow"][acks]] = acks  # NumPy keeps the last of several assignments to one flow
    header = headers.result(np.append(run.flows.is_ipv4, True))
    file = ColumnFile(run.directory, {name: np.dtype(kind) for name, kind in COLUMNS.items()})
    joined = _Join(file, header, first, headers.seen, last_ack_row, knows_cwnd(run))
    for packets, records in time_slabs(queue["enqueue_mono_ns"], run.tcp["mono_ns"]):
        joined.add(_tcp_cards(queue, packets, *CARD_COLUMNS), packets.start, rows_of(run.tcp, records), records.start)
    columns: dict[str, Any] = dict(file.columns())
    result = Segments(**columns, header_bytes=header.astype(np.uint8), skipped=joined.skipped)
    result.retransmits_untold = joined.retransmits_untold
    result.retransmits_unmatched = match(joined.copies, joined.records, run.experiment.rtt_ns, result.retransmit_row)
    return result, in_flight(run, joined.largest_payload)


def _tcp_cards(queue: Columns, part: slice, *names: str) -> Columns:
    """The TCP packets among some rows of the queue; `row` counts from the first of these rows."""
    rows = np.flatnonzero(queue["flags"][part] & CARD["POSTCARD_HAS_TCP"])
    cards = rows_of({name: queue[name] for name in names if name in queue}, part)
    if len(rows) < part.stop - part.start:
        cards = {name: column[rows] for name, column in cards.items()}
    return {"row": rows} | cards


def _acks(tcp: Columns) -> np.ndarray:
    """Mask of the records of ACKs that know snd_una."""
    return known(tcp, "snd_una") & (tcp["event"] == EVENT["TCP_EVENT_PROBE"])


def time_slabs(came: np.ndarray, traced: np.ndarray) -> Iterator[tuple[slice, slice]]:
    """(packets, records) of each slab, as slices of their times: about SLAB_PACKETS of either at most, although one of
    them may pause or be missing. No two slabs have times of the same ns.
    """
    packets = records = 0
    while packets < len(came) or records < len(traced):
        more = [(times, at + SLAB_PACKETS) for times, at in ((came, packets), (traced, records))]
        full_ns = [int(times[most - 1]) for times, most in more if most < len(times)]
        end, last = len(came), len(traced)
        if full_ns:
            end, last = until(came, packets, min(full_ns)), until(traced, records, min(full_ns))
        yield slice(packets, end), slice(records, last)
        packets, records = end, last


class _First:
    """The first packet of each flow: its sequence number and its arrival."""

    def __init__(self, flows: int) -> None:
        self.seq, self.came = np.zeros(flows, dtype=np.int64), np.zeros(flows, dtype=np.int64)

    def add(self, groups: Groups, seen: np.ndarray, seq: np.ndarray, came: np.ndarray) -> None:
        """The packets of a slab; `seen` are the flows that had packets in earlier slabs."""
        new = ~seen[groups.flow]
        flow, starts = groups.flow[new], groups.starts[new]
        self.seq[flow], self.came[flow] = seq[starts], came[starts]


class _Join:
    """The join's state between two slabs: what it knows of each flow, by flow number, and the open segments."""

    def __init__(
        self, file: ColumnFile, header: np.ndarray, first: _First, has_packets: np.ndarray, last_ack_row: np.ndarray,
        with_cwnd: bool,
    ) -> None:  # fmt: skip
        flows = len(header)
        self._file, self._header, self._first = file, header, first
        self._has_packets, self._last_ack_row, self._with_cwnd = has_packets, last_ack_row, with_cwnd
        self._numbers, self._arrived, self._left = Unwrapped(flows), Coverage(flows), Coverage(flows)
        self._una, self._origin = Unwrapped(flows), np.zeros(flows, dtype=np.int64)
        self._window_row, self._ack_row = np.full(flows, NONE), np.full(flows, NONE)  # of the latest records
        self._ack_ns = np.zeros(flows, dtype=np.int64)
        self._reached = np.full(flows, np.iinfo(np.int64).min)  # the highest snd_una of ACKs
        self._open = _Open.none()
        self.largest_payload = np.zeros(flows, dtype=np.int64)
        self.copies, self.records = Retransmits(), Retransmits()
        self.skipped = self.retransmits_untold = 0

    def add(self, cards: Columns, first_row: int, tcp: Columns, first_record: int) -> None:
        """Joins a slab: its TCP packets, the row of the queue from which their `row` counts, its trace records, and the
        row of Run.tcp at which they begin.
        """
        before = self._numbers.last.copy()  # sequence numbers of the flows' last packets before this slab
        packets, columns = self._packets(cards)
        traced = Groups.of(tcp["flow"])
        self._latest(packets, traced.only(window_known(tcp, self._with_cwnd)[traced.rows]), tcp, first_record, columns)
        at = self._file.rows
        none = np.full(len(cards["row"]), NONE, dtype=ROW)
        self._file.append(columns | {"rows": cards["row"] + first_row, "ack_row": none, "retransmit_row": none})

        retransmits = tcp["event"] == EVENT["TCP_EVENT_RETRANSMIT"]
        sent = retransmits & known(tcp, "snd_una", "event_seq", "data_bytes", "mss_bytes")
        has_packets = self._has_packets[tcp["flow"]]
        self.retransmits_untold += int(np.count_nonzero(has_packets & retransmits & ~sent))
        with_una = traced.only((has_packets & known(tcp, "snd_una"))[traced.rows])
        una = self._snd_una(packets, with_una, tcp, before)
        self._retransmits(tcp, with_una.rows, una, sent[with_una.rows], first_record)
        flow, again = packets.groups.spread(packets.groups.flow), packets.again
        self.copies.add(flow[again], packets.seq[again], packets.came[again], at + packets.groups.rows[again])
        is_ack = ~retransmits[with_una.rows]
        waiting = self._open.and_of(packets, at)
        waiting = self._covered(waiting, with_una.only(is_ack), una[is_ack], tcp["mono_ns"], first_record)
        self._open = waiting.only(self._last_ack_row[waiting.flow] >= first_record + len(tcp["flow"]))

    def _packets(self, cards: Columns) -> tuple[_Packets, Columns]:
        """The packets of a slab by flow, and their columns in the order of arrival."""
        groups = Groups.of(cards["flow"])
        rows, flow = groups.rows, groups.spread(groups.flow)
        seq = self._numbers.add(groups, cards["tcp_seq"][rows])
        control = cards["tcp_flags"][rows] & (TCP_SYN | TCP_FIN)
        payload = np.maximum(cards["packet_bytes"][rows].astype(np.int64) - self._header[flow], 0)
        payload[(control & TCP_SYN) != 0] = 0  # a SYN has no data, but longer options than in `header`
        end = seq + payload + (control != 0)
        arrived = self._arrived.add(groups, seq, end)
        again = arrived.late & ~arrived.fills
        left = delivered(cards, rows) & (payload > 0)
        new_bytes = np.zeros(len(rows), dtype=np.int64)
        new_bytes[left] = self._left.add(groups.only(left), seq[left], (seq + payload)[left]).new_bytes
        self.skipped += arrived.skipped
        if len(rows):
            largest = np.maximum.reduceat(payload, groups.starts)
            self.largest_payload[groups.flow] = np.maximum(self.largest_payload[groups.flow], largest)
        columns = {
            "seq": seq, "payload_bytes": payload, "new_bytes": new_bytes, "retransmission": again,
            "reordered": arrived.fills,
        }  # fmt: skip
        packets = _Packets(groups, cards["enqueue_mono_ns"][rows], seq, end, left & ~again, again)
        return packets, {name: _in_order(groups, values) for name, values in columns.items()}

    def _latest(self, packets: _Packets, windows: Groups, tcp: Columns, first_record: int, columns: Columns) -> None:
        """Adds `trace_row`: for each packet, the flow's last record at or before its arrival of those that know the
        window.
        """
        flow = packets.groups.spread(packets.groups.flow)
        row, of_record, count = self._window_row[flow], windows.spread(windows.flow), len(tcp["flow"])
        if len(of_record):
            # The number of records at or before the arrival has fewer bits than the arrival, so a key cannot overflow.
            earlier = np.searchsorted(tcp["mono_ns"], packets.came, side="right")
            keys = of_record.astype(np.int64) * (count + 1) + windows.rows
            before = np.searchsorted(keys, flow.astype(np.int64) * (count + 1) + earlier) - 1
            in_slab = (before >= 0) & (of_record[before] == flow)
            row = np.where(in_slab, windows.rows[before] + first_record, row)
            self._window_row[windows.flow] = windows.rows[windows.ends - 1] + first_record
        columns["trace_row"] = _in_order(packets.groups, row)

    def _snd_una(self, packets: _Packets, traced: Groups, tcp: Columns, before: np.ndarray) -> np.ndarray:
        """snd_una of trace records, unwrapped to the same origin as the sequence numbers of their flows' packets. The
        first snd_una of a flow becomes the value nearest to the last sequence number that arrived before the record;
        `before` has these of earlier slabs.
        """
        new = ~self._una.seen[traced.flow]
        una = self._una.add(traced, tcp["snd_una"][traced.rows])
        flow, starts = traced.flow[new], traced.starts[new]
        if len(flow):
            begins = tcp["mono_ns"][traced.rows[starts]]
            reference = np.where(self._first.came[flow] > begins, self._first.seq[flow], before[flow])
            groups = packets.groups
            if len(groups.flow):
                here = np.minimum(np.searchsorted(groups.flow, flow), len(groups.flow) - 1)
                last_ns = np.full(len(groups.flow), np.iinfo(np.int64).min)
                last_ns[here] = np.where(groups.flow[here] == flow, begins, last_ns[here])
                arrived = np.add.reduceat(packets.came <= groups.spread(last_ns), groups.starts, dtype=np.int64)
                last = packets.seq[groups.starts + np.maximum(arrived - 1, 0)]
                is_here = (groups.flow[here] == flow) & (arrived[here] > 0)
                reference = np.where(is_here, last[here], reference)
            self._origin[flow] = near32(una[starts], reference) - una[starts]
        return una + traced.spread(self._origin[traced.flow])

    def _retransmits(
        self, tcp: Columns, rows: np.ndarray, una: np.ndarray, sent: np.ndarray, first_record: int
    ) -> None:
        """The segments of the retransmit records, `sent`, among some rows of the slab's trace."""
        rows = rows[sent]
        begin = una[sent] + (tcp["event_seq"][rows] - tcp["snd_una"][rows]).view(np.int32)
        seq, ns, row = pieces(tcp, rows, begin)
        self.records.add(tcp["flow"][row], seq, ns, row + first_record)

    def _covered(self, waiting: _Open, acks: Groups, una: np.ndarray, times: np.ndarray, first_record: int) -> _Open:
        """Fills in the record of the ACK that first covered each segment's last byte; returns the rest of `waiting`."""
        if not len(una):
            return waiting
        starts, flow = acks.starts, acks.flow
        least, most = np.minimum.reduceat(una, starts), np.maximum.reduceat(una, starts)
        earlier = np.maximum(self._reached[flow], least - 1)
        axis = Axis.of(np.minimum(least, earlier), np.maximum(most, earlier))
        reached = axis.at(acks.number, una)
        reached[starts] = np.maximum(reached[starts], axis.at(np.arange(len(starts)), earlier))
        np.maximum.accumulate(reached, out=reached)
        group = np.minimum(np.searchsorted(flow, waiting.flow), len(flow) - 1)
        chosen = np.flatnonzero(flow[group] == waiting.flow)
        group = group[chosen]
        past = np.searchsorted(reached, axis.clipped(group, waiting.end[chosen]), side="left")
        is_past = past < acks.ends[group]
        chosen, past, group = chosen[is_past], past[is_past], group[is_past]
        # The ACK is the record before, which for a flow's first record of the slab is of an earlier slab.
        record = acks.rows[past - 1]
        in_slab = past > starts[group]
        row = np.where(in_slab, record + first_record, self._ack_row[flow[group]])
        row[np.where(in_slab, times[record], self._ack_ns[flow[group]]) < waiting.came[chosen]] = NONE  # another copy's
        self._file.columns()["ack_row"][waiting.at[chosen]] = row
        last = acks.rows[acks.ends - 1]
        self._reached[flow], self._ack_row[flow] = reached[acks.ends - 1] - axis.offset, last + first_record
        self._ack_ns[flow] = times[last]
        is_open = np.ones(len(waiting.at), dtype=bool)
        is_open[chosen] = False
        return waiting.only(is_open)


def _in_order(groups: Groups, values: np.ndarray) -> np.ndarray:
    """Values of `groups.rows` in the order of arrival."""
    result = np.empty_like(values)
    result[groups.rows] = values
    return result
