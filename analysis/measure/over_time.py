# SPDX-License-Identifier: MIT
"""Distributions over time (the ns spent at each value) of the queue's depth and of the sum of all windows, and the
synchronization of the windows.

A distribution at arrivals or at ACKs would give busy moments too much weight, because each packet of a burst adds a
sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from analysis.arithmetic.counted import Counted
from analysis.arithmetic.reproducible_sums import dot
from analysis.join.trace_by_flow import TraceByFlow
from analysis.measure import metrics
from analysis.measure.metrics import Columns, Window, WindowSeries
from analysis.read.columns import in_order, parts
from analysis.read.load import Run
from analysis.read.postcards import admitted

Held = tuple[np.ndarray, np.ndarray]  # (values, ns at each), int64, ascending by value


def depth(queue: Columns, window: Window) -> Held:
    """Packets in the queue, the one in transmission included."""
    return _held(_depths(queue), window)


def _depths(queue: Columns) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(ns, depth from then on) at each arrival and departure, in the order of time, slab by slab."""

    def changes() -> Iterator[Columns]:
        for cards in parts(queue, "flags", "enqueue_mono_ns", "sojourn_ns"):
            came = cards["enqueue_mono_ns"][admitted(cards)]
            left = came + cards["sojourn_ns"][admitted(cards)]
            change = np.repeat(np.array([1, -1]), len(came))
            yield {"ns": np.append(came, left), "change": change, "came_ns": np.append(came, came)}

    deep = 0
    for slab in in_order(changes(), "ns", "came_ns"):
        depths = deep + np.cumsum(slab["change"])
        yield slab["ns"], depths
        deep = int(depths[-1]) if len(depths) else deep


def aggregate_window(windows: WindowSeries, window: Window) -> Held:
    """Packets in flight of all flows together."""
    return _held([(windows.mono_ns, windows.in_flight_packets)], window)


def _held(parts: Iterable[tuple[np.ndarray, np.ndarray]], window: Window) -> Held:
    """Each value of (ns, values) holds from its time to the time of the next value, the last to the window's end. The
    time before the first value is left out.
    """
    held, before = Counted(), np.empty((2, 0), dtype=np.int64)
    for part in chain(parts, [(np.array([window.end_ns]), np.zeros(1, np.int64))]):
        times, values = np.concatenate((before, part), axis=1)
        held_ns = np.diff(np.clip(times, window.start_ns, window.end_ns))
        inside = held_ns > 0
        kept, where = np.unique(values[:-1][inside], return_inverse=True)
        total_ns = np.zeros(len(kept), dtype=np.int64)
        np.add.at(total_ns, where, held_ns[inside])
        held.merge(kept, total_ns)
        before = np.array([times[-1:], values[-1:]])
    return held.values, held.counts


def deviation(held: Held) -> float | None:
    """Standard deviation over time; None without values."""
    values, ns = held
    return None if not ns.sum() else _variance(values.astype(np.float64), ns.astype(np.float64)) ** 0.5


def synchronization(run: Run, trace: TraceByFlow, windows: WindowSeries, window: Window) -> float | None:
    """(Var(sum W) / sum Var(W_i) - 1) / (n - 1), variances over time: 0 if n windows are independent, 1 if they are
    equal at all times, negative if they make room for each other. None for fewer than two windows, for constant
    windows, or if a flow's trace begins after `window`.
    """
    flows = trace.windows.only(metrics.of_experiment(run)[run.tcp["flow"]])
    starts = flows.starts[:-1][flows.counts() > 0]
    values, ns = aggregate_window(windows, window)
    if len(starts) < 2 or not ns.sum():
        return None
    times = np.clip(run.tcp["mono_ns"][flows.rows], window.start_ns, window.end_ns)
    until = np.append(times[1:], window.end_ns)
    until[starts[1:] - 1] = window.end_ns  # a flow's last value holds to the end
    held_ns = (until - times).astype(np.float64)
    packets = trace.in_flight[flows.rows].astype(np.float64)
    total_ns = np.add.reduceat(held_ns, starts)
    if not (total_ns > 0).all():
        return None
    mean = np.add.reduceat(packets * held_ns, starts) / total_ns
    # Deviations are from each flow's own mean: the mean of squares minus the squared mean would lose digits.
    apart = packets - np.repeat(mean, np.diff(np.append(starts, len(packets))))
    each = float((np.add.reduceat(apart * apart * held_ns, starts) / total_ns).sum())
    together = _variance(values.astype(np.float64), ns.astype(np.float64))
    return (together / each - 1) / (len(starts) - 1) if each else None


def _variance(values: np.ndarray, weights: np.ndarray) -> float:
    total = float(weights.sum())
    apart = values - dot(values, weights) / total
    return dot(apart * apart, weights) / total
