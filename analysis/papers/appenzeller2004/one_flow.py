# SPDX-License-Identifier: MIT
"""One flow with B = BDP: from its first data segment through slow start into congestion avoidance (Figure 1), its
topology (Figure 2), and one loss (Figure 3). In the paper the sender pauses for (W_max / 2) / C after a loss. Linux
always uses proportional rate reduction (RFC 6937), which keeps sending at half the rate.
"""

from __future__ import annotations

from statistics import fmean
from typing import NamedTuple

import numpy as np

from analysis.arithmetic.statistics import mean_interval
from analysis.figures.common import BLACK, GREY, RED, Data
from analysis.papers import look
from analysis.papers.appenzeller2004 import one_trace
from analysis.papers.appenzeller2004.terms import NAMES, PAPER, PROFILES
from analysis.papers.facts import Fact, absent, exactly
from analysis.papers.packet_trace import PacketTrace
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns

BUFFER = 142


def _traces(runs: PaperRuns) -> dict[str, PacketTrace]:
    """The first run of each sender that has a valid one."""
    traces = {profile: one_trace.trace_of(runs, BUFFER, profile) for profile in PROFILES}
    return {profile: trace for profile, trace in traces.items() if trace is not None}


# Figure 1 -------------------------------------------------------------------------------------------------------------

CAPTION_1 = (
    "window and queue of one flow with B = BDP, in slow start (left) and on into congestion avoidance (right). In a "
    "round of slow start each ACK lets two packets go, so half the window queues."
)
FIRST_WINDOW = 2  # segments, PROFILE=paper
SLOW_START_S, WHOLE_S = 1.6, 200.0


class Round(NamedTuple):
    """A round of slow start: packets of its window as predicted and as counted, and the deepest queue."""

    window: int
    packets: int
    deepest: int


class Began(NamedTuple):
    """One flow from its first data segment on. `rounds` holds only for a sender whose first window is FIRST_WINDOW."""

    whole: one_trace.Curves
    slow_start: one_trace.Curves
    rounds: list[Round]


def _starts(runs: PaperRuns) -> Data:
    """Each sender's curves over the first WHOLE_S; slow start of the paper's sender: the packets and the deepest queue
    of each round.
    """
    traces = _traces(runs)
    began = {profile: trace.run.measure("slow start", Began, _began) for profile, trace in traces.items()}
    rounds, rows = began[PAPER].rounds if PAPER in began else [], []
    if rounds:
        apart = mean_interval(abs(of.packets - of.window) for of in rounds)
        what = "rounds of slow start: packets more or less than 2, 4, 8 ..."
        rows.append(Fact(what, "doubles each RTT", 0.0, apart, "packets"))
    for number, (window, packets, deepest) in enumerate(rounds, 1):
        what = f"round {number} of slow start: packets"
        rows.append(Fact(what, "2, 4, 8 ...", window, exactly(packets), "packets"))
        rows.append(Fact(f"round {number}: deepest queue", "", window / 2 + 1, exactly(deepest), "packets"))
    return {"began": began, "bdp": next((trace.bdp for trace in traces.values()), None), "facts": rows}


def _began(run: PaperRun) -> Began:
    """Reads tables of the run."""
    trace = PacketTrace(run)
    # The flow's first data segment is its third packet, after its SYN and its first ACK.
    of_flow = np.flatnonzero(trace.queue["flow"] >= 0)
    began_ns = int(trace.queue["enqueue_mono_ns"][of_flow[2]])
    end_ns = min(trace.end_ns, began_ns + round(WHOLE_S * 1e9))
    return Began(
        one_trace.curves(trace, began_ns, end_ns),
        one_trace.curves(trace, began_ns, began_ns + round(SLOW_START_S * 1e9)),
        _rounds(trace, began_ns),
    )


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


def _draw_starts(data: Data) -> look.Figure:
    """Windows above, queues beneath; slow start of the paper's sender left."""
    figure, axes = look.new_figure(look.PAGE_IN, 3.4, 2, 2, sharex="col", width_ratios=(1, 1.6))
    if data["bdp"] is None:
        return look.absent(*axes.flat)
    for profile, began in data["began"].items():
        if profile == PAPER:
            one_trace.draw_pair(axes[:, 0], profile, began.slow_start)
        one_trace.draw_pair(axes[:, 1], profile, began.whole, linewidth=0.7)
    for upper, lower in axes.T:
        one_trace.label_pair(upper, lower, data["bdp"], BUFFER)
        upper.set_ylim(bottom=0)
        lower.set_xlabel("time since the first packet (s)")
        lower.set_xlim(left=0)
    axes[0, 0].set_ylabel("window\n(packets in flight)")
    axes[1, 0].set_ylabel("queue depth\n(packets)")
    axes[0, 1].legend(loc="upper right", frameon=False)
    figure.align_ylabels()
    return figure


FIGURE_1 = PaperFigure("figure_01", CAPTION_1, (one_trace.STEM,), _starts, _draw_starts)

# Figure 2 -------------------------------------------------------------------------------------------------------------

CAPTION_2 = "one sender, one receiver, and a router with one buffer before the slow link. Values are those of our runs."
BOXES = (("sender", 0.02, 0.16), ("router", 0.42, 0.58), ("receiver", 0.84, 0.98))  # name, left and right edge
MIDDLE, HEIGHT = 0.55, 0.3


def _link(runs: PaperRuns) -> Data:
    """The link of a run (both senders have the same), and the measured idle RTT beside the configured RTT."""
    traces = (one_trace.trace_of(runs, BUFFER, profile) for profile in PROFILES)
    trace = next((trace for trace in traces if trace is not None), None)
    if trace is None:
        return {"trace": None, "facts": []}
    idle_rtt = exactly(trace.run.value("idle_rtt_ns", "median") / 1e9)
    return {"trace": trace, "facts": [Fact("idle RTT", "", trace.rtt_ns / 1e9, idle_rtt, "s")]}


def _draw_link(data: Data) -> look.Figure:
    """Boxes and arrows."""
    figure, ax = look.new_panel(look.COLUMN_IN, 1.3)
    trace = data["trace"]
    if trace is None:
        return look.absent(ax)
    look.sketch(ax)
    for name, left, right in BOXES:
        look.box(ax, left, right, MIDDLE, HEIGHT, name)
    rate = f"C = {1e9 / trace.packet_ns:.4g}\npackets/s"
    for (_, _, left), (_, right, _), text in ((*BOXES[:2], "no limit\nof rate"), (*BOXES[1:], rate)):
        ax.annotate("", (right, MIDDLE), (left, MIDDLE), arrowprops={"arrowstyle": "->", "linewidth": 0.8})
        ax.text((left + right) / 2, MIDDLE + 0.2, text, **look.CENTRED)
    ax.text(0.5, MIDDLE - 0.27, f"B = {trace.buffer} packets", **look.CENTRED)
    delay = f"two-way delay {trace.rtt_ns / 1e6:.4g} ms: BDP {trace.bdp:.4g} packets"
    ax.text(0.5, 0.08, delay, color=GREY, **look.CENTRED)
    return figure


FIGURE_2 = PaperFigure("figure_02", CAPTION_2, (one_trace.STEM,), _link, _draw_link)

# Figure 3 -------------------------------------------------------------------------------------------------------------

CAPTION_3 = (
    "the RTTs around one loss, B = BDP: the packet is dropped at t0 and sent again at t1, and the window has halved "
    "at t2. In the paper the sender is silent from t1 for (W_max / 2) / C = B / C. Linux's proportional rate reduction "
    "instead sends one packet for every two that are acknowledged, and the queue takes 2 B / C to empty."
)
BEFORE_RTTS, AFTER_RTTS = 0.5, 3.5  # drawn time around the drop, in longest RTTs
HALF_AND_A_BIT = 0.51  # share of the window at the drop: recovery ends at half of that window, give or take two packets


class Loss(NamedTuple):
    """One loss. t1 and t2 count from the drop; `silent_s` is the longest gap between arrivals from t1 to t2."""

    drop_ns: int
    t1_s: float
    t2_s: float
    silent_s: float


class Losses(NamedTuple):
    """The losses of a run that have a retransmission and a halved window, and the curves around the first of them."""

    losses: list[Loss]
    curves: one_trace.Curves | None


def _around(runs: PaperRuns) -> Data:
    """For each sender: the curves around the first loss, and means over the run's losses, which are nearly equal."""
    senders: dict[str, Data] = {}
    traces, rows = _traces(runs), []
    why = "no pause: with PRR a packet leaves for every two acknowledged, so the reduction takes twice as long"
    for profile, who in NAMES.items():
        trace = traces.get(profile)
        measured = None if trace is None else trace.run.measure("losses", Losses, _losses)
        if trace is None or measured is None or measured.curves is None:
            senders[profile] = {"absent": f"{who}: no valid run with a loss"}
            rows.append(absent(senders[profile]["absent"]))
            continue
        before_ns, after_ns = _drawn_ns(trace)
        ends = {"shift_s": -before_ns / 1e9, "end_s": after_ns / 1e9}
        senders[profile] = {"first": measured.losses[0], "curves": measured.curves, "bdp": trace.bdp, **ends}
        times = zip(*((loss.t1_s, loss.t2_s - loss.t1_s, loss.silent_s) for loss in measured.losses), strict=True)
        t1, t2, silent = (exactly(fmean(values)) for values in times)
        full_rtt_s, packet_s = trace.longest_rtt_ns / 1e9, trace.packet_ns / 1e9
        rows += [
            Fact(f"{who}: from t0 to t1", "one RTT with a full queue", full_rtt_s, t1, "s"),
            Fact(f"{who}: from t1 to t2", "a pause of B / C = 0.142 s", 2 * BUFFER * packet_s, t2, "s", why),
            Fact(f"{who}: longest silence between t1 and t2", "0.142 s", 2 * packet_s, silent, "s"),
        ]
    return {"senders": senders, "buffer": BUFFER, "facts": rows}


def _losses(run: PaperRun) -> Losses:
    """Reads tables of the run."""
    trace = PacketTrace(run)
    losses = [
        Loss(of.drop_ns, of.known_ns / 1e9, (of.known_ns + of.halved_ns) / 1e9, of.silent_ns / 1e9)
        for of in trace.answered_losses(HALF_AND_A_BIT)
    ]
    if not losses:
        return Losses([], None)
    drop_ns = losses[0].drop_ns
    before_ns, after_ns = _drawn_ns(trace)
    return Losses(losses, one_trace.curves(trace, drop_ns - before_ns, drop_ns + after_ns))


def _drawn_ns(trace: PacketTrace) -> tuple[int, int]:
    """The drawn time before and after the drop."""
    return round(BEFORE_RTTS * trace.longest_rtt_ns), round(AFTER_RTTS * trace.longest_rtt_ns)


def _draw_around(data: Data) -> look.Figure:
    """Window above, queue beneath; 0 is the drop of each sender's first loss."""
    figure, upper, lower, sender = one_trace.draw(data, look.COLUMN_IN, {"loc": "lower left"})
    if sender is None:
        return figure
    first = sender["first"]
    for at, text in ((0.0, "t0"), (first.t1_s, "t1"), (first.t2_s, "t2")):
        for ax in (upper, lower):
            ax.axvline(at, color=RED if not at else BLACK, linewidth=0.6, linestyle=":")
        look.note(upper, text, (at, 1.02), (2, 4), xycoords=("data", "axes fraction"))
    lower.set_xlim(sender["shift_s"], sender["end_s"])
    lower.set_xlabel("time since the drop (s)")
    return figure


FIGURE_3 = PaperFigure("figure_03", CAPTION_3, (one_trace.STEM,), _around, _draw_around)
