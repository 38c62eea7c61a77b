# SPDX-License-Identifier: MIT
"""Almost fairness, for Figures 11a and 11b: 1st and 99th percentile of all windows divided by the fair share BDP/n.

Delta is the larger of p99 / (BDP/n) and (BDP/n) / p1 (defined in 4.1, measured in 5.6).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from analysis.figures import algorithms
from analysis.figures.common import GREY, Data
from analysis.papers import look
from analysis.papers.facts import Fact, absent, exactly
from analysis.papers.series import bdp, grouped, series
from analysis.papers.spang2021 import notebook
from analysis.papers.stored_runs import StoredRun, StoredRuns

NEEDS = ("window_p01_packets", "window_p99_packets")
SIDESTEP = 1.05


class Ends(NamedTuple):
    """2.5th and 95th percentile of congestion windows divided by BDP/n, by the notebook's estimator."""

    measured: tuple[float, float]
    published: tuple[float, ...] | None


def curve(runs: list[StoredRun], by: str) -> Data:
    """1st and 99th percentile of one algorithm's windows divided by the fair share, and Delta, by the column `by`."""
    return {
        "upper": series(runs, by, lambda run: _over_share(run, "window_p99_packets")),
        "lower": series(runs, by, lambda run: _over_share(run, "window_p01_packets")),
        "delta": series(runs, by, "delta"),
    }


def as_notebook(runs: StoredRuns, stem: str, by: str) -> dict[str, dict[float, Ends]]:
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


def _over_share(run: StoredRun, column: str) -> float | None:
    return None if run[column] is None else run[column] * run["flows"] / bdp(run)


def draw(
    ax: look.Axes, data: Data, x_label: str, log_x: bool, ends: dict[str, dict[float, Ends]] | None = None
) -> None:
    """99th percentiles filled, 1st percentiles hollow, a colour for each algorithm; the line at 1 is the fair share."""
    from matplotlib.lines import Line2D

    present, missing = look.split(data)
    if not present:
        look.absent(ax)
        return
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
    more: list[look.Artist] = []
    for cc, of_cc in (ends or {}).items():
        shade = algorithms.color(cc)
        for where, both in of_cc.items():
            if both.published:
                ax.plot([where, where], both.published, "x", color=shade, markersize=3, markeredgewidth=0.7)
                more = [
                    Line2D([], [], color=GREY, marker="x", linestyle="none", label="published (cwnd,\np2.5 and p95)")
                ]
    look.legend_right(ax, dict.fromkeys(present, ""), missing, more)


def facts_as_notebook(ends: dict[str, dict[float, Ends]], where: str) -> list[Fact]:
    """Both ends of each algorithm by the notebook's estimator, beside the published ends."""
    rows = []
    for cc, of_cc in ends.items():
        for x, both in of_cc.items():
            for number, end in enumerate(("2.5th", "95th")):
                said = f"published: {both.published[number]:.3g}" if both.published else ""
                what = f"{algorithms.name(cc)}, {where.format(x)}: {end} percentile of cwnd over BDP/n (notebook)"
                rows.append(Fact(what, said, None, exactly(both.measured[number]), ""))
    return rows


def facts(data: Data, where: str, paper: dict[str, str], only: Sequence[float] | None = None) -> list[Fact]:
    """Delta and both percentiles of each algorithm at each x, or at each x in `only`. Theory predicts none of them."""
    rows = []
    for cc, curve in data.items():
        if "absent" in curve:
            rows.append(absent(curve["absent"]))
            continue
        for x in curve["upper"]:
            if only is not None and x not in only:
                continue
            at = f"{algorithms.name(cc)}, {where.format(x)}"
            rows.append(Fact(f"{at}: Δ", paper.get(cc, ""), None, curve["delta"].get(x), ""))
            rows.append(Fact(f"{at}: 99th percentile over BDP/n", "", None, curve["upper"].get(x), ""))
            rows.append(Fact(f"{at}: 1st percentile over BDP/n", "", None, curve["lower"].get(x), ""))
    return rows
