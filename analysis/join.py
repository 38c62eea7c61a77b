# SPDX-License-Identifier: MIT
"""Queue and window side by side: what the sender's TCP was doing when each of its packets came to the queue.

Both tables are put in (flow, time) order once; every step below then works on one flow's rows, as they stand together:

* by time: the flow's latest trace record at or before the packet's arrival;
* by sequence number: the record of the ACK that first covered the packet's last byte;
* retransmissions: the trace record of the retransmit that sent this copy.

Linux fires tcp_probe before it processes the segment (net/ipv4/tcp_input.c, tcp_rcv_established), so a record shows the
state that its own ACK is about to change: the ACK that covered a byte is the record *before* the first whose snd_una
is past it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from analysis.flows import FiveTuple
from analysis.load import Run
from analysis.unwrap import group_starts, near32, running_max, unwrap32
from wire import wire

CARD = wire.POSTCARD.const
EVENT = wire.TCP_RECORD.const
TCP_FIN, TCP_SYN = 0x01, 0x02
ETHERNET_BYTES, IPV4_BYTES, IPV6_BYTES, TCP_BYTES = 14, 20, 40, 20
TIMESTAMP_OPTION_BYTES = 12  # RFC 7323, padded as Linux does
MAX_HEADER_BYTES = 255
NONE = -1  # a row number: there is none


@dataclass
class Trace:
    """The trace in (flow, time) order."""

    rows: np.ndarray  # int64, into Run.tcp
    flow: np.ndarray  # uint16, of each group
    starts: np.ndarray  # int64, first of each group in `rows`, and the end
    snd_una: np.ndarray  # int64, per row, comparable with Segments.seq of the same flow
    in_flight: np.ndarray  # int32, packets, per row of Run.tcp (not of `rows`)


@dataclass
class Segments:
    """TCP packets of the queue by arrival, one row each; row numbers are int64, NONE where there is nothing."""

    rows: np.ndarray  # into the queue's postcards
    seq: np.ndarray  # int64, unwrapped; starts at the flow's first 32-bit number
    payload_bytes: np.ndarray  # uint16
    new_bytes: np.ndarray  # uint16: payload that left the queue here and had not left it before
    retransmission: np.ndarray  # bool: its bytes had come to the queue before
    reordered: np.ndarray  # bool: came after later bytes, for the first time
    trace_row: np.ndarray  # latest record of the flow at or before the arrival
    ack_row: np.ndarray  # ACK that first covered it; only for packets sent once that left the queue
    retransmit_row: np.ndarray  # of a retransmission: the trace's record of it
    header_bytes: dict[int, int]  # by flow number: Ethernet, IP and TCP headers of a data packet
    skipped: int  # times a flow's sequence numbers went on beyond bytes that had not come to the queue
    retransmits_unmatched: int  # retransmit records of flows in the queue without a packet


def join(run: Run, queue: dict[str, np.ndarray]) -> tuple[Segments, Trace]:
    """Joins the postcards of one queue (columns by enqueue_mono_ns) with the trace."""
    rows = np.flatnonzero(queue["flags"] & CARD["POSTCARD_HAS_TCP"])
    order = np.argsort(queue["flow"][rows], kind="stable")
    grouped = rows[order]
    starts = group_starts(queue["flow"][grouped])
    ends = np.append(starts[1:], len(grouped))
    enqueue_ns = queue["enqueue_mono_ns"][grouped]
    numbers = queue["flow"][grouped[starts]]

    seq = unwrap32(queue["tcp_seq"][grouped], starts)
    control = queue["tcp_flags"][grouped] & (TCP_SYN | TCP_FIN)
    frame_bytes = queue["packet_bytes"][grouped]
    header = _header_bytes(frame_bytes, seq, control, starts, ends, [_flow(run, number) for number in numbers])
    payload = _payload(frame_bytes, control, header, starts, ends)
    seq_end = seq + payload + (control != 0)
    retransmission, reordered, skipped = _order(seq, seq_end, starts, ends)
    dropped = (queue["flags"][grouped] & CARD["POSTCARD_DROPPED"]) != 0
    new_bytes = np.zeros(len(grouped), dtype=np.uint16)
    for start, end in zip(starts, ends, strict=True):
        left = start + np.flatnonzero(~dropped[start:end] & (payload[start:end] > 0))
        new_bytes[left] = _new_bytes(seq[left], payload[left])

    trace = _trace(run, numbers, starts, ends, seq, enqueue_ns)
    trace_row, ack_row = np.full(len(grouped), NONE), np.full(len(grouped), NONE)
    first_copy = ~dropped & ~retransmission & (payload > 0)
    group_of = {int(flow): group for group, flow in enumerate(trace.flow)}
    for number, start, end in zip(numbers.tolist(), starts, ends, strict=True):
        if number in group_of:
            group = slice(*trace.starts[group_of[number] : group_of[number] + 2])
            trace_row[start:end] = _latest(run.tcp["mono_ns"], trace.rows[group], enqueue_ns[start:end])
            sent_once = start + np.flatnonzero(first_copy[start:end])
            ack_row[sent_once] = _covering_ack(run.tcp, trace, group, seq_end[sent_once], enqueue_ns[sent_once])
    retransmit_row, unmatched = _match_retransmits(
        run, trace, numbers, np.flatnonzero(retransmission), seq, enqueue_ns, queue["flow"][grouped]
    )

    def by_arrival(values: np.ndarray) -> np.ndarray:
        result = np.empty_like(values)
        result[order] = values
        return result

    segments = Segments(
        rows=rows,
        seq=by_arrival(seq),
        payload_bytes=by_arrival(payload),
        new_bytes=by_arrival(new_bytes),
        retransmission=by_arrival(retransmission),
        reordered=by_arrival(reordered),
        trace_row=by_arrival(trace_row),
        ack_row=by_arrival(ack_row),
        retransmit_row=by_arrival(retransmit_row),
        header_bytes=dict(zip(numbers.tolist(), header.tolist(), strict=True)),
        skipped=skipped,
        retransmits_unmatched=unmatched,
    )
    return segments, trace


def _flow(run: Run, number: int) -> FiveTuple | None:
    return run.flows[number] if number < len(run.flows) else None


def _header_bytes(
    frame_bytes: np.ndarray,
    seq: np.ndarray,
    control: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    flows: list[FiveTuple | None],
) -> np.ndarray:
    """Header bytes of each flow's data packets: postcards do not carry the length of TCP's options.

    A packet's payload is the step to the next sequence number, so frame length less that step is the header; the
    flow's commonest value is taken, which retransmissions and gaps do not reach. A flow too short to tell is
    taken to have timestamps, as Linux sends by default.
    """
    step = np.diff(seq, append=seq[-1:])
    header = frame_bytes.astype(np.int64) - step
    last = np.zeros(len(seq), dtype=bool)
    last[ends - 1] = True
    usable = (
        ~last
        & (control == 0)
        & (step >= 0)
        & (header >= ETHERNET_BYTES + IPV4_BYTES + TCP_BYTES)
        & (header <= MAX_HEADER_BYTES)
    )
    result = np.empty(len(starts), dtype=np.int64)
    for group, (start, end, flow) in enumerate(zip(starts, ends, flows, strict=True)):
        counts = np.bincount(header[start:end][usable[start:end]], minlength=1)
        ip_bytes = IPV4_BYTES if flow is None or flow.is_ipv4 else IPV6_BYTES
        fallback = ETHERNET_BYTES + ip_bytes + TCP_BYTES + TIMESTAMP_OPTION_BYTES
        result[group] = counts.argmax() if counts.any() else fallback
    return result


def _payload(
    frame_bytes: np.ndarray, control: np.ndarray, header: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> np.ndarray:
    """TCP payload of each packet. A SYN has none (its options are longer than those of data)."""
    payload = np.empty(len(frame_bytes), dtype=np.uint16)
    for start, end, header_bytes in zip(starts, ends, header, strict=True):
        payload[start:end] = np.maximum(frame_bytes[start:end].astype(np.int32) - header_bytes, 0)
    payload[(control & TCP_SYN) != 0] = 0
    return payload


def _order(
    seq: np.ndarray, seq_end: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """Which packets are retransmissions, which came late for the first time, and how often bytes were skipped."""
    high = running_max(seq_end, starts)
    before = np.empty_like(high)
    before[1:] = high[:-1]
    before[starts] = seq[starts]
    below = (seq < before) & (seq_end > seq)
    skipped = int(np.count_nonzero(seq > before))
    retransmission, reordered = below, np.zeros(len(seq), dtype=bool)
    for start, end in zip(starts, ends, strict=True):
        late = start + np.flatnonzero(below[start:end])
        if not len(late):
            continue
        # Packets that were not late stand in sequence order, so the holes between them are what came late or never.
        timely = start + np.flatnonzero(~below[start:end] & (seq_end[start:end] > seq[start:end]))
        at = np.searchsorted(seq[timely], seq[late], side="right") - 1
        in_hole = (at < 0) | (seq[late] >= seq_end[timely[at]])
        _, first = np.unique(seq[late[in_hole]], return_index=True)
        reordered[late[in_hole][first]] = True
    retransmission &= ~reordered
    return retransmission, reordered, skipped


def _new_bytes(seq: np.ndarray, payload: np.ndarray) -> np.ndarray:
    """Bytes of each packet of one flow that no packet of it carried before; packets are in time order.

    Where two packets share bytes but not their bounds the sum is exact, but the one that starts lower is credited.
    """
    order = np.argsort(seq, kind="stable")
    start, end = seq[order], seq[order] + payload[order]
    covered = np.empty_like(end)
    covered[:1] = start[:1]
    np.maximum.accumulate(end[:-1], out=covered[1:])
    result = np.empty(len(seq), dtype=np.uint16)
    result[order] = np.maximum(end - np.maximum(start, covered), 0)
    return result


def _trace(
    run: Run, numbers: np.ndarray, starts: np.ndarray, ends: np.ndarray, seq: np.ndarray, enqueue_ns: np.ndarray
) -> Trace:
    tcp = run.tcp
    rows = np.argsort(tcp["flow"], kind="stable")
    group_start = group_starts(tcp["flow"][rows])
    una = unwrap32(tcp["snd_una"][rows], group_start)
    bounds = np.append(group_start, len(rows))
    flows = tcp["flow"][rows[group_start]]
    group_of = {number: group for group, number in enumerate(numbers.tolist())}
    for flow, start, end in zip(flows.tolist(), bounds, bounds[1:], strict=False):
        group = group_of.get(flow)
        if group is not None:  # put the trace on the postcards' count, from where both stand at its first record
            first, last = starts[group], ends[group]
            at = max(int(np.searchsorted(enqueue_ns[first:last], tcp["mono_ns"][rows[start]], side="right")) - 1, 0)
            una[start:end] += near32(int(una[start]), int(seq[first + at])) - int(una[start])
    in_flight = tcp["packets_out"].astype(np.int32)
    in_flight -= tcp["sacked_out"].view(np.int32)
    in_flight -= tcp["lost_out"].view(np.int32)
    in_flight += tcp["retrans_out"].view(np.int32)
    return Trace(rows, flows, bounds, una, in_flight)


def _latest(times: np.ndarray, rows: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The last of `rows` whose time is at or before each of `at`, NONE if there is none. Both are in time order."""
    ordered = times[rows]
    if (ordered[1:] < ordered[:-1]).any() or (at[1:] < at[:-1]).any():
        raise AssertionError("rows to join by time are not in time order")
    found = np.searchsorted(ordered, at, side="right") - 1
    return np.where(found >= 0, rows[found], NONE)


def _covering_ack(
    tcp: dict[str, np.ndarray], trace: Trace, group: slice, seq_end: np.ndarray, enqueue_ns: np.ndarray
) -> np.ndarray:
    """The record of the ACK that first covered each `seq_end` of one flow."""
    probes = np.flatnonzero(tcp["event"][trace.rows[group]] == EVENT["TCP_EVENT_PROBE"])
    if not len(probes):
        return np.full(len(seq_end), NONE)
    rows = trace.rows[group][probes]
    una = np.maximum.accumulate(trace.snd_una[group][probes])
    past = np.searchsorted(una, seq_end, side="left")
    known = (past > 0) & (past < len(una))
    result = np.where(known, rows[np.maximum(past - 1, 0)], NONE)
    result[known & (tcp["mono_ns"][result] < enqueue_ns)] = NONE  # covered before it came: not this packet's ACK
    return result


def _match_retransmits(
    run: Run,
    trace: Trace,
    numbers: np.ndarray,
    copies: np.ndarray,
    seq: np.ndarray,
    enqueue_ns: np.ndarray,
    flow: np.ndarray,
) -> tuple[np.ndarray, int]:
    """The retransmit record of each retransmitted packet: same flow and sequence number, nearest in time.

    The tracepoint fires after the packet was handed down, so its record may be a little later than the arrival.
    """
    tcp, result = run.tcp, np.full(len(seq), NONE)
    event = np.flatnonzero(tcp["event"][trace.rows] == EVENT["TCP_EVENT_RETRANSMIT"])
    event = event[np.isin(tcp["flow"][trace.rows[event]], numbers)]
    rows = trace.rows[event]
    if not len(event):
        return result, 0
    ahead = (tcp["event_seq"][rows] - tcp["snd_una"][rows]).view(np.int32)
    events = pl.DataFrame(
        {
            "flow": tcp["flow"][rows],
            "seq": trace.snd_una[event] + ahead,
            "ns": tcp["mono_ns"][rows],
            "row": rows,
        }
    ).sort("ns")
    packets = pl.DataFrame({"flow": flow[copies], "seq": seq[copies], "ns": enqueue_ns[copies], "packet": copies})
    matched = packets.sort("ns").join_asof(
        events,
        on="ns",
        by=["flow", "seq"],
        strategy="nearest",
        tolerance=int(run.spec["rtt_ns"]),
        check_sortedness=False,  # cannot be checked with `by`; both were sorted in this function
    )
    matched = matched.drop_nulls("row")
    result[matched["packet"].to_numpy()] = matched["row"].to_numpy()
    return result, len(event) - matched["row"].n_unique()
