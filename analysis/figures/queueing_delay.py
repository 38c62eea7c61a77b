# SPDX-License-Identifier: MIT
"""Cumulative distribution of the queueing delay, which runs from a packet's arrival to the departure of its last bit.
Dropped packets do not count.
"""

from __future__ import annotations

import numpy as np

from analysis.figures import common
from analysis.figures.common import BLACK, BLUE, LABEL_RED, Data

POINTS = 500
PERCENTS = (50, 99)


def prepare(a: common.Analysis) -> Data:
    """Delays in ms at POINTS equal steps of the distribution function."""
    from analysis.arithmetic.counted import percentiles
    from analysis.measure.metrics import delays

    shares = np.linspace(0, 100, POINTS)
    cuts = np.array(percentiles(lambda: delays(a.queue, a.window), [*shares, *PERCENTS])) / 1e6
    spec = a.run.experiment
    # How long a full buffer waits has no single answer if the rate changes.
    full_ms = None if spec.rate_changes else spec.buffer_packets * spec.wire_bytes * 8e3 / spec.rate_bps
    return {
        "facts": common.run_facts(a), "shares": shares, "delays": cuts[:POINTS], "named": cuts[POINTS:],
        "full_ms": full_ms,
    }  # fmt: skip


def draw(data: Data) -> common.Figure:
    """The share of packets with at most each delay."""
    figure, (ax,) = common.new_figure(data["facts"], 3.4)
    ax.set_xlabel("queueing delay (ms)")
    ax.set_ylabel("share of packets (%)")
    if not len(data["delays"]):
        common.say(ax, "no packet of the measurement window left the queue")
        return figure
    ax.plot(data["delays"], data["shares"], color=BLUE, linewidth=1.3, drawstyle="steps-post")
    most = float(data["delays"][-1])
    is_near = data["full_ms"] is not None and data["full_ms"] <= most * 1.5
    ax.set_xlim(0, max(1.25 * max(most, data["full_ms"] if is_near else 0), 1e-6))
    ax.set_ylim(0, 106)
    if is_near:
        ax.axvline(data["full_ms"], color=BLACK, linewidth=0.9, linestyle="--")
        ax.annotate(
            f"full buffer\n{data['full_ms']:.4g} ms", (data["full_ms"], 0.1), xycoords=("data", "axes fraction"),
            xytext=(5, 0), textcoords="offset points", va="center", fontsize=8,
        )  # fmt: skip
    # A label beside its point rarely covers the curve: the function rises, except in a long tail.
    for percent, value in zip(PERCENTS, data["named"], strict=True):
        ax.plot([value], [percent], "o", color=LABEL_RED, markersize=4, clip_on=False)
        name = "median" if percent == 50 else f"p{percent}"
        common.beside(ax, value, percent / 106, f"{name} {value:.4g} ms", LABEL_RED)
    return figure
