# SPDX-License-Identifier: MIT
"""Figure 9: which of four Reno flows lose, and how far the queue falls.

Each flow that loses halves its window, so the queue falls by half the sum of the losers' windows: one large window
counts as much as two of half its size (section 5.5). The text has four flows with B = BDP. The notebook has B = 20000
cells, which are 175 packets, once with four flows and once with two. Runs at the notebook's points are numbers on the
page, not in the figure.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.arithmetic.statistics import mean_interval
from analysis.figures.common import BLACK, BLUE, GREEN, PURPLE, RED, SKY, Data, tidy
from analysis.measure.loss import min_mean_depth
from analysis.papers import look
from analysis.papers.facts import Fact
from analysis.papers.packet_trace import PacketTrace
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.series import IS_ONE_BDP
from analysis.theory.single_flow import DECREASE

CAPTION = (
    "four Reno flows, their windows and the queue around losses; and how far the queue falls at each loss, beside "
    "the prediction, half of the losers' windows."
)
SWEEPS = ("four-flows",)
CC, FLOWS = "reno", 4
NOTEBOOK_BUFFER, NOTEBOOK_FLOWS = 175, (2, 4)
NEEDS = ("utilization_p01", "in_flight_mean_packets")  # null in runs without packets or windows
FLOW_COLORS = (BLUE, "#E69F00", GREEN, PURPLE)
SPAN_RTTS = 220  # base RTTs


def prepare(runs: PaperRuns) -> Data:
    """Steps of the first valid run, in the span in which the numbers of losers differ most; the losses of every run:
    medians over each run's losses, and the share of losses that hit all flows; first the text's point, then the
    notebook's points.
    """
    selected = runs.select(SWEEPS[0], IS_ONE_BDP, needs=NEEDS, cc=CC, flows=FLOWS)
    measured = [_measured(run) for run in selected]
    rows = _facts(measured, FLOWS)
    for n in NOTEBOOK_FLOWS:
        same: dict[str, Any] = {"flows": n, "buffer_packets": NOTEBOOK_BUFFER, "imported": False}
        of_notebook = [_measured(run) for run in runs.select(SWEEPS[0], needs=NEEDS, cc=CC, **same)]
        where = f"notebook (n = {n}, B = {NOTEBOOK_BUFFER} packets): "
        rows += [fact._replace(what=where + fact.what, reason="") for fact in _facts(of_notebook, n)]
        if not of_notebook:
            rows.append(Fact(f"{where}fall of the queue over half the losers' windows", "", 1.0, None, ""))
    if not selected:
        return {"zoom": None, "absent": runs.absence(SWEEPS[0], CC), "facts": rows}
    losses = measured[0]["losses"]
    zoom = selected[0].measure("steps of Figure 9", Data, lambda run: _zoom(PacketTrace(run), losses))
    by_flow = {name: {int(flow): np.array(of) for flow, of in zoom[name].items()} for name in ("windows", "drops")}
    return {"runs": measured, "zoom": zoom | by_flow | {"queue": np.array(zoom["queue"])}, "facts": rows}


def _measured(run: PaperRun) -> Data:
    measured: Data = run.measure("losses of Figure 9", Data, _run)
    return measured


def _run(run: PaperRun) -> Data:
    """Each loss of a run: losers, half the sum of their windows, and how far the queue fell (packets). A loss without
    arrivals after it is left out.
    """
    trace = PacketTrace(run)
    windows = {flow["id"]: trace.window(flow["id"]) for flow in trace.flows}
    losses = []
    for start, losers, end in trace.losses():
        before = {flow: int(window[np.searchsorted(times, start, side="right") - 1])
                  for flow, (times, window) in windows.items()}  # fmt: skip
        least = min_mean_depth(trace.queue, start, end, trace.rtt_ns)
        if least is None:
            continue
        losses.append(
            {
                "start_ns": start, "losers": losers, "windows": before,
                "half": sum(before[flow] for flow in losers) * (1 - DECREASE[CC]),
                "fall": float(trace.drops(start, start + 1)[2][0] - least),
            }
        )  # fmt: skip
    return {"losses": losses}


def _zoom(trace: PacketTrace, losses: list[Data]) -> Data:
    """Queue and windows (packets, times in ms) over the span in which the numbers of losers differ most."""
    span = SPAN_RTTS * trace.rtt_ns
    margin = span // 8  # before the first loss and after the last
    starts = [trace.start_ns] + [loss["start_ns"] - margin for loss in losses]
    starts = [min(max(start, trace.start_ns), max(trace.end_ns - span, trace.start_ns)) for start in starts]

    def kinds(start: int) -> int:
        return len({len(loss["losers"]) for loss in losses if start <= loss["start_ns"] < start + span - margin})

    start = max(starts, key=kinds)  # the first of several equal ones
    end = min(start + span, trace.end_ns)

    def ms(steps: np.ndarray) -> np.ndarray:
        return np.array([(steps[0] - start) / 1e6, steps[1]], dtype=np.float64)

    drops, flows, _ = trace.drops(start, end)
    return {
        "span_ms": (end - start) / 1e6,
        "queue": ms(trace.queue_steps(start, end)),
        "windows": {flow["id"]: ms(trace.window_steps(flow["id"], start, end)) for flow in trace.flows},
        "drops": {flow["id"]: (drops[flows == flow["id"]] - start) / 1e6 for flow in trace.flows},
        "losses": [
            ((loss["start_ns"] - start) / 1e6, len(loss["losers"]), loss["half"], loss["fall"])
            for loss in losses
            if start <= loss["start_ns"] < end
        ],
        "bdp": trace.bdp,
        "buffer": trace.buffer,
    }


def draw(data: Data) -> look.Figure:
    """Left: the windows above the queue. Right: each loss of all runs, measured against predicted."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(look.PAGE_IN, 3.3), layout="constrained")
    halves: Any = figure.subfigures(1, 2, width_ratios=(1.9, 1))
    left, right = halves
    upper, lower = left.subplots(2, 1, sharex=True, height_ratios=(1.2, 1))
    scatter = right.subplots()
    for ax in (upper, lower, scatter):
        tidy(ax)
    if data["zoom"] is None:
        return look.absent(upper, lower, scatter, text=data["absent"])
    _draw_windows(upper, data["zoom"])
    _draw_queue(lower, data["zoom"])
    lower.set_xlim(0, data["zoom"]["span_ms"])
    left.align_ylabels()
    _draw_losses(scatter, data["runs"])
    return figure


def _draw_windows(ax: look.Axes, zoom: Data) -> None:
    top = max(steps[1].max(initial=0) for steps in zoom["windows"].values()) * 1.25
    for (flow, steps), shade in zip(zoom["windows"].items(), FLOW_COLORS, strict=True):
        ax.step(*steps, where="post", color=shade, linewidth=0.8)
        row = top * (0.96 - 0.05 * flow)
        ax.plot(zoom["drops"][flow], np.full(len(zoom["drops"][flow]), row), "x", color=shade, markersize=3.2)
    fair = (zoom["bdp"] + zoom["buffer"]) / FLOWS
    look.level(ax, fair, "(BDP+B)/4")
    look.note(ax, "drops", (1, 0.885), (4, 0), xycoords="axes fraction", annotation_clip=False)
    ax.set_ylim(0, top)
    ax.set_ylabel("window (packets)")


def _draw_queue(ax: look.Axes, zoom: Data) -> None:
    ax.step(*zoom["queue"], where="post", color=BLACK, linewidth=0.5, rasterized=zoom["queue"].shape[1] > 4000)
    look.level(ax, zoom["buffer"], f"B = {zoom['buffer']}")
    for at, losers, half, _ in zoom["losses"]:
        floor = max(zoom["buffer"] - half, 0)
        ax.plot([at, at + zoom["span_ms"] * 0.035], [floor, floor], color=RED, linewidth=1.6, zorder=4, clip_on=False)
        look.note(ax, f"{losers}", (at, zoom["buffer"]), (0, 5), ha="center")
    ax.set_ylim(0, zoom["buffer"] * 1.2)
    look.note(ax, "flows\nthat lost", (1, 1), (4, 0), xycoords="axes fraction", annotation_clip=False)
    ax.set_ylabel("queue (packets)")
    ax.set_xlabel("time (ms); red: how far half of the losers' windows lets the queue fall")


def _draw_losses(ax: look.Axes, runs: list[Data]) -> None:
    losses = [loss for run in runs for loss in run["losses"]]
    top = max([loss["half"] for loss in losses] + [loss["fall"] for loss in losses] + [1]) * 1.08
    ax.plot([0, top], [0, top], "--", color=BLACK, linewidth=0.8)
    for losers, (marker, shade) in enumerate((("o", SKY), ("s", BLUE), ("^", GREEN), ("D", RED)), start=1):
        some = [(loss["half"], loss["fall"]) for loss in losses if len(loss["losers"]) == losers]
        if not some:
            continue
        x, y = np.array(some).T
        ax.plot(x, y, marker, color=shade, markersize=3, markeredgecolor="white", markeredgewidth=0.3, clip_on=False)
        text, side = f"{losers} lost" if losers > 1 else "1 flow lost", "center" if losers == FLOWS else "left"
        look.note(ax, text, (x.mean(), y.mean()), (9, -9), color=shade, ha=side)
    look.note(ax, "as predicted", (top * 0.15, top * 0.15), (8, -3))
    ax.set_xlim(0, top)
    ax.set_ylim(0, top)
    ax.set_xlabel("predicted: half the losers'\nwindows (packets)")
    ax.set_ylabel("measured: fall of the queue (packets)")


def _facts(runs: list[Data], flows: int) -> list[Fact]:
    kept = [run for run in runs if run["losses"]]
    if not kept:
        return []
    mean = "to the least mean over one RTT; flows that did not lose grow by a packet per RTT meanwhile"
    rows = [
        Fact("fall of the queue over half the losers' windows", "1", 1.0,
             mean_interval(float(np.median([loss["fall"] / loss["half"] for loss in run["losses"]])) for run in kept),
             "", mean),
    ]  # fmt: skip
    for losers in range(1, flows + 1):
        some = [[loss for loss in run["losses"] if len(loss["losers"]) == losers] for run in kept]
        each = [losses for losses in some if losses]
        if not each:
            continue
        rows.append(
            Fact(f"fall of the queue when {losers} of {flows} flows lose", "",
                 float(np.mean([np.median([loss["half"] for loss in losses]) for losses in each])),
                 mean_interval(float(np.median([loss["fall"] for loss in losses])) for losses in each), "packets")
        )  # fmt: skip
    windows = [[loss["windows"].values() for loss in run["losses"]] for run in kept]
    share = mean_interval(float(np.median([max(each) / min(each) for each in of_run])) for of_run in windows)
    rows.append(Fact("largest window over the least, at losses", "one flow about twice the others", 1.0, share, ""))
    together = [float(np.mean([len(loss["losers"]) == flows for loss in run["losses"]])) for run in kept]
    rows.append(Fact("losses that hit all flows", "", None, mean_interval(together), "of losses"))
    return rows


FIGURE = PaperFigure("figure_09", CAPTION, SWEEPS, prepare, draw)
