# SPDX-License-Identifier: MIT
"""Figures 4, 5 and 6: the sawteeth of one long flow, from its packets, beside the fluid model, with B equal to, below
and above the BDP.
"""

from __future__ import annotations

import itertools
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from analysis.figures.common import BLACK, Data
from analysis.papers import look
from analysis.papers.appenzeller2004 import one_trace
from analysis.papers.appenzeller2004.terms import NAMES, PAPER
from analysis.papers.facts import Fact, absent, exactly
from analysis.papers.packet_trace import PacketTrace
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.theory import sawtooth

PAIR = 2  # packets: after proportional rate reduction packets come in pairs, even while the window is below the BDP
SPAN_S = 92.0  # longest drawn time; the axes of the paper's Figure 5 span 90 s


class Sawtooth(NamedTuple):
    """One period, from a loss to the next. Windows are packets in flight."""

    start_ns: int
    period_s: float
    peak_packets: int
    trough_packets: int
    shallowest_packets: int


def sawteeth(trace: PacketTrace) -> list[Sawtooth]:
    """Every whole period within the measurement window."""
    times, window = trace.window(trace.flows[0]["id"])
    drops = [start for start, _, _ in trace.losses()]
    teeth = []
    for start, end in itertools.pairwise(drops):
        inside = window[slice(*np.searchsorted(times, (start, end)))]
        depths = trace.queue_steps(start, end)[1]
        period_s = (end - start) / 1e9
        teeth.append(Sawtooth(start, period_s, int(inside.max()), int(inside.min()), int(depths.min())))
    return teeth


def share_without_queue(trace: PacketTrace) -> float:
    """Share of the measurement window in which the queue holds at most PAIR packets."""
    times, depth = trace.queue_steps(trace.start_ns, trace.end_ns)
    held_ns = np.diff(np.append(times, trace.end_ns))
    return float(held_ns[depth <= PAIR].sum() / (trace.end_ns - trace.start_ns))


def model(trace: PacketTrace, first_s: float, last_s: float) -> Data:
    """The fluid sawtooth of the paper's equations (9) and (10): periods from `first_s` on, cut at `last_s`."""
    capacity = 1e9 / trace.packet_ns
    lowest, highest = sawtooth.extremes(trace.bdp, trace.buffer)
    period_s = sawtooth.period(capacity, trace.bdp, trace.buffer)
    at = np.linspace(0, period_s, 200)
    window = np.array([sawtooth.window(float(t), capacity, trace.bdp, lowest) for t in at])
    number = max(1, int((last_s - first_s) // period_s) + 1)
    starts = first_s + period_s * np.arange(number)
    times = (starts[:, None] + at).ravel()
    kept = times <= last_s
    windows = np.tile(window, number)
    return {
        "times_s": times[kept], "window": windows[kept], "queue": np.maximum(windows - trace.bdp, 0)[kept],
        "period_s": period_s, "lowest": lowest, "highest": highest,
        "utilization": sawtooth.mean_utilization(trace.bdp, trace.buffer),
        "without_queue": max(trace.bdp - lowest, 0.0) * trace.bdp / capacity / period_s,
    }  # fmt: skip


def prepare(buffer_packets: int, printed: dict[str, str], runs: PaperRuns) -> Data:
    """The curves of both senders from a loss on, and means over a run's sawteeth, which are nearly equal. Utilization
    and the time without a queue are of the window.
    """
    senders: dict[str, Data] = {}
    rows = []
    for profile, who in NAMES.items():
        trace = one_trace.trace_of(runs, buffer_packets, profile)
        measured = None if trace is None else trace.run.measure("sawteeth", Teeth, _teeth)
        if trace is None or measured is None or measured.curves is None:
            why = "no valid run" if trace is None else "no whole sawtooth in the measurement window"
            senders[profile] = {"absent": f"{who}: {why}"}
            rows.append(absent(f"{who}: {why}"))
            continue
        teeth, end_s = measured.teeth, _span_ns(trace, measured.teeth[0].start_ns) / 1e9
        fluid = model(trace, trace.longest_rtt_ns / 1e9, end_s)
        senders[profile] = {"curves": measured.curves, "model": fluid, "bdp": trace.bdp, "end_s": end_s}
        for what, predicted, values, unit in (
            ("period", fluid["period_s"], [tooth.period_s for tooth in teeth], "s"),
            ("largest window", fluid["highest"], [tooth.peak_packets for tooth in teeth], "packets"),
            ("least window", fluid["lowest"], [tooth.trough_packets for tooth in teeth], "packets"),
            ("least queue depth", max(fluid["lowest"] - trace.bdp, 0.0), [tooth.shallowest_packets for tooth in teeth],
             "packets"),
        ):  # fmt: skip
            rows.append(Fact(f"{who}: {what}", printed.get(what, ""), predicted, exactly(fmean(values)), unit))
        said, used = printed.get("utilization", ""), exactly(trace.run["utilization_mean"])
        rows.append(Fact(f"{who}: utilization", said, fluid["utilization"], used, "", headline=profile == PAPER))
        share, what = exactly(100 * measured.without_queue), f"{who}: time with at most two packets in the queue"
        rows.append(Fact(what, printed.get("empty", ""), 100 * fluid["without_queue"], share, "%"))
    return {"senders": senders, "buffer": buffer_packets, "facts": rows}


class Teeth(NamedTuple):
    """The sawteeth of one flow, the curves from the first of them on, and the share of time without a queue."""

    teeth: list[Sawtooth]
    curves: one_trace.Curves | None
    without_queue: float


def _teeth(run: PaperRun) -> Teeth:
    """Reads tables of the run."""
    trace = PacketTrace(run)
    teeth = sawteeth(trace)
    start_ns = teeth[0].start_ns if teeth else 0
    curves = one_trace.curves(trace, start_ns, start_ns + _span_ns(trace, start_ns)) if teeth else None
    return Teeth(teeth, curves, share_without_queue(trace))


def _span_ns(trace: PacketTrace, start_ns: int) -> int:
    """The drawn time from a loss on."""
    return min(trace.end_ns - start_ns, round(SPAN_S * 1e9))


def draw(data: Data) -> look.Figure:
    """Windows above, queues beneath. The model starts one longest RTT after the loss, when the sender learns of it."""
    legend: dict[str, Any] = {"loc": "lower right", "ncols": 3}
    figure, upper, lower, sender = one_trace.draw(data, look.PAGE_IN, legend, height_ratios=(1.3, 1))
    if sender is None:
        return figure
    fluid = sender["model"]
    upper.plot(fluid["times_s"], fluid["window"], "--", color=BLACK, linewidth=0.7, label="fluid model")
    lower.plot(fluid["times_s"], fluid["queue"], "--", color=BLACK, linewidth=0.7)
    upper.legend(frameon=False, **legend)
    lower.set_xlim(0, max(sender["end_s"] for sender in look.split(data["senders"])[0].values()))
    lower.set_xlabel("time since a loss (s)")
    return figure


def _figure(name: str, buffer_packets: int, caption: str, printed: dict[str, str]) -> PaperFigure:
    """The figure of one buffer. `printed` maps the name of a fact ("period", "empty") to the paper's words."""
    return PaperFigure(name, caption, (one_trace.STEM,), partial(prepare, buffer_packets, printed), draw)


FIGURE_4 = _figure(
    "figure_04", 142,
    "one flow with B = BDP (142 packets, 1000 packets/s): the queue just empties after a loss, and the link stays "
    "busy. Dashed: the fluid model of equations (9) and (10), delayed by the longest RTT, the time until the sender "
    "learns of a loss.",
    {"period": "1.5 B²/C", "least queue depth": "just empties", "utilization": "the link is always busy"},
)  # fmt: skip
FIGURE_5 = _figure(
    "figure_05", 100,
    "one flow with B = 100 packets, 0.7 BDP: the window falls below the BDP, so the queue is empty and the link idle "
    "for a while after each loss.",
    {"empty": "empty for some time", "utilization": "below 100 %"},
)  # fmt: skip
FIGURE_6 = _figure(
    "figure_06", 180,
    "one flow with B = 180 packets, 1.27 BDP: the queue never empties, and every packet waits longer.",
    {"least queue depth": "never empty", "utilization": "full"},
)  # fmt: skip
