# SPDX-License-Identifier: MIT
"""Figure 2: utilization of the testbed against the buffer, for three numbers of users."""

from __future__ import annotations

from analysis.figures.common import Data
from analysis.papers import look
from analysis.papers.facts import Fact
from analysis.papers.paper import PaperFigure
from analysis.papers.prasad2007 import testbed
from analysis.papers.series import Series, grouped, series
from analysis.papers.stored_runs import StoredRuns

CAPTION = (
    "utilization of the testbed's link against the buffer, at a tenth of its rate, users and buffers. Crosses: at full "
    "scale. Triangles: users whose think time runs from the start of a transfer."
)
FROM_START = "think-from-start"
PRINTED = {100: "0.60 to 0.70", 120: "0.80 to 0.90", 300: "saturated"}


def prepare(runs: StoredRuns) -> Data:
    """Estimates by users and buffer: scaled, at full scale, and with the other kind of pauses."""

    def by_users(stem: str) -> dict[int, Series]:
        selected = runs.select(stem)
        return {
            users: series(of, "buffer_packets", "utilization_mean") for users, of in grouped(selected, "users").items()
        }

    full = testbed.full(runs.select(testbed.FULL_STEM))
    return {
        "provenance": runs.provenance(),
        "curves": by_users(testbed.STEM),
        "from_start": by_users(FROM_START),
        "full": {
            users // testbed.SCALE: {
                buffer / testbed.SCALE: point
                for buffer, point in series(of, "buffer_packets", "utilization_mean").items()
            }
            for users, of in grouped(full, "users").items()
        },
    }


def draw(data: Data) -> look.Figure:
    """One panel, buffers logarithmic."""
    figure, axes = look.new_figure(look.PAGE_IN * 0.72, 2.8)
    ax = axes[0, 0]
    if not data["curves"]:
        look.absent(ax, "no valid run")
        return figure
    look.log_axis(ax.xaxis)
    for users, points in data["curves"].items():
        shade = testbed.COLORS.get(users, testbed.COLORS[100])
        ax.plot(list(points), [point.value for point in points.values()], color=shade, linewidth=0.8)
        look.interval_bars(ax, points, points.values(), shade)
        ax.plot([], [], "o-", color=shade, label=testbed.name(users))
        for kind, marker in (("from_start", "^"), ("full", "x")):
            more = data[kind].get(users, {})
            ax.plot(list(more), [point.value for point in more.values()], marker, color=shade, markerfacecolor="none")
    ax.set_xlabel("buffer at a tenth of the scale (packets)")
    ax.set_ylabel("utilization")
    ax.set_ylim(0, 1.05)
    ax.legend(loc="lower right", frameon=False)
    return figure


def facts(data: Data) -> list[Fact]:
    """The plateau with the largest buffer, by both kinds of pauses, and how much the smallest buffers lose."""
    rows = []
    for users, points in data["curves"].items():
        largest = max(points)
        what = f"{testbed.name(users)}, pauses after a transfer: utilization with the largest buffer"
        rows.append(Fact(what, PRINTED.get(users, ""), None, points[largest], "", headline=True))
        for buffer in (3, 20):
            if buffer in points:
                kb = testbed.size_text(testbed.buffer_kb(buffer))
                rows.append(Fact(f"{testbed.name(users)}: utilization with {kb}", "", None, points[buffer], ""))
    for users, points in data["from_start"].items():
        what = f"{testbed.name(users)}, pauses from start to start: utilization with the largest buffer"
        rows.append(Fact(what, PRINTED.get(users, ""), None, points[max(points)], "", headline=True))
    for users, points in data["full"].items():
        for buffer, point in points.items():
            what = f"{testbed.name(users)} at full scale, {testbed.size_text(testbed.buffer_kb(buffer))}: utilization"
            rows.append(Fact(what, "", None, point, ""))
    return rows


FIGURE = PaperFigure("figure_02", CAPTION, (testbed.STEM, FROM_START, testbed.FULL_STEM), prepare, draw, facts)
