# SPDX-License-Identifier: MIT
"""Figure 1: window and queue of one flow from its first data segment, through slow start into congestion avoidance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from analysis.figures.common import GREY, Data, level
from analysis.papers import look
from analysis.papers.appenzeller2004 import sawteeth
from analysis.papers.appenzeller2004.profiles import COLORS, NAMES, PAPER, PROFILES
from analysis.papers.facts import Fact, exactly
from analysis.papers.packet_trace import PacketTrace
from analysis.papers.paper import PaperFigure
from analysis.papers.stored_runs import StoredRun, StoredRuns
from analysis.statistics import mean_interval

CAPTION = (
    "window and queue of one flow with B = BDP, in slow start (left) and on into congestion avoidance (right). In a "
    "round of slow start each ACK lets two packets go, so half the window queues."
)
BUFFER = 142
FIRST_WINDOW = 2  # segments, PROFILE=paper
SLOW_START_S, WHOLE_S = 1.6, 200.0


def prepare(runs: StoredRuns) -> Data:
    """Each sender's curves over the first WHOLE_S; for the paper's sender also slow start and its rounds."""
    data: Data = {"whole": {}, "slow_start": None, "rounds": [], "buffer": BUFFER, "bdp": None}
    for profile in PROFILES:
        trace = sawteeth.trace_of(runs, BUFFER, profile)
        if trace is None:
            continue
        began = trace.run.measure("slow start", Began, _began)
        data["whole"][profile] = began.whole
        data["bdp"] = trace.bdp
        if profile == PAPER:
            data |= {"slow_start": began.slow_start, "rounds": began.rounds}
    return data | {"provenance": runs.provenance()}


class Round(NamedTuple):
    """A round of slow start: packets of its window as predicted and as counted, and the deepest queue."""

    window: int
    packets: int
    deepest: int


class Began(NamedTuple):
    """One flow from its first data segment on. `rounds` holds only for a sender whose first window is FIRST_WINDOW."""

    whole: sawteeth.Curves
    slow_start: sawteeth.Curves
    rounds: list[Round]


def _began(run: StoredRun) -> Began:
    """Reads tables of the run."""
    trace = PacketTrace(run)
    began_ns = _first_data_ns(trace)
    end_ns = min(trace.end_ns, began_ns + round(WHOLE_S * 1e9))
    return Began(
        sawteeth.curves(trace, began_ns, end_ns),
        sawteeth.curves(trace, began_ns, began_ns + round(SLOW_START_S * 1e9)),
        _rounds(trace, began_ns),
    )


def _first_data_ns(trace: PacketTrace) -> int:
    """The arrival of the first data segment at the queue: the flow's third packet, after its SYN and its first ACK."""
    of_flow = np.flatnonzero(trace.queue["flow"] >= 0)
    return int(trace.queue["enqueue_mono_ns"][of_flow[2]])


def _rounds(trace: PacketTrace, began_ns: int) -> list[Round]:
    """Packets and deepest queue of each round with a window below the BDP. A round is one RTT from its first packet."""
    rounds = []
    window, start_ns = FIRST_WINDOW, began_ns
    while window < trace.bdp:
        # The next round begins with the first ACK: after the idle RTT and the packet's own transmission time
        end_ns = start_ns + trace.rtt_ns + round(trace.packet_ns)
        sent = trace.arrivals(start_ns, end_ns)
        depths = trace.queue_steps(start_ns, end_ns)[1]
        rounds.append(Round(window, sent.stop - sent.start, int(depths.max())))
        window, start_ns = 2 * window, end_ns
    return rounds


def draw(data: Data) -> look.Figure:
    """Windows above, queues beneath; slow start of the paper's sender left."""
    figure, axes = look.new_figure(look.PAGE_IN, 3.4, 2, 2, sharex="col", width_ratios=(1, 1.6))
    if data["bdp"] is None:
        return look.absent(*axes.flat)
    for row, what in enumerate(("window", "queue")):
        if data["slow_start"]:
            axes[row, 0].plot(*getattr(data["slow_start"], what), color=COLORS[PAPER])
        for profile, curve in data["whole"].items():
            axes[row, 1].plot(*getattr(curve, what), color=COLORS[profile], linewidth=0.7, label=NAMES[profile])
    for ax in axes[0]:
        level(ax, data["bdp"], "BDP", GREY, ":", look.LABEL_POINTS)
        ax.set_ylim(bottom=0)
    for ax in axes[1]:
        level(ax, data["buffer"], f"B = {data['buffer']}", GREY, ":", look.LABEL_POINTS)
        ax.set_ylim(0, data["buffer"] * 1.25)
        ax.set_xlabel("time since the first packet (s)")
        ax.set_xlim(left=0)
    axes[0, 0].set_ylabel("window\n(packets in flight)")
    axes[1, 0].set_ylabel("queue depth\n(packets)")
    axes[0, 1].legend(loc="upper right", frameon=False)
    figure.align_ylabels()
    return figure


def facts(data: Data) -> list[Fact]:
    """The packets and the deepest queue of each round of slow start."""
    rows = []
    for number, each in enumerate(data["rounds"], 1):
        window = each.window
        sent = f"round {number} of slow start: packets"
        rows.append(Fact(sent, "2, 4, 8 ...", window, exactly(each.packets), "packets"))
        deepest = f"round {number}: deepest queue"
        rows.append(Fact(deepest, "", window / 2 + 1, exactly(each.deepest), "packets"))
    if rows:
        apart = [abs(each.packets - each.window) for each in data["rounds"]]
        what = "rounds of slow start: packets more or less than 2, 4, 8 ..."
        rows.insert(0, Fact(what, "doubles each RTT", 0.0, mean_interval(apart), "packets"))
    return rows


FIGURE = PaperFigure("figure_01", CAPTION, (sawteeth.STEM,), prepare, draw, facts)
