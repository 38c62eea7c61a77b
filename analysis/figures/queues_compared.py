# SPDX-License-Identifier: MIT
"""The queue depths of several runs as distribution functions on one axis, and their queueing delays on another, a line
for each repetition. Not a figure of the report: the command `compare` draws it, from stored tables.
"""

from __future__ import annotations

import numpy as np

from analysis.figures import canvas, common
from analysis.figures.common import LINES, Data

STYLES = ("-", "--", "-.", ":")
MOST_DEEPER = 4.0  # a buffer above this multiple of the deepest queue is not drawn: it would squeeze the curves
Histogram = tuple[np.ndarray, np.ndarray]  # values, how often each


def prepare(name: str, buffer_packets: int, depths: list[Histogram], delays_ms: list[Histogram]) -> Data:
    """For each repetition of a run: depths in packets and the % of packets that found this depth or less, and the same
    of delays. Without `delays_ms` the run's delays are not known.
    """
    return {"name": name, "buffer": buffer_packets, "curves": _shares(depths), "delays": _shares(delays_ms)}


def _shares(histograms: list[Histogram]) -> list[Histogram]:
    return [(values, 100 * np.cumsum(counts) / counts.sum()) for values, counts in histograms if counts.sum()]


def draw(data: Data) -> common.Figure:
    """All runs on one axis. `data` has `facts`, and `runs`: the result of `prepare` for each run."""
    runs = data["runs"]
    has_delays = any(run["delays"] for run in runs)
    figure, axes = common.new_figure(data["facts"], 6.6 if has_delays else 3.8, 1 + has_delays)
    deepest = max((depths[-1] for run in runs for depths, _ in run["curves"]), default=1)
    buffers = [run["buffer"] for run in runs if run["buffer"] <= MOST_DEEPER * max(deepest, 1)]
    _curves(axes[0], runs, "curves", 1.03 * max((deepest, 1, *buffers)))
    for number, run in enumerate(runs):
        if run["buffer"] in buffers:
            axes[0].axvline(run["buffer"], color=LINES[number % len(LINES)], linewidth=0.9, linestyle=":")
    axes[0].set_xlabel("queue depth that a packet found on arrival (packets); dotted: buffer")
    canvas.legend(axes[0], columns=2, line=2)
    if has_delays:
        longest = max((delays[-1] for run in runs for delays, _ in run["delays"]), default=1)
        _curves(axes[1], runs, "delays", 1.03 * longest)
        unknown = [run["name"].split()[0] for run in runs if not run["delays"]]
        lack = f"; not kept: {', '.join(unknown)}" if unknown else ""
        axes[1].set_xlabel(f"queueing delay of packets that were not dropped (ms){lack}")
    return figure


def _curves(ax: common.Axes, runs: list[Data], name: str, right: float) -> None:
    for number, run in enumerate(runs):
        label = f"{run['name']}, buffer {run['buffer']}"
        for values, shares in run[name]:
            x, y = [0, *values, right], [0, *shares, 100]
            color, style = LINES[number % len(LINES)], STYLES[number % len(STYLES)]
            ax.step(x, y, where="post", color=color, linestyle=style, linewidth=1.1, label=label)
            label = ""
    ax.set_xlim(0, right)
    ax.set_ylim(0, 106)
    ax.set_ylabel("share of packets (%)")
