# SPDX-License-Identifier: MIT
"""Goodput at the receiving program.

Our own sink counts bytes per flow and interval (goodput.bsg): its goodput covers the whole intervals in the
measurement window, and for a flow those in which its group was there. iperf3 reports each flow's mean over its whole
run, warm-up included.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np

from analysis.measure.metrics import UTILIZATION_WINDOW_RTTS, Window, windows_of_entries
from analysis.read.load import Run


@dataclass
class Application:
    """Goodput in bit/s; None if unknown. `by_flow` is by the id of the flow in traffic.json."""

    goodput_bps: float | None = None
    goodput_p01_bps: float | None = None  # over sliding windows of 10 base RTTs
    by_flow: dict[int, float | None] = field(default_factory=dict)


def application(run: Run, window: Window) -> Application:
    """Goodput as our own sink recorded it; without the sink's records, as iperf3 reported it."""
    interval_ns = run.documents.traffic_sink.interval_ns
    if run.goodput is not None:
        return _of_sink(run, window, interval_ns) if interval_ns else Application()
    return _of_iperf3(run)


def _of_iperf3(run: Run) -> Application:
    """The sum over all flows is known only for a single iperf3 process. Several processes average over different spans,
    so the sum of their means could exceed the link's rate.
    """
    groups = run.documents.traffic.groups or []
    return Application(
        goodput_bps=groups[0].bits_per_second_received if len(groups) == 1 else None,
        by_flow={entry.id: entry.received_bps for entry in run.traffic},
    )


def _of_sink(run: Run, window: Window, interval_ns: int) -> Application:
    records = run.goodput
    assert records is not None
    begin = records["interval_mono_ns"]
    first, count = _whole_intervals(window, interval_ns)
    inside = (begin >= first * interval_ns) & (begin < (first + count) * interval_ns)
    if count <= 0:
        return Application()
    bits = 8 * records["payload_bytes"][inside].astype(np.int64)
    ports = records["src_port"][inside].astype(np.uint32) << np.uint32(16) | records["dst_port"][inside]
    port_pairs, flow = np.unique(ports, return_inverse=True)
    number = (begin[inside] // interval_ns).astype(np.int64)

    @cache
    def rates_bps(part: Window) -> dict[int, float] | None:
        """Goodput by pair of ports in the whole intervals of a part of the window; None if it has none."""
        begin, intervals = _whole_intervals(part, interval_ns)
        rows = (number >= begin) & (number < begin + intervals)
        sums = np.bincount(flow[rows], weights=bits[rows], minlength=len(port_pairs))
        seconds = intervals * interval_ns / 1e9
        return dict(zip(port_pairs.tolist(), (sums / seconds).tolist(), strict=True)) if intervals > 0 else None

    by_flow: dict[int, float | None] = {}
    pairs = []
    for entry, part in zip(run.traffic, windows_of_entries(run, window), strict=True):
        if entry.program:
            continue
        pairs.append(entry.five_tuple.src_port << 16 | entry.five_tuple.dst_port)
        rates = rates_bps(part)
        by_flow[entry.id] = None if rates is None else rates.get(pairs[-1], 0.0)
    of_experiment = np.isin(ports, np.array([*pairs, *_finite_pairs(run)], dtype=np.uint32))
    per_interval = np.bincount(number[of_experiment] - first, weights=bits[of_experiment], minlength=count)
    return Application(
        goodput_bps=float(per_interval.sum() / (count * interval_ns / 1e9)),
        goodput_p01_bps=_p01_bps(per_interval, interval_ns, run.experiment.rtt_ns),
        by_flow=by_flow,
    )


def _whole_intervals(window: Window, interval_ns: int) -> tuple[int, int]:
    """Number of the first whole interval in the window, and the number of whole intervals."""
    first = -(-window.start_ns // interval_ns)
    return first, window.end_ns // interval_ns - first


def _finite_pairs(run: Run) -> np.ndarray:
    """Source and destination ports of the finite flows, in one number."""
    records = run.flow_records
    if records is None:
        return np.empty(0, dtype=np.uint32)
    return records["src_port"].astype(np.uint32) << np.uint32(16) | records["dst_port"]


def _p01_bps(per_interval: np.ndarray, interval_ns: int, rtt_ns: int) -> float | None:
    """1st percentile over sliding windows. A window has the number of whole intervals nearest to 10 base RTTs."""
    width = max(round(UTILIZATION_WINDOW_RTTS * rtt_ns / interval_ns), 1)
    if len(per_interval) < width:
        return None
    before = np.concatenate(([0.0], np.cumsum(per_interval)))
    return float(np.percentile(before[width:] - before[:-width], 1) * 1e9 / (width * interval_ns))
