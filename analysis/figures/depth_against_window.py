# SPDX-License-Identifier: MIT
"""Queue depth against the sum of all windows, at the same moments (a phase plot). Packets in flight beyond the BDP are
in the queue: points lie on depth = window - BDP, and off this line where bursts or losses are.
"""

from __future__ import annotations

import numpy as np

from analysis.figures import common
from analysis.figures.common import BLUE, GREY, Data

MOST_POINTS = 3000


def prepare(a: common.Analysis) -> Data:
    """At most MOST_POINTS trace records of the measurement window, evenly chosen: the sum of all windows then, and the
    depth that the latest packet until then found.
    """
    first, last = a.windows.until(a.window.start_ns), a.windows.until(a.window.end_ns)
    chosen = np.unique(np.linspace(first, last - 1, MOST_POINTS).astype(np.int64))
    chosen = chosen[(chosen >= first) & (chosen < last)]
    before = np.searchsorted(a.queue["enqueue_mono_ns"], a.windows.mono_ns[chosen], side="right") - 1
    known = before >= 0
    return {
        "facts": common.run_facts(a),
        "window": a.windows.in_flight_packets[chosen][known],
        "depth": a.queue["depth_packets"][before[known]],
    }


def draw(data: Data) -> common.Figure:
    """Points, and the line of the fluid model."""
    facts = data["facts"]
    figure, (ax,) = common.new_figure(facts, 3.8)
    ax.set_xlabel(f"sum of all windows, packets in flight ({facts['unit'].name})")
    ax.set_ylabel(f"queue depth ({facts['unit'].name})")
    if not len(data["window"]):
        common.say(ax, "no trace of the windows in the measurement window")
        return figure
    ax.plot(data["window"], data["depth"], ".", color=BLUE, markersize=2, alpha=0.5, rasterized=True)
    most = float(max(data["window"].max(), facts["bdp"] + facts["buffer"]))
    top = max(facts["buffer"], float(data["depth"].max())) * 1.12
    if "rate" not in facts:  # with a rate that changes there is no one BDP
        ax.plot([0, facts["bdp"], facts["bdp"] + top], [0, 0, top], color=GREY, linewidth=1, linestyle="--",
                label="depth = window - BDP")  # fmt: skip
        ax.legend(loc="upper left", frameon=False, fontsize=8)
    ax.set_xlim(min(float(data["window"].min()), facts["bdp"]) * 0.95, most * 1.03)
    ax.set_ylim(0, top)
    common.level(ax, facts["buffer"], "buffer")
    common.in_unit(ax.xaxis, facts)
    common.in_unit(ax.yaxis, facts)
    return figure
