# SPDX-License-Identifier: MIT
"""The least tail-drop buffer for 98 % of the link, in the worst 1 % of windows, against the share of BBRv3's flows."""

from __future__ import annotations

import math

from analysis.arithmetic.statistics import Bounds, Interval
from analysis.figures.common import BLACK, Data
from analysis.papers import look
from analysis.papers.facts import Fact
from analysis.papers.least_buffer import bounds, by_buffer, contradiction
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.series import bdp, grouped

STEM, ENOUGH, COLUMN = "least-buffer", 0.98, "utilization_p01"
CAPTION = (
    "the least tail-drop buffer with which the 1st percentile of utilization over 10 RTTs is 98 %, against the share "
    "of BBRv3 among 16 flows; the others are Cubic. A bar goes from the largest buffer that is not enough to the "
    "smallest that is; a triangle: more than this."
)
ALGORITHM = "bbr3"


def share(run: PaperRun) -> float:
    """BBRv3's share of the long flows. Raises InputError."""
    groups = run.experiment.long
    return sum(group.flows for group in groups if group.cc == ALGORITHM) / sum(group.flows for group in groups)


def _prepare(runs: PaperRuns) -> Data:
    least: dict[float, tuple[Bounds, float]] = {}
    rows = []
    for of, same in grouped(runs.select(STEM, needs=(COLUMN,)), share).items():
        measured = by_buffer((run.row for run in same), COLUMN)
        found, one = bounds(measured, ENOUGH, of), bdp(same[0])
        least[of] = found, one
        against = contradiction(measured, ENOUGH)
        note = f"not monotone: {against[0]} packets are enough, {against[1]} are not" if against else ""
        interval = Interval(found.middle / one, found.low / one, found.high / one, 1)
        what = f"{of:.0%} BBRv3: least buffer for u of {ENOUGH:g} or more in the worst 1 % of windows"
        rows.append(Fact(what, "", None, interval, "BDP", reason=note, headline=True))
    return {"least": least, "facts": rows}


def _draw(data: Data) -> look.Figure:
    figure, ax = look.new_panel(look.COLUMN_IN, 2.4)
    if not data["least"]:
        return look.absent(ax)
    for of, (found, one) in data["least"].items():
        low, high = max(found.low, 1) / one, found.high / one
        if math.isinf(high):
            ax.plot(100 * of, low, "^", color=BLACK, markerfacecolor="white")
            continue
        ax.plot([100 * of] * 2, [low, high], color=BLACK, linewidth=1.2, solid_capstyle="butt")
        ax.plot(100 * of, found.middle / one, "o", color=BLACK)
    ax.set_yscale("log")
    ax.set_ylim(0.05, 8)
    ax.set_yticks([0.1, 0.2, 0.5, 1, 2, 4], ["0.1", "0.2", "0.5", "1", "2", "4"])
    ax.minorticks_off()
    ax.margins(x=0.08)
    ax.set_xlabel("share of BBRv3 among 16 flows (%)")
    ax.set_ylabel("least buffer (BDP)")
    ax.set_xticks([100 * of for of in data["least"]])
    return figure


FIGURE = PaperFigure("figure_04", CAPTION, (STEM,), _prepare, _draw)
