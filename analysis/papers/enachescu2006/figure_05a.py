# SPDX-License-Identifier: MIT
"""Figure 5a: utilization against the number of flows behind slow access links, for several offered loads."""

from __future__ import annotations

from itertools import pairwise

from analysis.figures.common import Data
from analysis.papers import look
from analysis.papers.enachescu2006 import model, panel
from analysis.papers.facts import Fact, exactly
from analysis.papers.paper import PaperFigure
from analysis.papers.series import grouped, series
from analysis.papers.stored_runs import StoredRun, StoredRuns

CAPTION = (
    "utilization against the number of flows, Reno with uncapped windows behind links of 5 Mb/s; these links together "
    "have 0.5 to 2 times the rate of the bottleneck, whose buffer is 10 packets."
)
STEM = "loads"
MANY = 20  # least N for which u must rise with the load


def offered(run: StoredRun) -> float:
    """Rate of all access links together / rate of the bottleneck."""
    return round(run["flows"] * run["access_bps"] / run["rate_bps"], 2)


def prepare(runs: StoredRuns) -> Data:
    """Estimates by load and number of flows, and the TCP equation's prediction for the most flows."""
    selected = runs.select(STEM, needs=("access_bps",))
    by_load = grouped(selected, offered)
    curves = {load: series(of, "flows", "utilization_mean") for load, of in by_load.items()}
    predicted = {load: _predicted(of[-1], load) for load, of in by_load.items()}
    return {"provenance": runs.provenance(), "curves": curves, "predicted": predicted}


def _predicted(run: StoredRun, load: float) -> float:
    """The TCP equation with windows of one BDP of the access link, the most that a flow can send through it."""
    share = model.bdp(run) / run["flows"]
    return model.used_with_equal(1, share, run["buffer_packets"], load * share)


def draw(data: Data) -> look.Figure:
    """One panel, numbers of flows logarithmic."""
    figure, ax = look.new_panel(look.PAGE_IN * 0.72, 2.8)
    curves = _curves(data)
    if panel.draw(ax, curves, "flows N"):
        panel.draw_ns3(ax, curves, _curves(data.get("ns3", {"curves": {}})))
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure


def _curves(data: Data) -> list[panel.Curve]:
    return panel.numbered({f"load {load:g}": of for load, of in data["curves"].items()})


def facts(data: Data) -> list[Fact]:
    """The smallest step of u between neighbouring loads; then u at each load, with a prediction for the most flows."""
    rows = []
    for n in sorted({n for points in data["curves"].values() for n in points if n >= MANY}):
        used = [points[n].value for points in data["curves"].values() if n in points]
        if len(used) > 1:
            steps = [after - before for before, after in pairwise(used)]
            what = f"N = {n}: smallest step of u from one load to the next larger ({len(steps)} steps)"
            rows.append(Fact(what, "above 0", None, exactly(min(steps)), "", headline=n == 100, over_points=True))
    for load, points in data["curves"].items():
        for n, estimate in points.items():
            predicted = data["predicted"][load] if n == max(points) else None
            rows.append(Fact(f"load {load:g}, N = {n}: u", "", predicted, estimate, ""))
    return rows


FIGURE = PaperFigure("figure_05a", CAPTION, (STEM,), prepare, draw, facts)
