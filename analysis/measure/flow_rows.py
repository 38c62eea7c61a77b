# SPDX-License-Identifier: MIT
"""The numbers of each flow of the experiment over the measurement window; goodput and means over time are of the part
in which the flow's group was there. They are computed as columns, with one value for each flow number, and returned as
rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.join.join import NONE, Segments
from analysis.measure import over_time
from analysis.measure.group_results import flow_rates_bps, timed_flows
from analysis.measure.metrics import CARD, EVENT, Goodput, Window, WindowSeries, arrivals_in, cards_in
from analysis.read.columns import ColumnFile, parts, rows_of, slabs, sort_file
from analysis.read.load import Run
from analysis.read.raw import Columns, known

RTT_BITS = 39  # of an RTT beside 24 bits of a flow; 9 minutes or more count as 9 minutes
LONGEST_RTT_NS = (1 << RTT_BITS) - 1
NO_SAMPLE = 0xFFFFFFFF  # the kernel's minimum RTT before the first sample
TRACED = ("mono_ns", "flow", "event", "unknown_fields", "srtt_us", "rtt_min_us")
Values = list[Any]  # None where a number is unknown


def flow_rows(
    run: Run, queue: Columns, segments: Segments, windows: WindowSeries, good: Goodput, window: Window
) -> list[dict[str, Any]]:
    """One row per flow of the experiment."""
    columns = _of_queue(run, queue, good, window) | _of_trace(run, windows, window)
    columns["packet_rtt_us_p50"] = _packet_rtts(run, queue, segments, window)
    names = list(columns)
    absent = (0.0, 0, 0, 0, *(None for _ in names[4:]))  # of a flow that sent nothing through the queue
    values = list(zip(*columns.values(), strict=True))
    result = []
    for entry in run.traffic:
        number, tuple_ = entry.number, entry.five_tuple
        row: dict[str, Any] = {
            "id": entry.id, "cc": entry.cc, "five_tuple": str(tuple_),
            "src_port": tuple_.src_port, "dst_port": tuple_.dst_port,
        }  # fmt: skip
        row.update(zip(names, values[number] if number >= 0 else absent, strict=True))
        if not entry.is_tcp and (run.experiment.open_loop or not run.experiment.datagrams):  # Goodput counts TCP only
            row["goodput_bps"] = None
        result.append(row)
    return result


def _of_queue(run: Run, queue: Columns, good: Goodput, window: Window) -> dict[str, Values]:
    """Goodput, packets, drops and marks of each flow number."""
    size = len(run.flows) + 1
    packets, drops, marks = np.zeros((3, size), dtype=np.int64)
    for cards in cards_in(queue, window, "flow", "flags"):
        flow, flags = cards["flow"], cards["flags"]
        packets += np.bincount(flow, minlength=size)
        drops += np.bincount(flow[(flags & CARD["POSTCARD_DROPPED"]) != 0], minlength=size)
        marks += np.bincount(flow[(flags & CARD["POSTCARD_CE_MARKED"]) != 0], minlength=size)
    rates_bps = flow_rates_bps(run, good, window)
    return {
        "goodput_bps": _known(rates_bps, ~np.isnan(rates_bps)),
        "packets": packets.tolist(),
        "drops": drops.tolist(),
        "marks": marks.tolist(),
    }


def _of_trace(run: Run, windows: WindowSeries, window: Window) -> dict[str, Values]:
    """Retransmits, means over time of cwnd and packets in flight, mean over ACKs of the smoothed RTT, minimum RTT."""
    size = len(run.flows) + 1
    start_ns, end_ns = (np.full(size, end) for end in (window.start_ns, window.end_ns))
    for flows, part in timed_flows(run, window):
        start_ns[flows], end_ns[flows] = part.start_ns, part.end_ns
    total_ns, cwnd, in_flight, srtt = np.zeros((4, size))
    for groups, values, held_ns in over_time.by_flow(windows, start_ns, end_ns, "of_flow_cwnd", "of_flow_in_flight"):
        total_ns[groups.flow] += np.add.reduceat(held_ns, groups.starts)
        for sums, packets in zip((cwnd, in_flight), values, strict=True):
            sums[groups.flow] += np.add.reduceat(packets * held_ns, groups.starts)

    records, resent, acks = np.zeros((3, size), dtype=np.int64)
    rtt_min = np.full(size, NO_SAMPLE)
    for tcp in parts(run.tcp, *TRACED):
        records += np.bincount(tcp["flow"], minlength=size)
        inside = slice(*np.searchsorted(tcp["mono_ns"], (window.start_ns, window.end_ns)))
        tcp = rows_of(tcp, inside)
        resent += np.bincount(tcp["flow"][tcp["event"] == EVENT["TCP_EVENT_RETRANSMIT"]], minlength=size)
        is_ack = tcp["event"] == EVENT["TCP_EVENT_PROBE"]
        measured = is_ack & known(tcp, "srtt_us")
        acks += np.bincount(tcp["flow"][measured], minlength=size)
        srtt += np.bincount(tcp["flow"][measured], tcp["srtt_us"][measured], size)
        measured = is_ack & known(tcp, "rtt_min_us") & (tcp["rtt_min_us"] > 0)
        of_flow = tcp["flow"][measured].astype(np.intp)  # types for which NumPy has a fast loop
        np.minimum.at(rtt_min, of_flow, tcp["rtt_min_us"][measured].astype(rtt_min.dtype))
    return {
        "retransmits": _known(resent, records > 0),
        "cwnd_packets_mean": _quotients(cwnd, total_ns if windows.has_cwnd else np.zeros_like(total_ns)),
        "in_flight_packets_mean": _quotients(in_flight, total_ns),
        "srtt_us_mean": _quotients(srtt, acks),
        "rtt_min_us": _known(rtt_min, rtt_min < NO_SAMPLE),
    }


def _packet_rtts(run: Run, queue: Columns, segments: Segments, window: Window) -> Values:
    """Median time in us from a packet's arrival at the queue to the ACK that covered the packet, by flow number."""
    inside = arrivals_in(queue, window.start_ns, window.end_ns)
    file = ColumnFile(run.directory, {"of_flow": np.dtype(np.int64)})
    counts = np.zeros(len(run.flows) + 1, dtype=np.int64)
    for part in slabs(len(segments.rows)):
        rows, ack = segments.rows[part], segments.ack_row[part]
        acked = (ack != NONE) & (rows >= inside.start) & (rows < inside.stop)
        rows, ack = rows[acked], ack[acked]
        flow = queue["flow"][rows].astype(np.int64)
        counts += np.bincount(flow, minlength=len(counts))
        rtt_ns = run.tcp["mono_ns"][ack] - queue["enqueue_mono_ns"][rows]
        file.append({"of_flow": flow << RTT_BITS | np.minimum(rtt_ns, LONGEST_RTT_NS)})
    columns = file.columns()
    sort_file(run.directory, columns, "of_flow")
    measured, median = counts > 0, np.zeros(len(counts))
    upper = (np.cumsum(counts) - counts + counts // 2)[measured]
    lower = upper - (counts[measured] % 2 == 0)
    ends = (columns["of_flow"][row] & LONGEST_RTT_NS for row in (lower, upper))
    median[measured] = sum(ends) / 2 / 1e3
    return _known(median, measured)


def _quotients(sums: np.ndarray, weights: np.ndarray) -> Values:
    """Sum / weight; None where the weight is 0."""
    return _known(np.divide(sums, weights, out=np.zeros(len(sums)), where=weights > 0), weights > 0)


def _known(values: np.ndarray, mask: np.ndarray) -> Values:
    """The values as Python's numbers, None where `mask` is false."""
    return [value if known else None for value, known in zip(values.tolist(), mask.tolist(), strict=True)]
