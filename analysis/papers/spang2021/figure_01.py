# SPDX-License-Identifier: MIT
"""Figure 1: window and queue of one Reno flow around one loss.

The dashed line is the fluid model. A loss happens at W = BDP + B. The sender learns of the loss one RTT later: a base
RTT if packets are dropped at departure, an RTT with a full queue if they are dropped on arrival. From then on the
sender sends one packet for every two acknowledged (section 3.1) until the window is half. The queue is the window minus
the BDP.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.arithmetic.statistics import mean_interval
from analysis.figures import algorithms
from analysis.figures.common import BLACK, RED, Data
from analysis.papers import look
from analysis.papers.facts import Fact
from analysis.papers.packet_trace import PacketTrace, latest
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.series import IS_ONE_BDP
from analysis.theory.single_flow import DECREASE, queue_length

CAPTION = (
    "one Reno flow, B = BDP, around one loss: the window (top), which PRR lowers bit by bit, and the queue (bottom)."
)
SWEEPS = ("single-flow",)
CC = "reno"
NEEDS = ("utilization_p01", "in_flight_mean_packets")  # null in runs without packets or windows
HALF = 0.5  # window after a loss / window before it
# A window from sequence numbers counts SACKed packets until recovery ends; then it falls to half plus a few packets
HALF_IN_SEQUENCE = 0.6
STEPS = ("window", "queue", "drops", "again", "model")  # the arrays of `_zoom`
BEFORE_RTTS, AFTER_RTTS = 0.7, 3.6  # drawn time before and after the first drop, in units of the longest RTT


def prepare(runs: PaperRuns) -> Data:
    """The steps around one loss of the first valid run, and the losses of each run (`_losses`)."""
    selected = runs.select(SWEEPS[0], IS_ONE_BDP, needs=NEEDS, cc=CC, flows=1)
    losses = [run.measure("losses of Figure 1", Data, _losses) for run in selected]
    rows = _facts([run for run in losses if run["each"]])
    if not losses or not losses[0]["each"]:
        absent = "no loss in the measurement window" if losses else runs.absence(SWEEPS[0], CC)
        return {"zoom": None, "absent": absent, "facts": rows}
    zoom = selected[0].measure("steps of Figure 1", Data, lambda run: _zoom(PacketTrace(run), losses[0]["each"]))
    return {"zoom": zoom | {name: np.array(zoom[name]) for name in STEPS}, "facts": rows}


def _losses(run: PaperRun) -> Data:
    """Each loss of a run that the sender answered as Reno does (PacketTrace.answered_losses)."""
    trace = PacketTrace(run)
    half = HALF if trace.counts_packets else HALF_IN_SEQUENCE
    model = {
        "bdp": trace.bdp, "buffer": trace.buffer, "news_ns": trace.news_ns, "packet_ns": trace.packet_ns,
        "counts_packets": trace.counts_packets,
    }  # fmt: skip
    return {"each": [loss._asdict() for loss in trace.answered_losses(half)], "model": model}


def _zoom(trace: PacketTrace, each: list[Data]) -> Data:
    """Steps around the second loss, which surely has room before it, in ms since its first drop; around the first loss
    if there is no second loss.
    """
    drop = each[min(1, len(each) - 1)]["drop_ns"]
    start = drop - round(BEFORE_RTTS * trace.longest_rtt_ns)
    end = drop + round(AFTER_RTTS * trace.longest_rtt_ns)
    flow = trace.flows[0]["id"]

    def ms(steps: np.ndarray) -> np.ndarray:
        return np.array([(steps[0] - drop) / 1e6, steps[1]], dtype=np.float64)

    drops, _, depths = trace.drops(start, end)
    again, _ = trace.retransmissions(start, end)
    return {
        "span_ms": ((start - drop) / 1e6, (end - drop) / 1e6),
        "window": ms(trace.window_steps(flow, start, end)),
        "queue": ms(trace.queue_steps(start, end)),
        "drops": ms(np.array([drops, depths])),
        "again": ms(np.array([again, latest(again, *trace.window(flow))])),
        "model": _model(trace, (end - drop) / 1e6),
        "counts_packets": trace.counts_packets,
        "bdp": trace.bdp,
        "buffer": trace.buffer,
        "rtt_ms": trace.rtt_ns / 1e6,
        "full_rtt_ms": trace.longest_rtt_ns / 1e6,
    }


def _model(trace: PacketTrace, end_ms: float) -> np.ndarray:
    """(ms, window) of the fluid model's corners: full, loss known, halved, then one packet more each RTT."""
    top = trace.bdp + trace.buffer
    known_ms, drained_ms = trace.news_ns / 1e6, top * trace.packet_ns / 1e6
    half = DECREASE[CC] * top
    halved_ms = known_ms + drained_ms
    grown = half + (end_ms - halved_ms) / (trace.rtt_ns / 1e6)
    return np.array([[0, known_ms, halved_ms, end_ms], [top, top, half, grown]])


def draw(data: Data) -> look.Figure:
    """Window above, queue beneath, on one time axis; 0 is the drop."""
    figure, axes = look.new_figure(look.COLUMN_IN, 3.5, 2, sharex=True, height_ratios=(1.15, 1))
    upper, lower = axes[:, 0]
    zoom = data["zoom"]
    if zoom is None:
        return look.absent(upper, lower, text=data["absent"])
    bdp, buffer = zoom["bdp"], zoom["buffer"]
    _draw_window(upper, zoom)
    _draw_queue(lower, zoom)
    highest = bdp + buffer if zoom["counts_packets"] else zoom["window"][1].max()
    upper.set_ylim(0, highest * 1.18)
    lower.set_ylim(0, buffer * 1.18)
    lower.set_xlim(*zoom["span_ms"])
    rtts = f"RTT {zoom['rtt_ms']:.3g} ms, {zoom['full_rtt_ms']:.3g} ms at full queue"
    lower.set_xlabel(f"time since the drop (ms); {rtts}")
    figure.align_ylabels()
    return figure


def _draw_window(ax: Any, zoom: Data) -> None:
    bdp, buffer, blue = zoom["bdp"], zoom["buffer"], algorithms.color(CC)
    ax.step(*zoom["window"], where="post", color=blue)
    ax.plot(*zoom["model"], "--", color=BLACK, linewidth=0.7)
    ax.plot(*zoom["again"], "o", color=BLACK, markerfacecolor="white", markeredgewidth=0.8, zorder=4)
    look.level(ax, bdp, "BDP")
    look.level(ax, bdp + buffer, "BDP + B")
    sent_ms, at = zoom["again"][:, 0]
    look.note(ax, "sent again", (sent_ms, at), (5, 5))
    middle = ((zoom["model"][0][1] + zoom["model"][0][2]) / 2, bdp + 0.5 * buffer)
    if zoom["counts_packets"]:
        look.note(ax, "PRR: one packet sent\nfor two acknowledged", middle, (12, 11))
    look.note(ax, "fluid\nmodel", middle, (-8, -8), ha="right")
    ax.set_ylabel(f"window\n({'packets in flight' if zoom['counts_packets'] else 'snd_nxt − snd_una, packets'})")


def _draw_queue(ax: Any, zoom: Data) -> None:
    bdp, buffer = zoom["bdp"], zoom["buffer"]
    ax.step(*zoom["queue"], where="post", color=algorithms.color(CC), linewidth=0.6)
    times, window = zoom["model"]
    ax.plot(times, [queue_length(w, bdp, buffer) for w in window], "--", color=BLACK, linewidth=0.7)
    ax.plot(*zoom["drops"], "x", color=RED, markersize=5, markeredgewidth=1.2, zorder=4, clip_on=False)
    look.note(ax, "dropped", (zoom["drops"][0].mean(), buffer), (0, 7), ha="center", color=RED)
    look.level(ax, buffer, f"B = {buffer}")
    ax.set_ylabel("queue depth\n(packets)")


def _facts(kept: list[Data]) -> list[Fact]:
    """Medians over each run's losses; intervals over runs."""
    if not kept:
        return []
    model = kept[0]["model"]
    bdp, buffer, top = model["bdp"], model["buffer"], model["bdp"] + model["buffer"]
    half = DECREASE[CC] * top

    def measured(key: str, scale: float = 1.0) -> Any:
        return mean_interval(float(np.median([loss[key] for loss in run["each"]])) / scale for run in kept)

    news_ms, drain_ms = model["news_ns"] / 1e6, top * model["packet_ns"] / 1e6
    two_us = 2 * model["packet_ns"] / 1e3
    known = (
        f"an ACK of a packet behind the dropped one comes {news_ms:.3g} ms later at the least, and two more packets "
        "must be acknowledged; the paper's number is read off its figure"
    )
    in_sequence = "the window is measured in sequence numbers, which only the end of recovery moves"
    prr = "" if model["counts_packets"] else in_sequence
    return [
        Fact("window at the drop", "BDP + B", top, measured("before"), "packets"),
        Fact("window after recovery", "half of it", half, measured("settled"), "packets"),
        Fact("least window", "half of it", half, measured("least"), "packets"),
        Fact("least queue depth", "nearly empty", queue_length(half, bdp, buffer), measured("queue"), "packets"),
        Fact("from the drop until it is known", "about 1.5 ms", news_ms, measured("known_ns", 1e6), "ms", known),
        Fact("from then until the window is half", "2 ms", drain_ms, measured("halved_ns", 1e6), "ms", prr),
        Fact("longest silence meanwhile", "PRR never stops sending", two_us, measured("silent_ns", 1e3), "us"),
    ]


FIGURE = PaperFigure("figure_01", CAPTION, SWEEPS, prepare, draw)
