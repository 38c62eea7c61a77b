# SPDX-License-Identifier: MIT
"""The join as a loop over flows, one after another: the reference for analysis/join/join.py, which joins all flows of
a batch at once.

This join is slow and plain. It shares only `match` (analysis/join/retransmits.py), `near32`, `known`, constants and
data classes with analysis/join/join.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.arithmetic.unwrap import near32
from analysis.join.join import COLUMNS, NONE, Segments
from analysis.join.retransmits import Retransmits, match
from analysis.read.flows import FiveTuple
from analysis.read.load import Run
from analysis.read.raw import Columns, known
from lib.frames import ETHERNET_BYTES, IPV4_BYTES, IPV6_BYTES, TCP_BYTES, TIMESTAMP_OPTION_BYTES
from wire import wire

CARD, EVENT = wire.POSTCARD.const, wire.TCP_RECORD.const
FIN, SYN = 0x01, 0x02


@dataclass
class Expected:
    """The expected columns of the join."""

    segments: Segments
    windows: dict[int, np.ndarray]
    in_flight: np.ndarray


def join_flow_by_flow(run: Run, queue: Columns) -> Expected:
    """The same as analysis.join.join."""
    tcp = run.tcp
    usable = (known(tcp, "in_flight_packets") | known(tcp, "snd_nxt", "snd_una")) & known(tcp, "cwnd_packets")
    traces = {int(flow): np.flatnonzero(tcp["flow"] == flow) for flow in np.unique(tcp["flow"])}
    windows = {flow: rows[usable[rows]] for flow, rows in traces.items() if usable[rows].any()}
    rows = np.flatnonzero(queue["flags"] & CARD["POSTCARD_HAS_TCP"])
    columns: dict[str, Any] = {
        name: np.full(len(rows), NONE if name.endswith("_row") else 0, dtype=kind) for name, kind in COLUMNS.items()
    }
    result = Segments(**columns | {"rows": rows}, header_bytes=np.zeros(len(run.flows) + 1, dtype=np.uint8))
    copies, records = Retransmits(), Retransmits()
    largest: dict[int, int] = {}
    for flow in np.unique(queue["flow"][rows]).tolist():
        at = np.flatnonzero(queue["flow"][rows] == flow)
        packets = rows[at]
        came = queue["enqueue_mono_ns"][packets]
        seq = _unwrap(queue["tcp_seq"][packets])
        control = queue["tcp_flags"][packets] & (SYN | FIN)
        frame_bytes = queue["packet_bytes"][packets].astype(np.int32)
        header = _header_bytes(frame_bytes, seq, control, run.flows[flow] if flow < len(run.flows) else None)
        payload = np.maximum(frame_bytes - header, 0)
        payload[(control & SYN) != 0] = 0
        seq_end = seq + payload + (control != 0)
        retransmission, reordered, skipped = _order(seq, seq_end)
        left = np.flatnonzero(((queue["flags"][packets] & CARD["POSTCARD_DROPPED"]) == 0) & (payload > 0))
        result.seq[at], result.payload_bytes[at] = seq, payload
        result.new_bytes[at[left]] = _new_bytes(seq[left], payload[left])
        result.retransmission[at], result.reordered[at] = retransmission, reordered
        result.header_bytes[flow] = header
        result.skipped += skipped
        largest[flow] = int(payload.max())
        if flow in windows:
            last = np.searchsorted(tcp["mono_ns"][windows[flow]], came, side="right") - 1
            result.trace_row[at] = np.where(last >= 0, windows[flow][last], NONE)
        again = np.flatnonzero(retransmission)
        copies.add(np.full(len(again), flow), seq[again], came[again], at[again])
        traced = traces.get(flow, np.empty(0, dtype=np.int64))
        is_retransmit = tcp["event"][traced] == EVENT["TCP_EVENT_RETRANSMIT"]
        has_bytes = is_retransmit & known(tcp, "snd_una", "event_seq", "data_bytes", "mss_bytes")[traced]
        result.retransmits_untold += int(np.count_nonzero(is_retransmit & ~has_bytes))
        has_una = known(tcp, "snd_una")[traced]
        traced, sent = traced[has_una], has_bytes[has_una]
        if not len(traced):
            continue
        una = _unwrap(tcp["snd_una"][traced])
        arrived = max(int(np.searchsorted(came, tcp["mono_ns"][traced[0]], side="right")) - 1, 0)
        una += near32(int(una[0]), int(seq[arrived])) - int(una[0])
        probes = tcp["event"][traced] == EVENT["TCP_EVENT_PROBE"]
        for packet in left[~retransmission[left]]:
            result.ack_row[at[packet]] = _ack(tcp, traced[probes], una[probes], seq_end[packet], came[packet])
        for row, begin in zip(traced[sent], una[sent], strict=True):
            first = begin + int((tcp["event_seq"][row : row + 1] - tcp["snd_una"][row : row + 1]).view(np.int32)[0])
            mss = max(int(tcp["mss_bytes"][row]), 1)
            seqs = np.array([first + i * mss for i in range(max(-(-int(tcp["data_bytes"][row]) // mss), 1))])
            rows_of = np.full(len(seqs), row)
            records.add(np.full(len(seqs), flow), seqs, tcp["mono_ns"][rows_of], rows_of)
    result.retransmits_unmatched = match(copies, records, run.experiment.rtt_ns, result.retransmit_row)
    return Expected(result, windows, _in_flight(run, windows, largest))


def _unwrap(values: np.ndarray) -> np.ndarray:
    steps = np.diff(values).view(np.int32).astype(np.int64)
    return int(values[0]) + np.concatenate(([0], np.cumsum(steps)))


def _header_bytes(frame_bytes: np.ndarray, seq: np.ndarray, control: np.ndarray, flow: FiveTuple | None) -> int:
    step = np.diff(seq)
    header = frame_bytes[:-1] - step
    least = ETHERNET_BYTES + IPV4_BYTES + TCP_BYTES
    counts = np.bincount(header[(control[:-1] == 0) & (step >= 0) & (header >= least) & (header <= 255)], minlength=1)
    if counts.any():
        return int(counts.argmax())
    ip_bytes = IPV4_BYTES if flow is None or flow.is_ipv4 else IPV6_BYTES
    return ETHERNET_BYTES + ip_bytes + TCP_BYTES + TIMESTAMP_OPTION_BYTES


def _order(seq: np.ndarray, seq_end: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Pure ACKs are neither late nor timely. Any other packet is late if it starts below the highest byte so far, else
    timely. A late packet is reordered if no earlier packet contains its first byte, else a retransmission.
    """
    high, skipped = int(seq[0]), 0
    retransmission, reordered = np.zeros(len(seq), dtype=bool), np.zeros(len(seq), dtype=bool)
    came: set[int] = set()
    for row, (start, end) in enumerate(zip(seq.tolist(), seq_end.tolist(), strict=True)):
        skipped += start > high
        if end > start and start < high:
            retransmission[row], reordered[row] = start in came, start not in came
        came.update(range(start, end))
        high = max(high, end)
    return retransmission, reordered, skipped


def _new_bytes(seq: np.ndarray, payload: np.ndarray) -> np.ndarray:
    left: set[int] = set()
    result = np.zeros(len(seq), dtype=np.int64)
    for row, (start, length) in enumerate(zip(seq.tolist(), payload.tolist(), strict=True)):
        before = len(left)
        left.update(range(start, start + length))
        result[row] = len(left) - before
    return result


def _ack(tcp: Columns, rows: np.ndarray, una: np.ndarray, end: int, came: int) -> int:
    """The last record before snd_una reaches `end`; NONE if that record is earlier than `came` or does not exist."""
    past = np.flatnonzero(una >= end)
    if not len(past) or not past[0] or tcp["mono_ns"][rows[past[0] - 1]] < came:
        return NONE
    return int(rows[past[0] - 1])


def _in_flight(run: Run, windows: dict[int, np.ndarray], largest: dict[int, int]) -> np.ndarray:
    tcp = run.tcp
    result = tcp["in_flight_packets"].copy()
    counted, has_mss = known(tcp, "in_flight_packets"), known(tcp, "mss_bytes")
    for flow, rows in windows.items():
        ip_bytes = IPV4_BYTES if flow >= len(run.flows) or run.flows[flow].is_ipv4 else IPV6_BYTES
        assumed = run.experiment.mtu_bytes - ip_bytes - TCP_BYTES - TIMESTAMP_OPTION_BYTES
        for row in rows[~counted[rows]]:
            mss = int(tcp["mss_bytes"][row]) if has_mss[row] else largest.get(flow) or assumed
            outstanding = (int(tcp["snd_nxt"][row]) - int(tcp["snd_una"][row])) % (1 << 32)
            result[row] = -(-outstanding // max(mss, 1))
    return result
