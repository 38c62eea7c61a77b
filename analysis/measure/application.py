# SPDX-License-Identifier: MIT
"""Goodput at the receiving program.

Our own sink counts bytes per flow and interval (goodput.bsg): its goodput covers the whole intervals in the
measurement window, and for a flow those in which its group was there. iperf3 reports each flow's mean over its whole
run, warm-up included.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from analysis.measure.metrics import UTILIZATION_WINDOW_RTTS, Window, windows_of_entries
from analysis.read.columns import parts
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
    first, count = _whole_intervals(window, interval_ns)
    if count <= 0:
        return Application()
    entries = [
        entry for entry in zip(run.traffic, windows_of_entries(run, window), strict=True) if not entry[0].program
    ]
    pairs = [entry.five_tuple.src_port << 16 | entry.five_tuple.dst_port for entry, _ in entries]
    of_experiment = np.unique(np.array([*pairs, *_finite_pairs(run)], dtype=np.uint32))
    bits: dict[Window, Counter[int]] = {part: Counter() for _, part in entries}
    per_interval = np.zeros(count)
    rows = slice(*np.searchsorted(records["interval_mono_ns"], (first * interval_ns, (first + count) * interval_ns)))
    for part in parts(records, "interval_mono_ns", "payload_bytes", "src_port", "dst_port", rows=rows):
        number = part["interval_mono_ns"] // interval_ns
        sent = 8 * part["payload_bytes"].astype(np.int64)
        ports = part["src_port"].astype(np.uint32) << np.uint32(16) | part["dst_port"]
        mine = np.isin(ports, of_experiment)
        sums = np.bincount(number[mine] - number[0], weights=sent[mine])
        per_interval[number[0] - first :][: len(sums)] += sums
        for window, of in bits.items():
            begin, intervals = _whole_intervals(window, interval_ns)
            inside = (number >= begin) & (number < begin + intervals)
            found, flow = np.unique(ports[inside], return_inverse=True)
            sums = np.bincount(flow, weights=sent[inside], minlength=len(found))
            of.update(dict(zip(found.tolist(), sums.tolist(), strict=True)))

    def rate_bps(window: Window, pair: int) -> float | None:
        _, intervals = _whole_intervals(window, interval_ns)
        return bits[window][pair] / (intervals * interval_ns / 1e9) if intervals > 0 else None

    return Application(
        goodput_bps=float(per_interval.sum() / (count * interval_ns / 1e9)),
        goodput_p01_bps=_p01_bps(per_interval, interval_ns, run.experiment.rtt_ns),
        by_flow={entry.id: rate_bps(part, pair) for (entry, part), pair in zip(entries, pairs, strict=True)},
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
