# SPDX-License-Identifier: MIT
"""Figure 2: utilization of the testbed against the buffer, for three numbers of users."""

from __future__ import annotations

from analysis.figures.common import Data
from analysis.papers import look
from analysis.papers.facts import Fact, exactly
from analysis.papers.paper import PaperFigure
from analysis.papers.prasad2007 import testbed
from analysis.papers.prasad2007.rows import FULL, OF_USERS
from analysis.papers.series import Series, grouped, series
from analysis.papers.stored_runs import StoredRun, StoredRuns

CAPTION = (
    "utilization of the testbed's link against the buffer, at a tenth of its rate, users and buffers. Crosses: full "
    "scale, with buffers divided by ten. Triangles: think times that run from the start of a transfer."
)
FROM_START = "think-from-start"
# U E[S] / (C x mean cycle), at most 1, from the paper's sizes, think times and RTTs
PREDICTED = {"curves": {100: 0.48, 120: 0.58, 300: 1.0}, "from_start": {100: 0.70, 120: 0.84}}
PRINTED = {100: "0.60 to 0.70", 120: "0.80 to 0.90", 300: "saturated"}


def prepare(runs: StoredRuns) -> Data:
    """Estimates by users and buffer: scaled, at full scale, with the other think times; the largest cycle error."""
    scaled, from_start = runs.select(testbed.STEM, **OF_USERS), runs.select(FROM_START, **OF_USERS)
    full = runs.select(testbed.FULL_STEM, rate_bps=testbed.FULL_BPS, **OF_USERS)
    errors = [abs(error) for run in scaled if (error := _cycle_error(run)) is not None]
    return {
        "provenance": runs.provenance(),
        "curves": _by_users(scaled),
        "from_start": _by_users(from_start),
        "full": {
            users // testbed.SCALE: {buffer / testbed.SCALE: point for buffer, point in points.items()}
            for users, points in _by_users(full).items()
        },
        "cycle_error": max(errors, default=None),
    }


def _by_users(runs: list[StoredRun]) -> dict[int, Series]:
    return {users: series(of, "buffer_packets", "utilization_mean") for users, of in grouped(runs, "users").items()}


def _cycle_error(run: StoredRun) -> float | None:
    """Relative error of Little's law: (open flows / rate + think time) / (users / rate) - 1. Raises InputError."""
    law = run.value("finite_flows", 0, "littles_law")
    return None if law is None else float(law["cycle_error_fraction"])


def draw(data: Data) -> look.Figure:
    """One panel, buffers logarithmic."""
    figure, ax = look.new_panel(look.PAGE_IN * 0.72, 2.8)
    if not data["curves"]:
        return look.absent(ax)
    look.log_axis(ax.xaxis)
    ax.margins(x=0.04)
    for users, points in data["curves"].items():
        shade = testbed.COLORS.get(users, testbed.COLORS[100])
        ax.plot(list(points), [point.value for point in points.values()], color=shade, linewidth=0.8)
        look.interval_bars(ax, points, points.values(), shade)
        ax.plot([], [], "o-", color=shade, label=testbed.name(users))
        for kind, marker in (("from_start", "^"), ("full", "x")):
            more = data[kind].get(users, {})
            ax.plot(list(more), [point.value for point in more.values()], marker, color=shade, markerfacecolor="none")
        simulated = data.get("ns3", {}).get("curves", {}).get(users)
        if simulated:
            look.ns3_points(ax, simulated, simulated.values(), shade)
    ax.set_xlabel("buffer at a tenth of the scale (packets)")
    ax.set_ylabel("utilization")
    ax.set_ylim(0, 1.05)
    ax.legend(loc="lower right", frameon=False)
    return figure


def facts(data: Data) -> list[Fact]:
    """Utilization: with the largest buffer by both kinds of think times, with small buffers, at full scale; errors."""
    rows = []
    for kind, words in (("curves", "after a transfer"), ("from_start", "from start to start")):
        for users, points in data[kind].items():
            what = f"{testbed.name(users)}, think times {words}: utilization with the largest buffer"
            predicted = PREDICTED[kind].get(users)
            rows.append(Fact(what, PRINTED.get(users, ""), predicted, points[max(points)], "", headline=True))
    for users, points in data["curves"].items():
        for buffer in (3, 20, 50):
            if buffer in points:
                kb = testbed.size_text(testbed.buffer_kb(buffer))
                rows.append(Fact(f"{testbed.name(users)}: utilization with {kb}", "", None, points[buffer], ""))
    for users, points in data["full"].items():
        for buffer, point in points.items():
            what = f"{testbed.name(users)} at full scale, {testbed.size_text(testbed.buffer_kb(buffer))}: utilization"
            rows.append(Fact(what, "", None, point, ""))
        full = [buffer for buffer, point in points.items() if point.value >= FULL]
        what = f"{testbed.name(users)} at full scale: least buffer for a utilization of {FULL:g}"
        least = exactly(testbed.buffer_kb(min(full))) if full else None
        rows.append(Fact(what, "200 KB" if users == 300 else "", None, least, "KB"))
    if data["cycle_error"] is not None:
        what = "Little's law, a tenth of the scale: largest relative error of users / rate over the runs"
        rows.append(Fact(what, "", 0.0, exactly(data["cycle_error"]), "", over_points=True))
    return rows


FIGURE = PaperFigure("figure_02", CAPTION, (testbed.STEM, FROM_START, testbed.FULL_STEM), prepare, draw, facts)
