# SPDX-License-Identifier: MIT
"""Window and queue of one long flow over time, and their panels: windows above, queues beneath."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from analysis.figures.common import Data
from analysis.papers import look
from analysis.papers.appenzeller2004.terms import COLORS, NAMES
from analysis.papers.packet_trace import PacketTrace
from analysis.papers.paper_runs import PaperRuns

STEM = "one-flow"
COARSE = 1500  # spans to which a long curve is reduced; a figure's width shows no more
HEIGHT_IN = 3.4


class Curve(NamedTuple):
    """A line of a figure: seconds since its start, and packets."""

    time_s: list[float]
    packets: list[int]


class Curves(NamedTuple):
    """Packets in flight and packets in the queue."""

    window: Curve
    queue: Curve


def trace_of(runs: PaperRuns, buffer_packets: int, profile: str) -> PacketTrace | None:
    """The first run with this buffer and sender; None without a valid run."""
    selected = runs.select(STEM, buffer_packets=buffer_packets, profile=profile)
    return PacketTrace(selected[0]) if selected else None


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


def draw(
    data: Data, width_in: float, legend: Mapping[str, Any], **grid: Any
) -> tuple[look.Figure, look.Axes, look.Axes, Data | None]:
    """The figure, its two panels, and the first measured sender (None if there is none). A sender's `shift_s`
    moves its curves in time.
    """
    figure, axes = look.new_figure(width_in, HEIGHT_IN, 2, sharex=True, **grid)
    upper, lower = axes[:, 0]
    present, missing = look.split(data["senders"])
    if not present:
        look.absent(upper, lower, text="\n".join(missing))
        return figure, upper, lower, None
    for profile, sender in present.items():
        draw_pair((upper, lower), profile, sender["curves"], sender.get("shift_s", 0.0))
    first, buffer = next(iter(present.values())), data["buffer"]
    label_pair(upper, lower, first["bdp"], buffer)
    upper.set_ylim(0, (first["bdp"] + buffer) * 1.15)
    upper.set_ylabel("window\n(packets in flight)")
    lower.set_ylabel("queue depth\n(packets)")
    upper.legend(frameon=False, **legend)
    figure.align_ylabels()
    return figure, upper, lower, first


def draw_pair(pair: Iterable[look.Axes], profile: str, of: Curves, shift_s: float = 0.0, **style: Any) -> None:
    """Window and queue of one sender, in the upper and the lower axes."""
    for ax, curve in zip(pair, of, strict=True):
        times_s = np.add(curve.time_s, shift_s)
        ax.plot(times_s, curve.packets, color=COLORS[profile], label=NAMES[profile], **style)


def label_pair(upper: look.Axes, lower: look.Axes, bdp: float, buffer: int) -> None:
    """BDP and buffer."""
    look.level(upper, bdp, "BDP")
    look.level(lower, buffer, f"B = {buffer}")
    lower.set_ylim(0, buffer * 1.25)
