# SPDX-License-Identifier: MIT
"""Figure 11: queueing delay against the buffer: linear up to a cutoff, then constant."""

from __future__ import annotations

from analysis.figures.common import BLACK, BLUE, Data
from analysis.papers import look
from analysis.papers.facts import Fact, absent, exactly
from analysis.papers.paper import PaperFigure
from analysis.papers.prasad2007.rows import BY_NAME, Measured, capacity
from analysis.papers.stored_runs import StoredRuns

CAPTION = "mean queueing delay against the buffer for a capacity ratio of 0.1 (20 inputs, 100 users). Line: f B / C."
ROW = BY_NAME["20/100/0.1"]


def prepare(runs: StoredRuns) -> Data:
    """Delay by buffer, and the fit."""
    measured = Measured.of(runs, ROW)
    data: Data = {"provenance": runs.provenance(), "points": {}, "fit": None}
    if measured is None:
        return data
    return data | {
        "points": measured.delay_s,
        "fit": measured.delay_fit,
        "predicted": measured.predicted_cutoff(),
        "capacity": capacity(measured.runs[0]),
    }


def draw(data: Data) -> look.Figure:
    """One panel."""
    figure, ax = look.new_panel(look.COLUMN_IN, 2.5)
    points = data["points"]
    if not points:
        return look.absent(ax)
    look.interval_bars(ax, points, (point.scaled(1e3) for point in points.values()), BLUE)
    if data["fit"]:
        ends = [0.0, data["fit"].cutoff]
        ax.plot(ends, [1e3 * data["fit"].f * end / data["capacity"] for end in ends], "--", color=BLACK, linewidth=0.8)
    ax.set_xlabel("buffer B (packets)")
    ax.set_ylabel("mean queueing delay (ms)")
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    return figure


def facts(data: Data) -> list[Fact]:
    """f with the quality of the fit, and the cutoff by two definitions."""
    fit = data["fit"]
    if fit is None:
        return [absent("too few buffers")]
    meeting = data["points"][max(data["points"])].value * data["capacity"] / fit.f
    what = f"f of d = f B / C (R² {fit.r_squared:.3f}, {fit.points} buffers)"
    return [
        Fact(what, "typically 0.4", None, exactly(fit.f), "", headline=True),
        Fact("cutoff: largest buffer of the linear part", "", data["predicted"], exactly(fit.cutoff), "packets"),
        Fact("cutoff: f B / C is the delay of the largest buffer", "", data["predicted"], exactly(meeting), "packets"),
    ]


FIGURE = PaperFigure("figure_11", CAPTION, (ROW.stem,), prepare, draw, facts)
