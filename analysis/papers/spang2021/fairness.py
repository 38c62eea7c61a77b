# SPDX-License-Identifier: MIT
"""Almost fairness against the number of flows (Figure 11a) and, of 16 flows, against the buffer (Figure 11b): 1st and
99th percentile of all windows divided by the fair share BDP/n.

Delta is the larger of p99 / (BDP/n) and (BDP/n) / p1 (defined in 4.1, measured in 5.6).
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from analysis.figures import algorithms
from analysis.figures.common import GREY, Data
from analysis.papers import look
from analysis.papers.facts import Fact, by_algorithm, exactly
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.series import IS_ONE_BDP, bdp, grouped, series
from analysis.papers.spang2021 import notebook

NEEDS = ("window_p01_packets", "window_p99_packets")
SIDESTEP = 1.05


class Ends(NamedTuple):
    """2.5th and 95th percentile of congestion windows divided by BDP/n, by the notebook's estimator."""

    measured: tuple[float, float]
    published: tuple[float, ...] | None


def curve(runs: list[PaperRun], by: str) -> Data:
    """1st and 99th percentile of one algorithm's windows divided by the fair share, and Delta, by the column `by`."""
    return {
        "upper": series(runs, by, lambda run: _over_share(run, "window_p99_packets")),
        "lower": series(runs, by, lambda run: _over_share(run, "window_p01_packets")),
        "delta": series(runs, by, "delta"),
    }


def as_notebook(runs: PaperRuns, stem: str, by: str) -> dict[str, dict[float, Ends]]:
    """For each algorithm and number of flows or buffer: both ends by the notebook's estimator, as means over our runs
    and over the published runs. The published mean is None unless each of our points has a published run.
    """
    ends: dict[str, dict[float, Ends]] = {}
    for cc in runs.paper.algorithms:
        for x, group in grouped(runs.select(stem, cc=cc, imported=False), by).items():
            of_buffers = notebook.over_buffers(group)
            if of_buffers is None:
                continue
            points = {(run["flows"], run["buffer_packets"]) for run in group}
            published = []
            for n, buffer in points if runs.beside is not None else ():
                rows = notebook.near(runs.beside.deltas.filter(cc=cc, flows=n), buffer)
                published += rows.select("lower", "upper").rows()
            mean = tuple(np.mean(published, axis=0).tolist()) if len(published) == len(points) else None
            ends.setdefault(cc, {})[x] = Ends(of_buffers, mean)
    return ends


def _over_share(run: PaperRun, column: str) -> float | None:
    return None if run[column] is None else run[column] * run["flows"] / bdp(run)


def draw(data: Data, x_label: str, log_x: bool) -> look.Figure:
    """99th percentiles filled, 1st percentiles hollow, a colour for each algorithm; the line at 1 is the fair share."""
    from matplotlib.lines import Line2D

    figure, ax = look.new_panel(look.PAGE_IN * 0.62, 2.7)
    ends, (present, missing) = data["ends"], look.split(data["curves"])
    if not present:
        return look.absent(ax)
    values = sorted({x for curve in present.values() for x in curve["upper"]})
    ax.set_yscale("log", base=2)
    ax.set_ylabel("window / fair share BDP/n:\n99th percentile (Δ, filled),\n1st (1/Δ, hollow)")
    ax.set_xlabel(x_label)
    if log_x:
        look.log2_axis(ax, values, 1.25)
    else:
        ax.set_xlim(0, values[-1] * 1.05)
    ax.axhline(1, color=GREY, linewidth=0.7, linestyle=":")
    floor = min((share.value for curve in present.values() for share in curve["lower"].values() if share.value > 0),
                default=0.25)  # fmt: skip
    span = values[-1] - values[0] or 1
    for at, (cc, curve) in enumerate(present.items()):
        shift = at - (len(present) - 1) / 2
        for end in ("upper", "lower"):
            positive = {x: share for x, share in curve[end].items() if share.value > 0}
            x = [v * SIDESTEP**shift if log_x else v + shift * span * 0.006 for v in positive]
            shade = algorithms.color(cc)
            for place, share in zip(x, positive.values(), strict=True):
                if share.low is not None and share.high is not None:
                    ax.plot([place] * 2, [max(share.low, floor / 2), share.high], color=shade, linewidth=0.9)
            y = [share.value for share in positive.values()]
            ax.plot(x, y, algorithms.marker(cc) + "-", color=shade, linewidth=0.5,
                    markerfacecolor=shade if end == "upper" else "white", markeredgewidth=0.8)  # fmt: skip
    ax.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
    published = [(cc, x, both.published) for cc, of_cc in ends.items() for x, both in of_cc.items() if both.published]
    for cc, x, of_both in published:
        ax.plot([x, x], of_both, "x", color=algorithms.color(cc), markersize=3, markeredgewidth=0.7)
    more = Line2D([], [], color=GREY, marker="x", linestyle="none", label="published (cwnd,\np2.5 and p95)")
    look.legend_right(ax, dict.fromkeys(present, ""), missing, [more] if published else [])
    return figure


def facts(data: Data, where: str, over: str, paper: dict[str, str]) -> list[Fact]:
    """Delta and both percentiles of each algorithm at each x; then both ends by the notebook's estimator, beside the
    published ends. Theory predicts none of them.
    """
    rows: list[Fact] = []
    for cc, who, curve in by_algorithm(data["curves"], rows):
        for x in curve["upper"]:
            at = f"{who}, {where.format(x)}"
            rows.append(Fact(f"{at}: Δ", paper.get(cc, paper[""]), None, curve["delta"].get(x), ""))
            rows.append(Fact(f"{at}: 99th percentile over BDP/n", "", None, curve["upper"].get(x), ""))
            rows.append(Fact(f"{at}: 1st percentile over BDP/n", "", None, curve["lower"].get(x), ""))
    for cc, of_cc in data["ends"].items():
        for x, both in of_cc.items():
            for number, end in enumerate(("2.5th", "95th")):
                said = f"published: {both.published[number]:.3g}" if both.published else ""
                at = f"{algorithms.name(cc)}, {where.format(x)}, mean over {over}"
                what = f"{at}: {end} percentile of cwnd over BDP/n (notebook)"
                rows.append(Fact(what, said, None, exactly(both.measured[number]), ""))
    return rows


# Figures --------------------------------------------------------------------------------------------------------------

CAPTION_11A = (
    "distance of the windows from the fair share (Delta-almost fairness) against the number of flows, B = BDP."
)
OF_RENO, OF_OTHERS, OF_BUFFERS, PUBLISHED = "reno-depth", "fairness-flows", "fairness-buffers", "published"


def _by_flows(runs: PaperRuns) -> Data:
    """Reno's runs are those of Figure 4."""
    curves: Data = {}
    for stem, ccs in ((OF_RENO, ("reno",)), (OF_OTHERS, runs.paper.algorithms[1:])):
        curves |= runs.by_algorithm(stem, partial(curve, by="flows"), IS_ONE_BDP, ccs=ccs, needs=NEEDS)
    return {"curves": curves, "ends": as_notebook(runs, PUBLISHED, "flows")}


FIGURE_11A = PaperFigure(
    "figure_11a", CAPTION_11A, (OF_RENO, OF_OTHERS, PUBLISHED), _by_flows,
    partial(draw, x_label="flows n", log_x=True),
    partial(facts, where="n = {}", over="buffers", paper={"": "Δ and 1/Δ slowly increase with n"}),
)  # fmt: skip

CAPTION_11B = "distance of the windows of 16 flows from the fair share (Delta-almost fairness) against the buffer."


def _by_buffer(runs: PaperRuns) -> Data:
    curves = runs.by_algorithm(OF_BUFFERS, partial(curve, by="buffer_packets"), needs=NEEDS)
    return {"curves": curves, "ends": as_notebook(runs, PUBLISHED, "buffer_packets")}


# 5.6: "For Cubic, Reno, and Scalable, Delta is about 4. For BBR, it is about 10. Delta does not depend on the buffer
# size"; "Delta^-1 slowly decreases with buffer size, and approaches 0.5".
FIGURE_11B = PaperFigure(
    "figure_11b", CAPTION_11B, (OF_BUFFERS, PUBLISHED), _by_buffer,
    partial(draw, x_label="buffer (packets), 16 flows", log_x=False),
    partial(facts, where="B = {} packets", over="all n",
            paper={"": "about 4, whatever B", "bbr": "about 10, whatever B"}),
)  # fmt: skip
