# SPDX-License-Identifier: MIT
"""Figure 5b: utilization against the rate of the access links."""

from __future__ import annotations

from analysis.figures.common import BLACK, Data
from analysis.papers import look
from analysis.papers.enachescu2006 import model, panel
from analysis.papers.facts import Fact, exactly
from analysis.papers.paper import PaperFigure
from analysis.papers.series import Series, grouped, series
from analysis.papers.stored_runs import StoredRun, StoredRuns

CAPTION = (
    "utilization against the rate of each flow's access link; Reno with large windows on 1 Gb/s, 10 packets of buffer. "
    "Dashed: the load that the access links offer."
)
STEM = "access"
CARRIED = 0.95  # the curve counts as linear while the link carries this share of the access links' rates
MAIN = 100  # number of flows in the paper's text


def prepare(runs: StoredRuns) -> Data:
    """Estimates by flows and access rate in Mb/s."""
    selected = runs.select(STEM, needs=("access_bps",))
    curves = {n: series(of, "access_bps", "utilization_mean") for n, of in grouped(selected, "flows").items()}
    return {
        "provenance": runs.provenance(),
        "curves": {n: {bps / 1e6: point for bps, point in of.items()} for n, of in curves.items()},
        "rate_mbps": _rate_mbps(selected),
    }


def _rate_mbps(runs: list[StoredRun]) -> float | None:
    return runs[0]["rate_bps"] / 1e6 if runs else None


def draw(data: Data) -> look.Figure:
    """One panel, access rates logarithmic."""
    figure, ax = look.new_panel(look.PAGE_IN * 0.72, 2.8)
    curves = _curves(data)
    if not panel.draw(ax, curves, "rate of each access link (Mb/s)"):
        return figure
    panel.draw_ns3(ax, curves, _curves(data.get("ns3", {"curves": {}})))
    for n, curve in zip(data["curves"], curves, strict=True):
        full = data["rate_mbps"] / n
        rates = [rate for rate in curve.points if rate < full]
        line = [(rate, rate / full) for rate in (*rates, full)]
        panel.model_line(ax, line, None, curve.shade, model.EQUAL)
    ax.plot([], [], panel.STYLES[model.EQUAL], color=BLACK, linewidth=0.7, label="offered")
    ax.legend(loc="lower center", frameon=False)
    return figure


def _curves(data: Data) -> list[panel.Curve]:
    return panel.numbered({f"N = {n}": of for n, of in data["curves"].items()})


def facts(data: Data) -> list[Fact]:
    """The largest access rate that the link carries almost in full, the decline beyond it, and u at each rate."""
    points: Series = data["curves"].get(MAIN, {})
    if not points:
        return []
    offered = {rate: min(rate * MAIN / data["rate_mbps"], 1.0) for rate in points}
    carried = [rate for rate, point in points.items() if point.value >= CARRIED * offered[rate]]
    largest = exactly(max(carried)) if carried else None
    what = f"N = {MAIN}: largest access rate at which {100 * CARRIED:.0f} % of the load is carried"
    rows = [Fact(what, "8 to 9 Mb/s", None, largest, "Mb/s", headline=True, over_points=True)]
    decline = points[max(points)].value - max(point.value for point in points.values())
    what = f"N = {MAIN}: u with links of {max(points):g} Mb/s minus the largest u"
    rows.append(Fact(what, "gradual decline", None, exactly(decline), "", over_points=True))
    for rate, point in points.items():
        predicted = offered[rate] if offered[rate] < 1 else None
        rows.append(Fact(f"N = {MAIN}, access links of {rate:g} Mb/s: u", "", predicted, point, ""))
    return rows


FIGURE = PaperFigure("figure_05b", CAPTION, (STEM,), prepare, draw, facts)
