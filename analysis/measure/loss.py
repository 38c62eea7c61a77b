# SPDX-License-Identifier: MIT
"""Loss events: when the queue dropped packets, of how many flows, and how far utilization, depth and windows fell."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from analysis.measure.metrics import (
    UTILIZATION_WINDOW_RTTS,
    Columns,
    LinkUsage,
    Window,
    WindowSeries,
    arrivals_in,
    cards_in,
)
from analysis.read.columns import joined, rows_of, slabs
from analysis.read.postcards import dropped

# One longest RTT (with a full queue) until the sender detects the loss, one until PRR has reduced the window (Spang et
# al., 3.2 and Figure 1), and two until the thinner stream has reached the queue and left it.
AFTERMATH_RTTS = 4
STEPS_PER_RTT = 50
STARTS_AT_ONCE = 1 << 17  # windows of so many starts, or of one event, take tens of MB


@dataclass(frozen=True)
class LossEvent:
    """Drops within one longest RTT of the first. Windows are packets in flight of all flows."""

    start_ns: int
    drops: int
    flows: int
    depth_before_packets: int  # at the arrival of the first dropped packet
    min_utilization: float | None  # None unless the measurement window contains the aftermath and one base RTT more
    min_utilization_10rtt: float | None  # None also if a 10-RTT window does not fit
    min_depth_packets: int | None
    min_mean_depth_packets: float | None  # mean over one base RTT
    window_before_packets: int | None
    window_after_packets: int | None  # minimum in the aftermath


def longest_rtt_ns(rtt_ns: int, buffer_packets: int, wire_bytes: int, rate_bps: float) -> int:
    """Base RTT plus the time that a full buffer of packets of `wire_bytes` takes to drain."""
    return rtt_ns + round(buffer_packets * wire_bytes * 8e9 / rate_bps)


def loss_events(
    queue: Columns, link: LinkUsage, windows: WindowSeries, window: Window, rtt_ns: int, rtt_max_ns: int
) -> list[LossEvent]:
    """The loss events that begin in the measurement window.

    A drop within `rtt_max_ns` of an event's first drop belongs to the event; the next drop begins another event. The
    aftermath of an event lasts AFTERMATH_RTTS longest RTTs. `min_utilization` is the minimum over windows of one base
    RTT that begin in the aftermath, one every 1/50 RTT (Lemma 2 of Spang et al.); `min_utilization_10rtt` is the same
    over windows of 10 base RTTs; `min_depth_packets` is the minimum depth at arrivals in the aftermath;
    `min_mean_depth_packets` is the smallest mean depth at arrivals of any window of one base RTT in the aftermath.
    """
    drops = _drops(queue, window)
    times = drops["enqueue_mono_ns"]
    firsts, after_ns = [], AFTERMATH_RTTS * rtt_max_ns
    at = 0
    while at < len(times):
        firsts.append(at)
        at = max(int(np.searchsorted(times, times[at] + rtt_max_ns)), at + 1)
    starts_ns = times[firsts]
    least = _least_utilization(link, window, starts_ns, after_ns, rtt_ns, rtt_ns)
    least_10rtt = _least_utilization(link, window, starts_ns, after_ns, UTILIZATION_WINDOW_RTTS * rtt_ns, rtt_ns)
    arrivals = np.searchsorted(queue["enqueue_mono_ns"], (starts_ns, starts_ns + after_ns)).T.tolist()
    records = np.searchsorted(windows.mono_ns, (starts_ns, starts_ns + after_ns), side="right").T.tolist()
    events = []
    for number, (at, end) in enumerate(pairwise([*firsts, len(times)])):
        start, shallow, mean = int(times[at]), None, None
        if least[number] is not None:
            rows = slice(*arrivals[number])
            depth = queue["depth_packets"][rows]
            shallow = int(depth.min()) if len(depth) else None
            mean = _min_mean_depth(queue["enqueue_mono_ns"][rows], depth, start, start + after_ns, rtt_ns)
        first, last = records[number]
        in_flight = windows.in_flight_packets[max(first - 1, 0) : last]
        before, in_flight = (int(in_flight[0]), in_flight[1:]) if first else (None, in_flight)
        after = int(in_flight.min()) if len(in_flight) else None
        flows, deep = len(np.unique(drops["flow"][at:end])), int(drops["depth_packets"][at])
        low, low_10rtt = least[number], least_10rtt[number]
        events.append(LossEvent(start, end - at, flows, deep, low, low_10rtt, shallow, mean, before, after))
    return events


def _drops(queue: Columns, window: Window) -> Columns:
    """The dropped packets among those that arrived in the window."""
    cards = cards_in(queue, window, "flags", "enqueue_mono_ns", "flow", "depth_packets")
    return joined(rows_of(queue, slice(0)), *(rows_of(part, dropped(part)) for part in cards))


def _least_utilization(
    link: LinkUsage, window: Window, starts_ns: np.ndarray, after_ns: int, width_ns: int, rtt_ns: int
) -> list[float | None]:
    """For each event, over windows of `width_ns` that begin in its aftermath; None if these are not all measured."""
    steps_ns = np.arange(0, after_ns, max(rtt_ns // STEPS_PER_RTT, 1), dtype=np.int64)
    known = starts_ns[starts_ns + after_ns + width_ns <= window.end_ns]
    result: list[float | None] = []
    for part in slabs(len(known), max(STARTS_AT_ONCE // len(steps_ns), 1)):
        begin_ns = known[part, None] + steps_ns
        result += link.utilization(begin_ns.ravel(), width_ns).reshape(begin_ns.shape).min(axis=1).tolist()
    return result + [None] * (len(starts_ns) - len(known))


def min_mean_depth(queue: Columns, start_ns: int, end_ns: int, width_ns: int) -> float | None:
    """The smallest mean depth at arrivals of any window of `width_ns` within [start, end). A window begins every 1/50
    of the width. Windows without arrivals do not count; None if no window has arrivals.
    """
    rows = arrivals_in(queue, start_ns, end_ns)
    return _min_mean_depth(queue["enqueue_mono_ns"][rows], queue["depth_packets"][rows], start_ns, end_ns, width_ns)


def _min_mean_depth(came: np.ndarray, depth: np.ndarray, start_ns: int, end_ns: int, width_ns: int) -> float | None:
    total = np.concatenate(([0], np.cumsum(depth, dtype=np.int64)))
    starts = np.arange(start_ns, end_ns - width_ns + 1, max(width_ns // STEPS_PER_RTT, 1), dtype=np.int64)
    first, last = np.searchsorted(came, starts), np.searchsorted(came, starts + width_ns)
    has_arrivals = last > first
    first, last = first[has_arrivals], last[has_arrivals]
    means = (total[last] - total[first]) / (last - first)
    return float(means.min()) if len(means) else None


def flows_losing(queue: Columns, window: Window, rtt_ns: int) -> np.ndarray:
    """Number of flows with a drop, for each base RTT with a drop, in time order (Spang et al., 5.6)."""
    drops = _drops(queue, window)
    rtt = (drops["enqueue_mono_ns"] - window.start_ns) // rtt_ns
    pairs = np.unique(rtt << 32 | drops["flow"].astype(np.int64))
    return np.unique(pairs >> 32, return_counts=True)[1]


def flows_losing_per_rtt(queue: Columns, window: Window, rtt_ns: int) -> float | None:
    """Mean of `flows_losing` (Spang et al., Figure 10); None without drops."""
    flows = flows_losing(queue, window, rtt_ns)
    return float(flows.mean()) if len(flows) else None
