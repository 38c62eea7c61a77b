# SPDX-License-Identifier: MIT
"""Joins each TCP packet of the queue with the sender's trace, flow by flow to bound the memory:

* by time: the flow's latest trace record at or before the packet's arrival, of the records that know the window;
* by sequence number: the record of the ACK that first covered the packet's last byte;
* retransmissions: the trace record of the retransmit that sent this copy.

Linux fires tcp_probe before it processes the segment (net/ipv4/tcp_input.c, tcp_rcv_established), so a record shows the
state that its own ACK is about to change: the ACK that covered a byte is the record *before* the first whose snd_una
is past it.

A trace may leave fields unknown (wire/tcp_record.def). Where the packets in flight are unknown, they are estimated as
(snd_nxt - snd_una) / mss, as in the first seed paper, whose tcp_probe had only these fields. The estimate includes lost
and selectively acknowledged packets. Results that need another unknown field are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from analysis.flows import FiveTuple
from analysis.load import Run
from analysis.raw import Columns, known
from analysis.unwrap import group_starts, near32, spans, unwrap32
from lib.frames import ETHERNET_BYTES, IPV4_BYTES, IPV6_BYTES, TCP_BYTES, TIMESTAMP_OPTION_BYTES
from wire import wire

CARD = wire.POSTCARD.const
EVENT = wire.TCP_RECORD.const
TCP_FIN, TCP_SYN = 0x01, 0x02
MIN_HEADER_BYTES, MAX_HEADER_BYTES = ETHERNET_BYTES + IPV4_BYTES + TCP_BYTES, 255
PACKETS_OUT, SEQUENCE_NUMBERS = "packets_out", "snd_nxt - snd_una"  # sources of packets in flight
NONE = -1  # in place of a row number
ROW = np.int32  # of row numbers: more rows would not fit in memory anyway


@dataclass
class Segments:
    """TCP packets of the queue in arrival order, one row each. `*_row` are rows of Run.tcp, or NONE."""

    rows: np.ndarray  # rows of the queue's postcards
    seq: np.ndarray  # int64, unwrapped; starts at the flow's first 32-bit number
    payload_bytes: np.ndarray  # uint16
    new_bytes: np.ndarray  # uint16: payload that left the queue for the first time with this packet
    retransmission: np.ndarray  # bool: its bytes had arrived at the queue before
    reordered: np.ndarray  # bool: first arrival of its bytes, but after later bytes
    trace_row: np.ndarray  # latest record of the flow at or before the arrival
    ack_row: np.ndarray  # ACK that first covered the packet; only of packets that left the queue and were sent once
    retransmit_row: np.ndarray  # trace record of the retransmit; only of retransmissions
    header_bytes: dict[int, int] = field(default_factory=dict)  # by flow: Ethernet, IP and TCP headers of a data packet
    skipped: int = 0  # arrivals that left a hole in their flow's sequence numbers
    retransmits_unmatched: int = 0  # traced retransmitted segments without a packet in the queue
    retransmits_untold: int = 0  # retransmit records without sequence numbers, which cannot match a packet

    @classmethod
    def empty(cls, rows: np.ndarray) -> Segments:
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
        )


@dataclass
class TraceByFlow:
    """The trace's rows by flow number."""

    rows: dict[int, np.ndarray]  # rows of Run.tcp, in time order
    windows: dict[int, np.ndarray]  # the rows that know cwnd and packets in flight; flows without such rows are absent
    in_flight: np.ndarray  # int32, packets, per row of Run.tcp; meaningful in the rows of `windows`
    in_flight_from: str | None  # SEQUENCE_NUMBERS if any row is estimated, else PACKETS_OUT; None without windows


@dataclass
class _Retransmits:
    """One side of the match between retransmitted packets and retransmit records."""

    frames: list[pl.DataFrame] = field(default_factory=list)

    def add(self, flow: int, seq: np.ndarray, ns: np.ndarray, row: np.ndarray) -> None:
        if len(seq):
            columns = {"seq": seq.astype(np.int64), "ns": ns, "row": row.astype(np.int64)}
            self.frames.append(pl.DataFrame(columns).with_columns(flow=pl.lit(flow, pl.Int64)))


def join(run: Run, queue: Columns) -> tuple[Segments, TraceByFlow]:
    """Joins the postcards of one queue (columns sorted by enqueue_mono_ns) with the trace of `run`."""
    tcp = run.tcp
    trace = _trace(tcp)
    full_bytes: dict[int, int] = {}
    rows = np.flatnonzero(queue["flags"] & CARD["POSTCARD_HAS_TCP"])
    result = Segments.empty(rows)
    copies, records = _Retransmits(), _Retransmits()
    for flow, at in _groups(queue["flow"][rows]):
        packets = rows[at]
        came = queue["enqueue_mono_ns"][packets]
        seq = unwrap32(queue["tcp_seq"][packets], np.zeros(1, dtype=np.int64))
        control = queue["tcp_flags"][packets] & (TCP_SYN | TCP_FIN)
        frame_bytes = queue["packet_bytes"][packets].astype(np.int32)
        header = _header_bytes(frame_bytes, seq, control, run.flows[flow] if flow < len(run.flows) else None)
        payload = np.maximum(frame_bytes - header, 0)
        payload[(control & TCP_SYN) != 0] = 0  # a SYN's options are longer than those of a data packet
        seq_end = seq + payload + (control != 0)
        retransmission, reordered, skipped = _order(seq, seq_end)
        left = np.flatnonzero(((queue["flags"][packets] & CARD["POSTCARD_DROPPED"]) == 0) & (payload > 0))

        result.seq[at], result.payload_bytes[at] = seq, payload
        result.new_bytes[at[left]] = _new_bytes(seq[left], payload[left])
        result.retransmission[at], result.reordered[at] = retransmission, reordered
        result.header_bytes[flow] = header
        result.skipped += skipped
        full_bytes[flow] = int(payload.max(initial=0))
        windows = trace.windows.get(flow)
        if windows is not None:
            result.trace_row[at] = _latest(tcp["mono_ns"][windows], windows, came)
        again = np.flatnonzero(retransmission)
        copies.add(flow, seq[again], came[again], at[again])
        traced = trace.rows.get(flow, np.empty(0, dtype=np.int64))
        is_retransmit = tcp["event"][traced] == EVENT["TCP_EVENT_RETRANSMIT"]
        has_bytes = is_retransmit & known(tcp, "snd_una", "event_seq", "data_bytes", "mss_bytes")[traced]
        result.retransmits_untold += int(np.count_nonzero(is_retransmit & ~has_bytes))
        with_una = known(tcp, "snd_una")[traced]
        traced, event = traced[with_una], np.flatnonzero(has_bytes[with_una])
        if not len(traced):
            continue
        una = _snd_una(tcp, traced, seq, came)
        once = left[~retransmission[left]]
        result.ack_row[at[once]] = _covering_ack(tcp, traced, una, seq_end[once], came[once])
        first = una[event] + (tcp["event_seq"][traced[event]] - tcp["snd_una"][traced[event]]).view(np.int32)
        records.add(flow, *_pieces(tcp, traced[event], first))
    result.retransmits_unmatched = _match(copies, records, run.spec["rtt_ns"], result.retransmit_row)
    _fill_in_flight(run, trace, full_bytes)
    return result, trace


def _trace(tcp: Columns) -> TraceByFlow:
    """The trace by flow, before _fill_in_flight estimates unknown packets in flight."""
    rows = dict(_groups(tcp["flow"]))
    counted = known(tcp, "in_flight_packets")
    usable = (counted | known(tcp, "snd_nxt", "snd_una")) & known(tcp, "cwnd_packets")
    if usable.all():
        windows = rows
    else:
        windows = {flow: kept for flow, all_of in rows.items() if len(kept := all_of[usable[all_of]])}
    source = (PACKETS_OUT if counted[usable].all() else SEQUENCE_NUMBERS) if usable.any() else None
    return TraceByFlow(rows, windows, tcp["in_flight_packets"], source)


def _fill_in_flight(run: Run, trace: TraceByFlow, full_bytes: dict[int, int]) -> None:
    """Estimates unknown packets in flight as (snd_nxt - snd_una) / mss, rounded up.

    mss is the record's; else the flow's largest payload in the queue; else the payload of an MTU with timestamps.
    """
    if trace.in_flight_from != SEQUENCE_NUMBERS:
        return
    tcp = run.tcp
    trace.in_flight = trace.in_flight.copy()
    counted, has_mss = known(tcp, "in_flight_packets"), known(tcp, "mss_bytes")
    for flow, rows in trace.windows.items():
        estimated = rows[~counted[rows]]
        ip_bytes = IPV4_BYTES if flow >= len(run.flows) or run.flows[flow].is_ipv4 else IPV6_BYTES
        largest = run.spec["mtu_bytes"] - ip_bytes - TCP_BYTES - TIMESTAMP_OPTION_BYTES
        mss = np.where(has_mss[estimated], tcp["mss_bytes"][estimated], full_bytes.get(flow) or largest)
        outstanding = (tcp["snd_nxt"][estimated] - tcp["snd_una"][estimated]).astype(np.int64)
        trace.in_flight[estimated] = -(-outstanding // np.maximum(mss, 1))


def _groups(flow: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """(flow number, the flow's rows in ascending order) for each flow."""
    order = np.argsort(flow, kind="stable")  # a radix sort: flows have 16 bits
    for start, end in spans(group_starts(flow[order]), len(order)):
        yield int(flow[order[start]]), order[start:end]


def _header_bytes(frame_bytes: np.ndarray, seq: np.ndarray, control: np.ndarray, flow: FiveTuple | None) -> int:
    """Ethernet, IP and TCP header bytes of a flow's data packets. Postcards do not carry the length of TCP's options.

    A packet's payload is the step to the next sequence number, and its header is the rest of the frame. The result is
    the commonest such header: retransmissions and gaps give rarer values. A flow without a usable step is assumed to
    carry timestamps, the default of Linux.
    """
    step = np.diff(seq)
    header = frame_bytes[:-1] - step
    usable = (control[:-1] == 0) & (step >= 0) & (header >= MIN_HEADER_BYTES) & (header <= MAX_HEADER_BYTES)
    counts = np.bincount(header[usable], minlength=1)
    if counts.any():
        return int(counts.argmax())
    ip_bytes = IPV4_BYTES if flow is None or flow.is_ipv4 else IPV6_BYTES
    return ETHERNET_BYTES + ip_bytes + TCP_BYTES + TIMESTAMP_OPTION_BYTES


def _order(seq: np.ndarray, seq_end: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """(mask of retransmissions, mask of reordered first arrivals, number of arrivals that left a hole) of one flow."""
    before = np.empty_like(seq)
    before[:1] = seq[:1]
    np.maximum.accumulate(seq_end[:-1], out=before[1:])
    below = (seq < before) & (seq_end > seq)
    skipped = int(np.count_nonzero(seq > before))
    reordered = np.zeros(len(seq), dtype=bool)
    late = np.flatnonzero(below)
    if len(late):
        # Timely packets are in sequence order. A late packet that fills a hole between them is reordered.
        timely = np.flatnonzero(~below & (seq_end > seq))
        at = np.searchsorted(seq[timely], seq[late], side="right") - 1
        in_hole = (at < 0) | (seq[late] >= seq_end[timely[at]])
        _, first = np.unique(seq[late[in_hole]], return_index=True)
        reordered[late[in_hole][first]] = True
    return below & ~reordered, reordered, skipped


def _new_bytes(seq: np.ndarray, payload: np.ndarray) -> np.ndarray:
    """New bytes of each packet of one flow: bytes that no earlier packet carried. Input is in time order.

    If two packets overlap in part, the packet with the lower start is credited with the overlap; the sum stays exact.
    """
    if (np.diff(seq) >= payload[:-1]).all():
        return payload
    order = np.argsort(seq, kind="stable")
    start, end = seq[order], seq[order] + payload[order]
    covered = np.empty_like(end)
    covered[:1] = start[:1]
    np.maximum.accumulate(end[:-1], out=covered[1:])
    result = np.empty_like(payload)
    result[order] = np.maximum(end - np.maximum(start, covered), 0)
    return result


def _snd_una(tcp: Columns, traced: np.ndarray, seq: np.ndarray, came: np.ndarray) -> np.ndarray:
    """snd_una of a flow's records, unwrapped to the same origin as `seq`.

    The first snd_una becomes the value nearest to the last sequence number that arrived before the record.
    """
    una = unwrap32(tcp["snd_una"][traced], np.zeros(1, dtype=np.int64))
    at = max(int(np.searchsorted(came, tcp["mono_ns"][traced[0]], side="right")) - 1, 0)
    return una + (near32(int(una[0]), int(seq[at])) - int(una[0]))


def _latest(times: np.ndarray, rows: np.ndarray, at: np.ndarray) -> np.ndarray:
    """For each time of `at`, the last of `rows` at or before it, else NONE. `times` and `at` are ascending."""
    if (times[1:] < times[:-1]).any() or (at[1:] < at[:-1]).any():
        raise AssertionError("rows to join by time are not in time order")
    last = np.searchsorted(times, at, side="right") - 1
    return np.where(last >= 0, rows[last], NONE)


def _covering_ack(
    tcp: Columns, traced: np.ndarray, una: np.ndarray, seq_end: np.ndarray, came: np.ndarray
) -> np.ndarray:
    """The record of the ACK that first covered each `seq_end` of one flow."""
    probes = np.flatnonzero(tcp["event"][traced] == EVENT["TCP_EVENT_PROBE"])
    if not len(probes):
        return np.full(len(seq_end), NONE)
    rows = traced[probes]
    past = np.searchsorted(np.maximum.accumulate(una[probes]), seq_end, side="left")
    result = np.where((past > 0) & (past < len(rows)), rows[np.maximum(past - 1, 0)], NONE)
    result[tcp["mono_ns"][result] < came] = NONE  # an ACK before the packet's arrival acknowledged another copy
    return result


def _pieces(tcp: Columns, rows: np.ndarray, seq: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(seq, time, row) of each segment of retransmit records. One record can cover several segments (TSO)."""
    mss = np.maximum(tcp["mss_bytes"][rows].astype(np.int64), 1)
    segments = np.maximum(-(-tcp["data_bytes"][rows].astype(np.int64) // mss), 1)
    at = np.repeat(np.arange(len(rows)), segments)
    number = np.arange(len(at)) - np.repeat(np.cumsum(segments) - segments, segments)
    return seq[at] + number * mss[at], tcp["mono_ns"][rows[at]], rows[at]


def _match(copies: _Retransmits, records: _Retransmits, tolerance_ns: int, retransmit_row: np.ndarray) -> int:
    """Fills `retransmit_row` with the record of the same flow and sequence number that is nearest in time.

    The tracepoint fires after the packet was passed to the device, so the record can be later than the arrival.
    Returns the number of record segments without a packet.
    """
    total = sum(len(frame) for frame in records.frames)
    if not total or not copies.frames:
        return total
    matched = (
        pl.concat(copies.frames)
        .sort("ns")
        .join_asof(
            pl.concat(records.frames).sort("ns"),
            on="ns",
            by=["flow", "seq"],
            strategy="nearest",
            tolerance=tolerance_ns,
            suffix="_record",
            check_sortedness=False,  # cannot be checked with `by`; both were sorted just now
        )
        .drop_nulls("row_record")
    )
    retransmit_row[matched["row"].to_numpy()] = matched["row_record"].to_numpy()
    return total - matched.select("seq", "row_record").n_unique()
