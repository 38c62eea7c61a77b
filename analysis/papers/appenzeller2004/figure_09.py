# SPDX-License-Identifier: MIT
"""Figure 9: the sum of all windows over time, and the queue plus the BDP. Both coincide while the link is busy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from analysis.figures.common import BLUE, GREY, ORANGE, Data, level
from analysis.papers import look
from analysis.papers.appenzeller2004 import aggregate
from analysis.papers.appenzeller2004.profiles import NAMES, PROFILES
from analysis.papers.facts import Fact, exactly
from analysis.papers.packet_trace import PacketTrace
from analysis.papers.paper import PaperFigure
from analysis.papers.series import mean_bdp
from analysis.papers.stored_runs import StoredRun, StoredRuns

CAPTION = (
    "the sum of the windows (packets in flight) of 100 flows over time, and the queue, raised by the BDP; a panel for "
    "each sender."
)
POINTS = 3000  # times at which sum and queue are compared


def prepare(runs: StoredRuns) -> Data:
    """Sum and queue of each sender's first run."""
    selected = {profile: runs.select(aggregate.STEM, profile=profile) for profile in PROFILES}
    curves = {profile: _sender(of[0]) for profile, of in selected.items() if of}
    return {"provenance": runs.provenance(), "curves": curves}


class Sampled(NamedTuple):
    """Sum of windows and queue (packets) at POINTS times of the measurement window."""

    total: list[int]
    queue: list[int]


def _sender(run: StoredRun) -> Data:
    trace, sampled = PacketTrace(run), run.measure("sum of windows", Sampled, _sampled)
    total, queue = np.array(sampled.total), np.array(sampled.queue)
    return {
        "time_s": (_grid_ns(trace) - trace.start_ns) / 1e9,
        "total": total,
        "queue": queue,
        "bdp": mean_bdp(run),
        "in_pipe": run.measure("packets in the pipe", float, _in_pipe),
        "correlation": float(np.corrcoef(total, queue)[0, 1]),
    }


def _grid_ns(trace: PacketTrace) -> np.ndarray:
    return np.linspace(trace.start_ns, trace.end_ns, POINTS, endpoint=False).astype(np.int64)


def _sampled(run: StoredRun) -> Sampled:
    """Reads tables of the run."""
    trace = PacketTrace(run)
    grid = _grid_ns(trace)
    total = np.zeros(POINTS, dtype=np.int64)
    for flow in trace.flows:
        times, window = trace.window(flow["id"])
        total += window[np.maximum(np.searchsorted(times, grid, side="right") - 1, 0)]
    times, depth = trace.queue_steps(trace.start_ns - trace.longest_rtt_ns, trace.end_ns)
    queue = depth[np.maximum(np.searchsorted(times, grid, side="right") - 1, 0)]
    return Sampled(total.tolist(), queue.tolist())


def _in_pipe(run: StoredRun) -> float:
    """Packets on the path but not in the queue, by Little's law: each flow's rate times its base RTT, summed."""
    flows, delays_ns = run.summary["flows"], run.experiment.extra_delays_ns
    idle_ns = zip(flows, delays_ns or [0] * len(flows), strict=True)
    packets_ns = sum(flow["packets"] * (run["rtt_ns"] + more) for flow, more in idle_ns)
    return float(packets_ns / 1e9 / run.summary["measured_s"])


def draw(data: Data) -> look.Figure:
    """A panel for each sender."""
    if not data["curves"]:
        return look.absent(look.new_panel(look.PAGE_IN, 2.6)[1])
    rows = len(data["curves"])
    figure, axes = look.new_figure(look.PAGE_IN, 0.6 + 2.0 * rows, rows, sharex=True)
    for ax, (profile, curves) in zip(axes[:, 0], data["curves"].items(), strict=True):
        ax.plot(curves["time_s"], curves["total"], color=BLUE, label="sum of all windows")
        ax.plot(curves["time_s"], curves["queue"] + curves["bdp"], color=ORANGE, linewidth=0.6, label="queue + BDP")
        level(ax, curves["bdp"], "BDP", GREY, ":", look.LABEL_POINTS)
        ax.set_xlim(0, curves["time_s"][-1])
        ax.set_ylabel(f"{NAMES[profile]}\n(packets)")
    axes[0, 0].legend(loc="upper right", ncols=2, frameon=False)
    axes[-1, 0].set_xlabel("time (s)")
    figure.align_ylabels()
    return figure


def facts(data: Data) -> list[Fact]:
    """Correlation, and the packets that are in flight but not in the queue, by sender."""
    rows = []
    for profile, curves in data["curves"].items():
        who, outside = NAMES[profile], float(np.mean(curves["total"] - curves["queue"]))
        correlation = exactly(curves["correlation"])
        what = f"{who}: correlation of the sum of windows and the queue"
        rows.append(Fact(what, "one curve", 1.0, correlation, ""))
        what = f"{who}: mean of the sum of windows less the queue (predicted: flows' rates times their RTTs)"
        rows.append(Fact(what, "BDP", curves["in_pipe"], exactly(outside), "packets"))
    return rows


FIGURE = PaperFigure("figure_09", CAPTION, (aggregate.STEM,), prepare, draw, facts)
