# SPDX-License-Identifier: MIT
"""Figure 7: windows, rates, queue and RTT of two flows that started apart; and how often both flows lose together.

Equations (1) to (3): RTT = (BDP + Q) / C, and the rates W_i / RTT add up to C while the queue is not empty.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from analysis.arithmetic.statistics import mean_interval
from analysis.figures.common import BLUE, GREEN, GREY, ORANGE, Data
from analysis.papers import look
from analysis.papers.appenzeller2004.terms import LINUX, NAMES, PAPER, by_profile, synchronization
from analysis.papers.facts import Fact, absent
from analysis.papers.packet_trace import PacketTrace, latest
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns

CAPTION = (
    "two flows with B = BDP (142 packets), started apart. The paper's flows 'quickly synchronize': both lose whenever "
    "the queue is full. From above: windows, rates over an RTT, queue, RTT."
)
STEM = "two-flows"
SPAN_S = 120.0
FLOW_COLORS = (BLUE, ORANGE)


def prepare(runs: PaperRuns) -> Data:
    """The curves of the paper's sender, or else of Linux's; how often both flows lose together, S, and utilization over
    all runs of a sender that have an excursion.
    """
    selected, rows = by_profile(runs, STEM), []
    for profile, of in selected.items():
        # Stored as a measure although no table is read: an archive skips a run that kept its tables but stored no
        # measure.
        each = [run.measure("together", Together, _together) for run in of]
        lossy, who = [run for run in each if run.excursions], NAMES[profile]
        if not lossy:
            rows.append(absent(f"{who}: no valid run with a loss"))
            continue
        what = f"{who}: excursions in which both flows lose (of {sum(run.excursions for run in lossy)})"
        share = mean_interval(run.share for run in lossy)
        rows.append(Fact(what, '"quickly synchronize"', 1.0, share, "of all", headline=True))
        if together := mean_interval(run.synchronization for run in lossy):
            rows.append(Fact(f"{who}: synchronization S", "", 1.0, together, ""))
        used = mean_interval(run.utilization for run in lossy)
        rows.append(Fact(f"{who}: utilization", "", None, used, ""))
    shown = next((selected[profile][0] for profile in (PAPER, LINUX) if selected[profile]), None)
    return {"curves": None if shown is None else _curves(shown), "facts": rows}


class Together(NamedTuple):
    """One run: excursions of the queue to its limit, the share of them in which both flows lose, S, and utilization."""

    excursions: int
    share: float
    synchronization: float | None
    utilization: float


def _together(run: PaperRun) -> Together:
    losers, counts = run.distribution("flows_signalled_per_excursion")
    total = int(counts.sum())
    share = float(counts[losers == 2].sum() / total) if total else 0.0
    return Together(total, share, synchronization(run), run["utilization_mean"])


class Sampled(NamedTuple):
    """Windows, rates and queue on a grid of one base RTT. The grid begins at the first loss in the measurement window,
    or at the start of the measurement window if there is no loss, and covers at most SPAN_S. Windows and rates have a
    list for each flow. Drops are (seconds since the grid's start, index of the flow).
    """

    windows: list[list[int]]
    rates: list[list[float]]
    queue: list[int]
    drops: list[tuple[float, int]]


def _curves(run: PaperRun) -> Data:
    trace, sampled = PacketTrace(run), run.measure("two flows", Sampled, _sampled)
    return sampled._asdict() | {
        "time_s": np.arange(len(sampled.queue)) * trace.rtt_ns / 1e9,
        "rtt_ms": (trace.bdp + np.array(sampled.queue)) * trace.packet_ns / 1e6,
        "buffer": trace.buffer, "capacity": 1e9 / trace.packet_ns,
    }  # fmt: skip


def _sampled(run: PaperRun) -> Sampled:
    """Reads tables of the run."""
    trace = PacketTrace(run)
    losses = trace.losses()
    start_ns = losses[0][0] if losses else trace.start_ns
    end_ns = min(trace.end_ns, start_ns + round(SPAN_S * 1e9))
    grid = np.arange(start_ns, end_ns, trace.rtt_ns)
    flows = [flow["id"] for flow in trace.flows]
    windows = np.array([latest(grid, *trace.window(flow)) for flow in flows])
    queue = latest(grid, *trace.queue_steps(start_ns - trace.longest_rtt_ns, end_ns))
    joined = trace.run.table("joined").filter(~pl.col("dropped"))
    tuples = {flow["five_tuple"]: row for row, flow in enumerate(trace.flows)}
    rates = np.zeros((len(flows), len(grid) - 1))
    for five_tuple, row in tuples.items():
        of_flow = joined.filter(pl.col("five_tuple").cast(pl.String) == five_tuple, pl.col("payload_bytes") > 0)
        left = (of_flow["enqueue_mono_ns"] + of_flow["sojourn_ns"]).to_numpy()
        rates[row] = np.diff(np.searchsorted(left, grid)) * 1e9 / trace.rtt_ns
    drops, losers, _ = trace.drops(start_ns, end_ns)
    of_flows = [
        ((int(at) - start_ns) / 1e9, flows.index(flow)) for at, flow in zip(drops, losers, strict=True) if flow in flows
    ]
    return Sampled(windows.tolist(), rates.tolist(), queue.tolist(), of_flows)


def draw(data: Data) -> look.Figure:
    """Four panels on one time axis; crosses are drops."""
    figure, axes = look.new_figure(look.PAGE_IN, 4.6, 4, sharex=True)
    curves = data["curves"]
    if curves is None:
        return look.absent(*axes[:, 0])
    windows, rates, queue, rtt = axes[:, 0]
    time_s = curves["time_s"]
    for row, shade in enumerate(FLOW_COLORS):
        windows.plot(time_s, curves["windows"][row], color=shade, label=f"flow {row + 1}")
        rates.plot(time_s[:-1], curves["rates"][row], color=shade, linewidth=0.6)
        lost = [at for at, flow in curves["drops"] if flow == row]
        queue.plot(lost, [curves["buffer"] * (1.06 + 0.1 * row)] * len(lost), "x", color=shade, clip_on=False)
    windows.plot(time_s, np.sum(curves["windows"], axis=0), color=GREY, linewidth=0.6, label="sum")
    queue.plot(time_s, curves["queue"], color=GREEN)
    rtt.plot(time_s, curves["rtt_ms"], color=GREEN)
    look.level(rates, curves["capacity"], "C")
    look.level(queue, curves["buffer"], "B")
    queue.set_ylim(0, curves["buffer"] * 1.3)
    for ax, text in ((windows, "windows\n(packets)"), (rates, "rates\n(packets/s)"), (queue, "queue\n(packets)")):
        ax.set_ylabel(text)
        ax.set_ylim(bottom=0)
    rtt.set_ylabel("RTT (ms)")
    rtt.set_xlabel("time since a loss (s)")
    rtt.set_xlim(0, time_s[-1])
    windows.legend(loc="upper right", ncols=3, frameon=False)
    figure.align_ylabels()
    return figure


FIGURE_7 = PaperFigure("figure_07", CAPTION, (STEM,), prepare, draw)
