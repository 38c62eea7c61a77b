# SPDX-License-Identifier: MIT
"""The sawteeth of one long flow, from its packets: periods, window extremes, least queue, time without a queue."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from analysis.figures.common import Data
from analysis.papers.packet_trace import PacketTrace
from analysis.papers.stored_runs import StoredRuns
from analysis.theory import sawtooth

STEM = "one-flow"
PAIR = 2  # packets: after proportional rate reduction packets come in pairs, even while the window is below the BDP
COARSE = 1500  # spans to which a long curve is reduced; a figure's width shows no more


class Curve(NamedTuple):
    """A line of a figure: seconds since its start, and packets."""

    time_s: list[float]
    packets: list[int]


class Curves(NamedTuple):
    """Packets in flight and packets in the queue."""

    window: Curve
    queue: Curve


class Sawtooth(NamedTuple):
    """One period, from a loss to the next. Windows are packets in flight."""

    start_ns: int
    period_s: float
    peak_packets: int
    trough_packets: int
    shallowest_packets: int


def trace_of(runs: StoredRuns, buffer_packets: int, profile: str) -> PacketTrace | None:
    """The first run with this buffer and sender; None without a valid run."""
    selected = runs.select(STEM, buffer_packets=buffer_packets, profile=profile)
    return PacketTrace(selected[0]) if selected else None


def sawteeth(trace: PacketTrace) -> list[Sawtooth]:
    """Every whole period within the measurement window."""
    times, window = trace.window(trace.flows[0]["id"])
    drops = [start for start, _, _ in trace.losses()]
    teeth = []
    for start, end in itertools.pairwise(drops):
        inside = window[slice(*np.searchsorted(times, (start, end)))]
        depths = trace.queue_steps(start, end)[1]
        period_s = (end - start) / 1e9
        teeth.append(Sawtooth(start, period_s, int(inside.max()), int(inside.min()), int(depths.min())))
    return teeth


def share_without_queue(trace: PacketTrace) -> float:
    """Share of the measurement window in which the queue holds at most PAIR packets."""
    times, depth = trace.queue_steps(trace.start_ns, trace.end_ns)
    held_ns = np.diff(np.append(times, trace.end_ns))
    return float(held_ns[depth <= PAIR].sum() / (trace.end_ns - trace.start_ns))


def curves(trace: PacketTrace, start_ns: int, end_ns: int) -> Curves:
    """Window and queue in [start, end]. A curve of more than 2 x COARSE steps is reduced to the minimum and the
    maximum in each of COARSE equal spans.
    """
    flow = trace.flows[0]["id"]
    return Curves(
        _coarse(trace.window_steps(flow, start_ns, end_ns), start_ns, end_ns),
        _coarse(trace.queue_steps(start_ns, end_ns), start_ns, end_ns),
    )


def _coarse(steps: np.ndarray, start_ns: int, end_ns: int) -> Curve:
    times, values = steps
    if len(times) <= 2 * COARSE:
        return _curve((times - start_ns) / 1e9, values)
    edges = np.searchsorted(times, np.linspace(start_ns, end_ns, COARSE + 1))
    rows = np.unique(edges[:-1][np.diff(edges) > 0])
    least, most = np.minimum.reduceat(values, rows), np.maximum.reduceat(values, rows)
    at = (times[rows] - start_ns) / 1e9
    return _curve(np.repeat(at, 2), np.column_stack((least, most)).ravel())


def _curve(time_s: np.ndarray, packets: np.ndarray) -> Curve:
    """Rounds times to microseconds: published runs store them, and no figure shows finer times."""
    return Curve(np.round(time_s, 6).tolist(), packets.astype(int).tolist())


def model(trace: PacketTrace, first_s: float, last_s: float) -> Data:
    """The fluid sawtooth of the paper's equations (9) and (10): periods from `first_s` on, cut at `last_s`."""
    capacity = 1e9 / trace.packet_ns
    lowest, highest = sawtooth.extremes(trace.bdp, trace.buffer)
    period_s = sawtooth.period(capacity, trace.bdp, trace.buffer)
    at = np.linspace(0, period_s, 200)
    window = np.array([sawtooth.window(float(t), capacity, trace.bdp, lowest) for t in at])
    number = max(1, int((last_s - first_s) // period_s) + 1)
    starts = first_s + period_s * np.arange(number)
    times = (starts[:, None] + at).ravel()
    kept = times <= last_s
    windows = np.tile(window, number)
    return {
        "times_s": times[kept], "window": windows[kept], "queue": np.maximum(windows - trace.bdp, 0)[kept],
        "period_s": period_s, "lowest": lowest, "highest": highest,
        "utilization": sawtooth.mean_utilization(trace.bdp, trace.buffer),
        "without_queue": max(trace.bdp - lowest, 0.0) * trace.bdp / capacity / period_s,
    }  # fmt: skip
