# SPDX-License-Identifier: MIT
"""What the user's own policy writes into each postcard, over time: its drop probability, its state, ..."""

from __future__ import annotations

from analysis.figures import common
from analysis.figures.common import BLUE, Data
from analysis.read.columns import parts
from analysis.read.postcards import POLICY_VALUE


def prepare(a: common.Analysis) -> Data:
    """The least and the largest value in each column of pixels, by the packets' arrivals."""
    facts = common.run_facts(a)
    values = common.Envelope(0, facts["end_s"])
    for cards in parts(a.queue, "enqueue_mono_ns", POLICY_VALUE):
        values.add(common.seconds(a, cards["enqueue_mono_ns"]), cards[POLICY_VALUE])
    return {"facts": facts, "values": values.line()}


def draw(data: Data) -> common.Figure:
    from matplotlib.ticker import EngFormatter

    figure, (ax,) = common.new_figure(data["facts"], 2.6)
    common.shade_warmup(ax, data["facts"])
    times, values = data["values"]
    if len(times):
        ax.plot(times, values, color=BLUE, linewidth=0.9)
    else:
        common.say(ax, "no packet came to the queue")
    ax.set_xlim(0, data["facts"]["end_s"])
    ax.set_ylim(bottom=0)
    ax.set_xlabel("time (s)")
    ax.yaxis.set_major_formatter(EngFormatter())
    ax.set_ylabel("value of the policy")  # the figure's head has its name, which may be long
    return figure
