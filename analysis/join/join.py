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

import numpy as np

from analysis.arithmetic.by_flow import Axis, Groups
from analysis.arithmetic.sequence import Coverage, HeaderBytes, Unwrapped
from analysis.arithmetic.unwrap import near32
from analysis.join.retransmits import Retransmits, match, pieces
from analysis.join.trace_by_flow import TraceByFlow, estimate_in_flight, trace_by_flow, window_known
from analysis.read.link_loss import delivered
from analysis.read.load import Run
from analysis.read.raw import Columns, known
from wire import wire

CARD = wire.POSTCARD.const
EVENT = wire.TCP_RECORD.const
TCP_FIN, TCP_SYN = 0x01, 0x02
NONE = -1  # in place of a row number
ROW = np.int32  # type of row numbers: more than 2^31 rows would not fit in memory anyway
SLAB_PACKETS = 1 << 19  # a slab takes about 100 MB


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

    @classmethod
    def empty(cls, rows: np.ndarray, flows: int) -> Segments:
        def column(dtype: type, value: int = 0) -> np.ndarray:
            return np.full(len(rows), value, dtype=dtype)

        return cls(
            rows,
            seq=column(np.int64),
            payload_bytes=column(np.uint16),
            new_bytes=column(np.uint16),
            retransmission=column(bool),
            reordered=column(bool),
            trace_row=column(ROW, NONE),
            ack_row=column(ROW, NONE),
            retransmit_row=column(ROW, NONE),
            header_bytes=np.zeros(flows + 1, dtype=np.uint8),
        )


@dataclass
class _Packets:
    """TCP packets of a slab, sorted by flow, then by arrival."""

    groups: Groups
    at: np.ndarray  # position in Segments
    came: np.ndarray
    seq: np.ndarray  # unwrapped
    end: np.ndarray  # of each packet's bytes
    once: np.ndarray  # mask of first transmissions of data that left the queue


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

    def and_of(self, packets: _Packets) -> _Open:
        """These, and the packets of a slab that wait for their first ACK."""
        once = packets.once
        new = packets.groups.spread(packets.groups.flow)[once], packets.end[once], packets.came[once], packets.at[once]
        return _Open(*(np.concatenate(pair) for pair in zip(vars(self).values(), new, strict=True)))

    def only(self, mask: np.ndarray) -> _Open:
        return _Open(*(values[mask] for values in vars(self).values()))


def join(run: Run, queue: Columns) -> tuple[Segments, TraceByFlow]:
    """Joins the postcards of one queue (columns sorted by enqueue_mono_ns) with the trace of `run`."""
    tcp, flows = run.tcp, len(run.flows)
    trace = trace_by_flow(run)
    rows = np.flatnonzero(queue["flags"] & CARD["POSTCARD_HAS_TCP"])
    result = Segments.empty(rows, flows)
    slabs = list(_slabs(queue["enqueue_mono_ns"][rows], tcp["mono_ns"]))
    headers, first = HeaderBytes(flows + 1), _First(flows + 1)
    for packets, _ in slabs:
        of_slab = rows[packets]
        groups = Groups.of(queue["flow"][of_slab])
        sorted_rows = of_slab[groups.rows]
        control = (queue["tcp_flags"][sorted_rows] & (TCP_SYN | TCP_FIN)) != 0
        first.add(groups, headers.seen, queue["tcp_seq"][sorted_rows], queue["enqueue_mono_ns"][sorted_rows])
        headers.add(groups, queue["tcp_seq"][sorted_rows], queue["packet_bytes"][sorted_rows].astype(np.int64), control)
    header = headers.result(np.append(run.flows.is_ipv4, True))
    result.header_bytes[:] = header
    joined = _Join(run, queue, result, header, first, headers.seen)
    for packets, records in slabs:
        joined.add(packets, records)
    result.retransmits_unmatched = match(joined.copies, joined.records, run.experiment.rtt_ns, result.retransmit_row)
    estimate_in_flight(run, trace, joined.largest_payload)
    return result, trace


def _slabs(came: np.ndarray, traced: np.ndarray) -> Iterator[tuple[slice, slice]]:
    """(packets, records) of each slab, as slices of their arrival times and of the records' times. A slab has the
    records up to its last packet, and no two slabs have packets of the same ns. The last slab has all later records.
    """
    if (traced[1:] < traced[:-1]).any() or (came[1:] < came[:-1]).any():
        raise AssertionError("rows to join by time are not in time order")
    packets = records = 0
    while packets < len(came) or records < len(traced):
        last = min(packets + SLAB_PACKETS, len(came)) - 1
        end = int(np.searchsorted(came, came[last], side="right")) if len(came) else 0
        until = int(np.searchsorted(traced, came[last], side="right")) if end < len(came) else len(traced)
        yield slice(packets, end), slice(records, until)
        packets, records = end, until


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
    """The join's state between two slabs. Arrays by flow number have `flow` in their names or are stated so."""

    def __init__(
        self, run: Run, queue: Columns, result: Segments, header: np.ndarray, first: _First, has_packets: np.ndarray
    ) -> None:
        tcp, flows = run.tcp, len(header)
        self._tcp, self._queue, self._result = tcp, queue, result
        self._header, self._first, self._has_packets = header, first, has_packets  # by flow, as all below but _open
        self._numbers, self._arrived, self._left = Unwrapped(flows), Coverage(flows), Coverage(flows)
        self._una, self._origin = Unwrapped(flows), np.zeros(flows, dtype=np.int64)
        self._window_row, self._ack_row = np.full(flows, NONE), np.full(flows, NONE)  # of the latest records
        self._reached = np.full(flows, np.iinfo(np.int64).min)  # the highest snd_una of ACKs
        self._open = _Open.none()
        self._has_una = known(tcp, "snd_una")
        self._is_retransmit = tcp["event"] == EVENT["TCP_EVENT_RETRANSMIT"]
        self._has_bytes = self._is_retransmit & known(tcp, "snd_una", "event_seq", "data_bytes", "mss_bytes")
        self._has_window = window_known(tcp)
        acks = np.flatnonzero(self._has_una & ~self._is_retransmit)
        self._last_ack_row = np.full(flows, NONE)
        self._last_ack_row[tcp["flow"][acks]] = acks  # NumPy keeps the last of several assignments to one flow
        self.largest_payload = np.zeros(flows, dtype=np.int64)
        self.copies, self.records = Retransmits(), Retransmits()

    def add(self, packets: slice, records: slice) -> None:
        """Joins a slab: rows of Segments, and of Run.tcp."""
        before = self._numbers.last.copy()  # sequence numbers of the flows' last packets before this slab
        cards = self._packets(packets)
        traced = Groups.of(self._tcp["flow"][records])
        traced_rows = traced.rows + records.start
        self._latest(cards, traced.only(self._has_window[traced_rows]), records)
        told = self._has_packets[traced.spread(traced.flow)] & self._is_retransmit[traced_rows]
        self._result.retransmits_untold += int(np.count_nonzero(told & ~self._has_bytes[traced_rows]))
        with_una = traced.only(self._has_una[traced_rows] & self._has_packets[traced.spread(traced.flow)])
        una = self._snd_una(cards, with_una, records, before)
        rows = with_una.rows + records.start
        self._retransmits(rows, una)
        is_ack = self._tcp["event"][rows] == EVENT["TCP_EVENT_PROBE"]
        waiting = self._covered(self._open.and_of(cards), with_una.only(is_ack), una[is_ack], records)
        self._open = waiting.only(self._last_ack_row[waiting.flow] >= records.stop)

    def _packets(self, packets: slice) -> _Packets:
        """The packets of a slab. Fills their sequence numbers, payloads and order into the result."""
        queue, result = self._queue, self._result
        groups = Groups.of(queue["flow"][result.rows[packets]])
        at = groups.rows + packets.start
        rows = result.rows[at]
        flow = groups.spread(groups.flow)
        seq = self._numbers.add(groups, queue["tcp_seq"][rows])
        control = queue["tcp_flags"][rows] & (TCP_SYN | TCP_FIN)
        payload = np.maximum(queue["packet_bytes"][rows].astype(np.int64) - self._header[flow], 0)
        payload[(control & TCP_SYN) != 0] = 0  # a SYN has no data, but longer options than in `header`
        end = seq + payload + (control != 0)
        arrived = self._arrived.add(groups, seq, end)
        retransmission = arrived.late & ~arrived.fills
        left = delivered(queue, rows) & (payload > 0)
        covered = self._left.add(groups.only(left), seq[left], (seq + payload)[left])
        result.seq[at], result.payload_bytes[at] = seq, payload
        result.new_bytes[at[left]] = covered.new_bytes
        result.retransmission[at], result.reordered[at] = retransmission, arrived.fills
        result.skipped += arrived.skipped
        if len(at):
            largest = np.maximum.reduceat(payload, groups.starts)
            self.largest_payload[groups.flow] = np.maximum(self.largest_payload[groups.flow], largest)
        came = queue["enqueue_mono_ns"][rows]
        self.copies.add(flow[retransmission], seq[retransmission], came[retransmission], at[retransmission])
        return _Packets(groups, at, came, seq, end, left & ~retransmission)

    def _latest(self, packets: _Packets, windows: Groups, records: slice) -> None:
        """For each packet, the flow's last record at or before its arrival of those that know the window."""
        flow = packets.groups.spread(packets.groups.flow)
        row = self._window_row[flow]
        of_record, count = windows.spread(windows.flow), records.stop - records.start
        if len(of_record):
            # The number of records at or before the arrival has fewer bits than the arrival, so a key cannot overflow.
            earlier = np.searchsorted(self._tcp["mono_ns"][records], packets.came, side="right")
            keys = of_record.astype(np.int64) * (count + 1) + windows.rows
            before = np.searchsorted(keys, flow.astype(np.int64) * (count + 1) + earlier) - 1
            in_slab = (before >= 0) & (of_record[before] == flow)
            row = np.where(in_slab, windows.rows[before] + records.start, row)
            self._window_row[windows.flow] = windows.rows[windows.ends - 1] + records.start
        self._result.trace_row[packets.at] = row

    def _snd_una(self, packets: _Packets, traced: Groups, records: slice, before: np.ndarray) -> np.ndarray:
        """snd_una of trace records, unwrapped to the same origin as the sequence numbers of their flows' packets. The
        first snd_una of a flow becomes the value nearest to the last sequence number that arrived before the record;
        `before` has these of earlier slabs.
        """
        new = ~self._una.seen[traced.flow]
        una = self._una.add(traced, self._tcp["snd_una"][records][traced.rows])
        flow, starts = traced.flow[new], traced.starts[new]
        if len(flow):
            begins = self._tcp["mono_ns"][records][traced.rows[starts]]
            reference = np.where(self._first.came[flow] > begins, self._first.seq[flow], before[flow])
            groups = packets.groups
            if len(groups.flow):
                here = np.minimum(np.searchsorted(groups.flow, flow), len(groups.flow) - 1)
                until = np.full(len(groups.flow), np.iinfo(np.int64).min)
                until[here] = np.where(groups.flow[here] == flow, begins, until[here])
                arrived = np.add.reduceat(packets.came <= groups.spread(until), groups.starts, dtype=np.int64)
                last = packets.seq[groups.starts + np.maximum(arrived - 1, 0)]
                is_here = (groups.flow[here] == flow) & (arrived[here] > 0)
                reference = np.where(is_here, last[here], reference)
            self._origin[flow] = near32(una[starts], reference) - una[starts]
        return una + traced.spread(self._origin[traced.flow])

    def _retransmits(self, rows: np.ndarray, una: np.ndarray) -> None:
        """The segments of the retransmit records among `rows` of Run.tcp."""
        sent = self._has_bytes[rows]
        rows, una = rows[sent], una[sent]
        begin = una + (self._tcp["event_seq"][rows] - self._tcp["snd_una"][rows]).view(np.int32)
        seq, ns, row = pieces(self._tcp, rows, begin)
        self.records.add(self._tcp["flow"][row], seq, ns, row)

    def _covered(self, waiting: _Open, acks: Groups, una: np.ndarray, records: slice) -> _Open:
        """Fills in the record of the ACK that first covered each segment's last byte; returns the rest of `waiting`."""
        if not len(una):
            return waiting
        starts, flow = acks.starts, acks.flow
        earlier = np.maximum(self._reached[flow], np.minimum.reduceat(una, starts) - 1)
        axis = Axis.of(
            np.minimum(np.minimum.reduceat(una, starts), earlier), np.maximum(np.maximum.reduceat(una, starts), earlier)
        )
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
        row = np.where(past > starts[group], acks.rows[past - 1] + records.start, self._ack_row[flow[group]])
        older = self._tcp["mono_ns"][row] < waiting.came[chosen]  # it acknowledged another copy
        self._result.ack_row[waiting.at[chosen]] = np.where(older, NONE, row)
        self._reached[flow] = reached[acks.ends - 1] - axis.offset
        self._ack_row[flow] = acks.rows[acks.ends - 1] + records.start
        is_open = np.ones(len(waiting.at), dtype=bool)
        is_open[chosen] = False
        return waiting.only(is_open)
