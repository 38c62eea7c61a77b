# SPDX-License-Identifier: MIT
"""Figure 9: the sum of all windows over time, and the queue, raised by the BDP: they are one curve while the link is
busy.
"""

from __future__ import annotations

import numpy as np

from analysis.figures.common import BLUE, GREY, ORANGE, Data, level
from analysis.papers import look
from analysis.papers.appenzeller2004 import aggregate
from analysis.papers.facts import Fact, exactly
from analysis.papers.packet_trace import PacketTrace
from analysis.papers.paper import PaperFigure
from analysis.papers.series import mean_bdp
from analysis.papers.stored_runs import StoredRuns

CAPTION = "the sum of the windows of 100 flows over time, and the queue, raised by the BDP."
POINTS = 3000  # of the grid on which both are compared


def prepare(runs: StoredRuns) -> Data:
    """Both on one grid over the measurement window."""
    selected = runs.select(aggregate.STEM)
    data: Data = {"provenance": runs.provenance(), "curves": None}
    if not selected:
        return data
    trace = PacketTrace(selected[0])
    grid = np.linspace(trace.start_ns, trace.end_ns, POINTS, endpoint=False).astype(np.int64)
    total = np.zeros(POINTS, dtype=np.int64)
    for flow in trace.flows:
        times, window = trace.window(flow["id"])
        total += window[np.maximum(np.searchsorted(times, grid, side="right") - 1, 0)]
    times, depth = trace.queue_steps(trace.start_ns - trace.longest_rtt_ns, trace.end_ns)
    queue = depth[np.maximum(np.searchsorted(times, grid, side="right") - 1, 0)]
    curves = {
        "time_s": (grid - trace.start_ns) / 1e9,
        "total": total,
        "queue": queue,
        "bdp": mean_bdp(selected[0]),
        "in_pipe": _in_pipe(trace),
    }
    return data | {"curves": curves | {"correlation": float(np.corrcoef(total, queue)[0, 1])}}


def _in_pipe(trace: PacketTrace) -> float:
    """Packets on the path but not in the queue, by Little's law: each flow's rate times its idle RTT, summed."""
    summary = trace.run.summary
    delays_ns = summary["spec"]["extra_delays_ns"] or [0] * len(trace.flows)
    idle_ns = zip(trace.flows, delays_ns, strict=True)
    return float(sum(flow["packets"] * (trace.rtt_ns + more) for flow, more in idle_ns) / 1e9 / summary["measured_s"])


def draw(data: Data) -> look.Figure:
    """One panel."""
    figure, ax = look.new_panel(look.PAGE_IN, 2.6)
    curves = data["curves"]
    if curves is None:
        return look.absent(ax)
    ax.plot(curves["time_s"], curves["total"], color=BLUE, label="sum of all windows")
    ax.plot(curves["time_s"], curves["queue"] + curves["bdp"], color=ORANGE, linewidth=0.6, label="queue + BDP")
    level(ax, curves["bdp"], "BDP", GREY, ":", look.LABEL_POINTS)
    ax.set_xlim(0, curves["time_s"][-1])
    ax.set_xlabel("time (s)")
    ax.set_ylabel("packets")
    ax.legend(loc="lower right", ncols=2, frameon=False)
    return figure


def facts(data: Data) -> list[Fact]:
    """Correlation, and the packets that are in flight but not in the queue."""
    curves = data["curves"]
    if curves is None:
        return []
    outside = float(np.mean(curves["total"] - curves["queue"]))
    return [
        Fact(
            "correlation of the sum of windows and the queue",
            "one curve",
            1.0,
            exactly(curves["correlation"]),
            "",
            headline=True,
        ),
        Fact(
            "mean of the sum of windows less the queue (predicted: flows' rates times their RTTs)",
            "BDP",
            curves["in_pipe"],
            exactly(outside),
            "packets",
            headline=True,
        ),
    ]


FIGURE = PaperFigure("figure_09", CAPTION, (aggregate.STEM,), prepare, draw, facts)
