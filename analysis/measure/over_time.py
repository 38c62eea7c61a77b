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

from analysis.arithmetic.by_flow import Groups
from analysis.arithmetic.counted import Counted
from analysis.arithmetic.reproducible_sums import dot
from analysis.join.join import NONE
from analysis.measure.metrics import LEAST, SPAN, Columns, Window, WindowSeries
from analysis.read.columns import in_order, parts
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


def aggregate_window(windows: WindowSeries, window: Window, column: str = "in_flight_packets") -> Held:
    """Packets in flight of all flows together, or another sum over flows."""
    first, last = max(windows.until(window.start_ns) - 1, 0), windows.until(window.end_ns)
    sums = windows.parts("mono_ns", column, first=first, last=last)
    return _held(((part["mono_ns"], part[column]) for part in sums), window)


def by_flow(
    windows: WindowSeries, start_ns: np.ndarray, end_ns: np.ndarray, *names: str
) -> Iterator[tuple[Groups, list[np.ndarray], np.ndarray]]:
    """All records in slabs, each slab sorted by flow: (groups, values of the columns `names`, ns for which each
    holds, float64). A record holds until the flow's next one, the flow's last to its end; `start_ns` and `end_ns`, by
    flow number, limit both.
    """
    names = ("flow", "mono_ns", *names)
    waiting = {name: getattr(windows, name)[:0] for name in names}  # the flows' last records: they hold until later
    rows = 0
    for part in windows.parts(*names):
        rows += len(part["flow"])
        part = {name: np.concatenate((waiting[name], part[name])) for name in names}
        groups = Groups.of(part["flow"])
        part = {name: column[groups.rows] for name, column in part.items()}
        flow, last = part["flow"], groups.ends - 1
        times = np.clip(part["mono_ns"], start_ns[flow], end_ns[flow])
        until = np.append(times[1:], 0)
        until[last] = end_ns[flow[last]]
        held_ns = (until - times).astype(np.float64)
        if rows < len(windows.mono_ns):
            waiting = {name: column[last] for name, column in part.items()}
            held_ns[last] = 0
        yield groups, [part[name] for name in names[2:]], held_ns


def _held(parts: Iterable[tuple[np.ndarray, np.ndarray]], window: Window) -> Held:
    """Each value of (ns, values) holds from its time to the time of the next value, the last to the window's end. The
    time before the first value is left out.
    """
    held, before = Counted(), np.empty((2, 0), dtype=np.int64)
    for part in chain(parts, [(np.array([window.end_ns]), np.zeros(1, np.int64))]):
        times, values = np.concatenate((before, part), axis=1)
        held_ns = np.diff(np.clip(times, window.start_ns, window.end_ns))
        inside = held_ns > 0
        held.add(values[:-1][inside], held_ns[inside])
        before = np.array([times[-1:], values[-1:]])
    return held.values, held.counts


def deviation(held: Held) -> float | None:
    """Standard deviation over time; None without values."""
    values, ns = held
    return None if not ns.sum() else _variance(values.astype(np.float64), ns.astype(np.float64)) ** 0.5


def synchronization(windows: WindowSeries, window: Window) -> float | None:
    """(Var(sum W) / sum Var(W_i) - 1) / (n - 1), variances over time: 0 if n windows are independent, 1 if they are
    equal at all times, negative if they make room for each other. None for fewer than two windows, for constant
    windows, or if a flow's trace begins after `window`.
    """
    values, ns = aggregate_window(windows, window)
    traced = windows.last != NONE
    flows = np.count_nonzero(traced)
    if flows < 2 or not ns.sum():
        return None
    start_ns, end_ns = (np.full(len(traced), end) for end in (window.start_ns, window.end_ns))
    held = Counted()  # ns of each window of each flow
    for groups, (packets,), held_ns in by_flow(windows, start_ns, end_ns, "of_flow_in_flight"):
        held.merge(groups.spread(groups.flow).astype(np.int64) * SPAN + packets, held_ns.astype(np.int64))
    flow = (held.values + LEAST) // SPAN
    packets = held.values - flow * SPAN
    starts = np.flatnonzero(np.diff(flow, prepend=-1))
    total_ns = np.add.reduceat(held.counts, starts)
    if not (total_ns > 0).all():
        return None
    mean = np.add.reduceat(packets * held.counts, starts) / total_ns
    # Deviations are from each flow's own mean: the mean of squares minus the squared mean would lose digits.
    apart = packets - np.repeat(mean, np.diff(starts, append=len(flow)))
    each = float((np.add.reduceat(apart * apart * held.counts, starts) / total_ns).sum())
    together = _variance(values.astype(np.float64), ns.astype(np.float64))
    return (together / each - 1) / (flows - 1) if each else None


def _variance(values: np.ndarray, weights: np.ndarray) -> float:
    total = float(weights.sum())
    apart = values - dot(values, weights) / total
    return dot(apart * apart, weights) / total
