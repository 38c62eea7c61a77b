# SPDX-License-Identifier: MIT
"""The numbers of each flow of the experiment over the measurement window; goodput and means over time are of the part
in which the flow's group was there. They are computed as columns, with one value for each flow number, and returned as
rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.arithmetic.by_flow import ByFlow
from analysis.join.join import NONE, Segments
from analysis.join.trace_by_flow import TraceByFlow
from analysis.measure.group_results import flow_rates_bps, timed_flows
from analysis.measure.metrics import CARD, EVENT, Goodput, Window, arrivals_in, cards_in
from analysis.read.columns import ColumnFile, slabs, sort_file
from analysis.read.load import Run
from analysis.read.raw import Columns, known

RTT_BITS = 39  # of an RTT beside 24 bits of a flow; 9 minutes or more count as 9 minutes
LONGEST_RTT_NS = (1 << RTT_BITS) - 1
NO_SAMPLE = 0xFFFFFFFF  # the kernel's minimum RTT before the first sample
Values = list[Any]  # None where a number is unknown


def flow_rows(
    run: Run, queue: Columns, segments: Segments, trace: TraceByFlow, good: Goodput, window: Window
) -> list[dict[str, Any]]:
    """One row per flow of the experiment."""
    columns = _of_queue(run, queue, good, window) | _of_trace(run, trace, window)
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


def _of_trace(run: Run, trace: TraceByFlow, window: Window) -> dict[str, Values]:
    """Retransmits, means over time of cwnd and packets in flight, mean over ACKs of the smoothed RTT, minimum RTT."""
    tcp, windows = run.tcp, trace.windows
    all_ns = tcp["mono_ns"][windows.rows]
    times = np.clip(all_ns, window.start_ns, window.end_ns)
    last_ns = np.full(len(windows), window.end_ns, dtype=times.dtype)
    for flows, part in timed_flows(run, window):
        rows = np.repeat(flows, windows.counts())
        times[rows], last_ns[flows] = np.clip(all_ns[rows], part.start_ns, part.end_ns), part.end_ns
    ends = np.append(times[1:], window.end_ns)[: len(times)]
    has_rows = windows.counts() > 0
    ends[windows.starts[1:][has_rows] - 1] = last_ns[has_rows]  # a flow's last window lasts to the end
    held_ns = (ends - times).astype(np.float64)
    total_ns = _sums(windows, held_ns)

    first, last = np.searchsorted(tcp["mono_ns"], (window.start_ns, window.end_ns))
    inside = np.zeros(len(tcp["event"]), dtype=bool)
    inside[first:last] = True
    resent = np.bincount(tcp["flow"][inside & (tcp["event"] == EVENT["TCP_EVENT_RETRANSMIT"])], minlength=len(windows))
    inside &= tcp["event"] == EVENT["TCP_EVENT_PROBE"]
    srtt = trace.rows.only(inside & known(tcp, "srtt_us"))
    rtt_min = tcp["rtt_min_us"]
    measured = trace.rows.only(inside & known(tcp, "rtt_min_us") & (rtt_min > 0) & (rtt_min < NO_SAMPLE))
    cwnd, in_flight = (
        _sums(windows, values[windows.rows] * held_ns) for values in (tcp["cwnd_packets"], trace.in_flight)
    )
    return {
        "retransmits": _known(resent, trace.rows.counts() > 0),
        "cwnd_packets_mean": _quotients(cwnd, total_ns),
        "in_flight_packets_mean": _quotients(in_flight, total_ns),
        "srtt_us_mean": _quotients(_sums(srtt, tcp["srtt_us"][srtt.rows].astype(np.float64)), srtt.counts()),
        "rtt_min_us": _known(_per_flow(np.minimum, measured, rtt_min[measured.rows]), measured.counts() > 0),
    }


def _packet_rtts(run: Run, queue: Columns, segments: Segments, window: Window) -> Values:
    """Median time in us from a packet's arrival at the queue to the ACK that covered the packet, by flow number."""
    inside = arrivals_in(queue, window.start_ns, window.end_ns)
    file = ColumnFile(run.directory, {"of_flow": np.dtype(np.int64)}, len(segments.rows))
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


def _per_flow(function: np.ufunc, by_flow: ByFlow, values: np.ndarray) -> np.ndarray:
    """Reduces each flow's values to one; 0 for a flow without rows. `values` has a value for each of `by_flow.rows`."""
    result = np.zeros(len(by_flow), dtype=values.dtype)
    filled = by_flow.counts() > 0
    if filled.any():
        result[filled] = function.reduceat(values, by_flow.starts[:-1][filled])
    return result


def _sums(by_flow: ByFlow, values: np.ndarray) -> np.ndarray:
    """Sums by flow, bit-identical on every machine (reproducible_sums.py)."""
    return _per_flow(np.add, by_flow, values)


def _quotients(sums: np.ndarray, weights: np.ndarray) -> Values:
    """Sum / weight; None where the weight is 0."""
    return _known(np.divide(sums, weights, out=np.zeros(len(sums)), where=weights > 0), weights > 0)


def _known(values: np.ndarray, mask: np.ndarray) -> Values:
    """The values as Python's numbers, None where `mask` is false."""
    return [value if known else None for value, known in zip(values.tolist(), mask.tolist(), strict=True)]
