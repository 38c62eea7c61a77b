# SPDX-License-Identifier: MIT
"""Joins each TCP packet of the queue with the sender's trace:

* by time: the flow's latest trace record at or before the packet's arrival, of the records that know the window;
* by sequence number: the record of the ACK that first covered the packet's last byte;
* retransmissions: the trace record of the retransmit that sent this copy.

Linux fires tcp_probe before it processes the segment (net/ipv4/tcp_input.c, tcp_rcv_established), so a record has
snd_una from before its own ACK. The ACK that covered a byte is therefore the record *before* the first record whose
snd_una is past the byte.

The join goes through the flows in batches, to bound the memory, and works on all flows of a batch at once
(by_flow.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.arithmetic import sequence
from analysis.arithmetic.by_flow import Axis, ByFlow
from analysis.arithmetic.unwrap import group_starts, near32, unwrap32
from analysis.join.retransmits import Retransmits, match, pieces
from analysis.join.trace_by_flow import TraceByFlow, estimate_in_flight, trace_by_flow
from analysis.read.link_loss import delivered
from analysis.read.load import Run
from analysis.read.raw import Columns, known
from wire import wire

CARD = wire.POSTCARD.const
EVENT = wire.TCP_RECORD.const
TCP_FIN, TCP_SYN = 0x01, 0x02
NONE = -1  # in place of a row number
ROW = np.int32  # type of row numbers: more than 2^31 rows would not fit in memory anyway
BATCH_ROWS, BATCH_FLOWS = 1 << 20, 1 << 13  # a batch takes about 200 MB


@dataclass
class Segments:
    """TCP packets of the queue in arrival order, one row each. `*_row` are rows of Run.tcp, or NONE."""

    rows: np.ndarray  # rows of the queue's postcards
    seq: np.ndarray  # int64, unwrapped; starts at the flow's first 32-bit number
    payload_bytes: np.ndarray  # uint16
    new_bytes: np.ndarray  # uint16: payload that left the queue for the first time with this packet
    retransmission: np.ndarray  # bool: its bytes had arrived at the queue before
    reordered: np.ndarray  # bool: first arrival of its bytes, but after later bytes
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
    """The TCP packets of a batch of flows, sorted by flow, then by arrival. Groups are flows that have packets."""

    at: np.ndarray  # position in Segments
    came: np.ndarray
    left: np.ndarray  # rows with payload that left the queue
    group: np.ndarray  # of each row
    starts: np.ndarray  # first row of each group
    flow: np.ndarray  # flow number of each group
    seq: np.ndarray  # unwrapped
    axis: Axis  # of sequence numbers
    end: np.ndarray  # of each packet's bytes, on the axis
    retransmission: np.ndarray


@dataclass
class _Records:
    """The trace records of ACKs of a batch that know snd_una, sorted by flow, then by time."""

    row: np.ndarray  # of Run.tcp
    group: np.ndarray  # of _Packets
    una: np.ndarray  # unwrapped to the origin of _Packets.seq


def join(run: Run, queue: Columns) -> tuple[Segments, TraceByFlow]:
    """Joins the postcards of one queue (columns sorted by enqueue_mono_ns) with the trace of `run`."""
    tcp, flows = run.tcp, len(run.flows)
    trace = trace_by_flow(run)
    rows = np.flatnonzero(queue["flags"] & CARD["POSTCARD_HAS_TCP"])
    result = Segments.empty(rows, flows)
    largest_payload = np.zeros(flows + 1, dtype=np.int64)
    is_ipv4 = np.append(run.flows.is_ipv4, True)
    by_flow = ByFlow.of(queue["flow"][rows], flows)
    earlier = _records_before(tcp, queue["enqueue_mono_ns"][rows])
    has_una = known(tcp, "snd_una")
    is_retransmit = tcp["event"] == EVENT["TCP_EVENT_RETRANSMIT"]
    has_bytes = is_retransmit & known(tcp, "snd_una", "event_seq", "data_bytes", "mss_bytes")
    copies, records = Retransmits(), Retransmits()
    for first, last in by_flow.batches(BATCH_ROWS, BATCH_FLOWS):
        packets = _packets(queue, result, by_flow, is_ipv4, largest_payload, (first, last))
        result.trace_row[packets.at] = _latest(trace.windows, packets, earlier[packets.at], len(tcp["event"]))
        again = np.flatnonzero(packets.retransmission)
        copies.add(packets.flow[packets.group[again]], packets.seq[again], packets.came[again], packets.at[again])
        traced, group = _rows_of(trace.rows, packets)
        result.retransmits_untold += int(np.count_nonzero(is_retransmit[traced] & ~has_bytes[traced]))
        traced, group = traced[has_una[traced]], group[has_una[traced]]
        traced_una = _snd_una(tcp, traced, group, packets)
        once = packets.left[~packets.retransmission[packets.left]]
        probes = tcp["event"][traced] == EVENT["TCP_EVENT_PROBE"]
        acks = _Records(traced[probes], group[probes], traced_una[probes])
        result.ack_row[packets.at[once]] = _covering_ack(tcp, acks, packets, once)
        sent = np.flatnonzero(has_bytes[traced])
        begin = traced_una[sent] + (tcp["event_seq"][traced[sent]] - tcp["snd_una"][traced[sent]]).view(np.int32)
        seq, ns, row = pieces(tcp, traced[sent], begin)
        records.add(tcp["flow"][row], seq, ns, row)
    result.retransmits_unmatched = match(copies, records, run.experiment.rtt_ns, result.retransmit_row)
    estimate_in_flight(run, trace, largest_payload)
    return result, trace


def _packets(
    queue: Columns, result: Segments, by_flow: ByFlow, is_ipv4: np.ndarray, largest_payload: np.ndarray,
    batch: tuple[int, int],
) -> _Packets:  # fmt: skip
    """The packets of a batch. Fills their sequence numbers, payloads and order into `result`."""
    bounds = by_flow.starts[batch[0] : batch[1] + 1]
    at = by_flow.rows[bounds[0] : bounds[-1]]
    present = np.flatnonzero(np.diff(bounds))
    flow, starts = batch[0] + present, bounds[present] - bounds[0]
    group = sequence.groups(starts, len(at))
    rows = result.rows[at]

    seq = unwrap32(queue["tcp_seq"][rows], starts)
    control = queue["tcp_flags"][rows] & (TCP_SYN | TCP_FIN)
    frame_bytes = queue["packet_bytes"][rows].astype(np.int32)
    header = sequence.header_bytes(frame_bytes, seq, control, starts, is_ipv4[flow])
    payload = np.maximum(frame_bytes - header.astype(np.int32)[group], 0)
    payload[(control & TCP_SYN) != 0] = 0  # a SYN has no data, but longer options than in `header`
    seq_end = seq + payload + (control != 0)
    axis = Axis.of(np.minimum.reduceat(seq, starts), np.maximum.reduceat(seq_end, starts))
    start, end = axis.at(group, seq), axis.at(group, seq_end)
    retransmission, reordered, skipped = sequence.order(start, end, starts)
    left = np.flatnonzero(delivered(queue, rows) & (payload > 0))

    result.seq[at], result.payload_bytes[at] = seq, payload
    result.new_bytes[at[left]] = sequence.new_bytes(start[left], payload[left])
    result.retransmission[at], result.reordered[at] = retransmission, reordered
    result.header_bytes[flow] = header
    result.skipped += skipped
    largest_payload[flow] = np.maximum.reduceat(payload, starts)
    return _Packets(at, queue["enqueue_mono_ns"][rows], left, group, starts, flow, seq, axis, end, retransmission)


def _records_before(tcp: Columns, came: np.ndarray) -> np.ndarray:
    """The number of trace records, of any flow, at or before each time."""
    times = tcp["mono_ns"]
    if (times[1:] < times[:-1]).any() or (came[1:] < came[:-1]).any():
        raise AssertionError("rows to join by time are not in time order")
    return np.searchsorted(times, came, side="right")


def _rows_of(by_flow: ByFlow, packets: _Packets) -> tuple[np.ndarray, np.ndarray]:
    """(rows of Run.tcp, group) of the flows that have packets, sorted by flow, then by time."""
    first, end = int(packets.flow[0]), int(packets.flow[-1]) + 1
    bounds = by_flow.starts[first : end + 1]
    rows = by_flow.rows[bounds[0] : bounds[-1]]
    group_of = np.full(end - first, NONE)
    group_of[packets.flow - first] = np.arange(len(packets.flow))
    group = np.repeat(group_of, np.diff(bounds))
    return rows[group != NONE], group[group != NONE]


def _latest(by_flow: ByFlow, packets: _Packets, earlier: np.ndarray, records: int) -> np.ndarray:
    """For each packet, the flow's last trace record at or before the packet's arrival, else NONE.

    `earlier` has the number of records of all flows at or before each packet's arrival. This number has fewer bits than
    the arrival time, so a key of flow and number cannot overflow. `records` is the number of all records.
    """
    rows, group = _rows_of(by_flow, packets)
    if not len(rows):
        return np.full(len(earlier), NONE)
    before = np.searchsorted(group * (records + 1) + rows, packets.group * (records + 1) + earlier) - 1
    has_record = (before >= 0) & (group[before] == packets.group)
    return np.where(has_record, rows[before], NONE)


def _snd_una(tcp: Columns, traced: np.ndarray, group: np.ndarray, packets: _Packets) -> np.ndarray:
    """snd_una of trace records, unwrapped to the same origin as the sequence numbers of their flows' packets.

    The first snd_una of a flow becomes the value nearest to the last sequence number that arrived before the record.
    """
    starts = group_starts(group)
    una = unwrap32(tcp["snd_una"][traced], starts)
    begins = np.zeros(len(packets.starts), dtype=np.int64)
    begins[group[starts]] = tcp["mono_ns"][traced[starts]]
    arrived = np.add.reduceat(packets.came <= begins[packets.group], packets.starts, dtype=np.int64)
    at = packets.starts + np.maximum(arrived - 1, 0)
    origin = np.zeros(len(packets.starts), dtype=np.int64)
    origin[group[starts]] = near32(una[starts], packets.seq[at[group[starts]]]) - una[starts]
    return una + origin[group]


def _covering_ack(tcp: Columns, acks: _Records, packets: _Packets, chosen: np.ndarray) -> np.ndarray:
    """The record of the ACK that first covered each of the `chosen` packets' last bytes."""
    if not len(acks.row):
        return np.full(len(chosen), NONE)
    reached = np.maximum.accumulate(packets.axis.clipped(acks.group, acks.una))
    past = np.searchsorted(reached, packets.end[chosen], side="left")
    group = packets.group[chosen]
    inside = (past > 0) & (past < len(acks.row))
    inside &= (acks.group[past - 1] == group) & (acks.group[np.minimum(past, len(acks.row) - 1)] == group)
    result = np.where(inside, acks.row[past - 1], NONE)
    result[tcp["mono_ns"][result] < packets.came[chosen]] = NONE  # this ACK is older: it acknowledged another copy
    return result
