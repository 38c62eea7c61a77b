# SPDX-License-Identifier: MIT
"""The queue depths of two runs as distribution functions on one axis, a line for each repetition. Not a figure of the
report: the command `compare` draws it, from stored distributions.
"""

from __future__ import annotations

import numpy as np

from analysis.figures import canvas, common
from analysis.figures.common import BLUE, RED, Data

COLORS = (BLUE, RED)
STYLES = ("-", "--")
MOST_DEEPER = 4.0  # a buffer above this multiple of the deepest queue is not drawn: it would squeeze the curves


def prepare(name: str, buffer_packets: int, histograms: list[tuple[np.ndarray, np.ndarray]]) -> Data:
    """For each repetition of a run: depths in packets, and the % of packets that found this depth or less."""
    curves = [(depths, 100 * np.cumsum(counts) / counts.sum()) for depths, counts in histograms if counts.sum()]
    return {"name": name, "buffer": buffer_packets, "curves": curves}


def draw(data: Data) -> common.Figure:
    """Both runs on one axis. `data` has `facts`, and `runs`: the result of `prepare` for each run."""
    figure, (ax,) = common.new_figure(data["facts"], 3.8)
    deepest = max((depths[-1] for run in data["runs"] for depths, _ in run["curves"]), default=1)
    buffers = [run["buffer"] for run in data["runs"] if run["buffer"] <= MOST_DEEPER * max(deepest, 1)]
    right = 1.03 * max((deepest, 1, *buffers))
    for run, color, style in zip(data["runs"], COLORS, STYLES, strict=True):
        label = f"{run['name']}, buffer {run['buffer']}"
        for depths, shares in run["curves"]:
            x, y = [0, *depths, right], [0, *shares, 100]
            ax.step(x, y, where="post", color=color, linestyle=style, linewidth=1.1, label=label)
            label = ""
        if run["buffer"] in buffers:
            ax.axvline(run["buffer"], color=color, linewidth=0.9, linestyle=":")
    ax.set_xlim(0, right)
    ax.set_ylim(0, 106)
    ax.set_xlabel("queue depth that a packet found on arrival (packets); dotted: buffer")
    ax.set_ylabel("share of packets (%)")
    canvas.legend(ax, columns=2, line=2)
    return figure
