# SPDX-License-Identifier: MIT
"""Figure 8: the density of the sum of all windows beside the normal distribution."""

from __future__ import annotations

import numpy as np

from analysis.figures.common import BLACK, BLUE, GREY, Data
from analysis.papers import look
from analysis.papers.appenzeller2004 import aggregate
from analysis.papers.appenzeller2004.section_3 import STEM as BY_FLOWS
from analysis.papers.facts import Fact
from analysis.papers.paper import PaperFigure
from analysis.papers.series import grouped, mean_bdp
from analysis.papers.stored_runs import StoredRun, StoredRuns
from analysis.statistics import mean_interval
from analysis.theory import gaussian

CAPTION = (
    "density over time of the sum of the windows of 100 flows, and the normal distribution with its mean and "
    "deviation. Marks: the link is idle below the BDP, the queue full above BDP + B."
)
ENOUGH = 0.05  # asked of the distance from the normal distribution
BARS = 60


def prepare(runs: StoredRuns) -> Data:
    """The density of the first run; distance and deviation by flows, of the runs with other numbers of flows, too."""
    selected = runs.select(aggregate.STEM)
    by_flows = {flows: [_numbers(run) for run in of] for flows, of in grouped(runs.select(BY_FLOWS), "flows").items()}
    data: Data = {"provenance": runs.provenance(), "density": None, "by_flows": by_flows}
    if not selected:
        return data
    run = selected[0]
    density = {"held": run.distribution("aggregate_window_over_time_packets"), "buffer": run["buffer_packets"]}
    return data | {"density": density | _numbers(run)}


def _numbers(run: StoredRun) -> Data:
    held = run.distribution("aggregate_window_over_time_packets")
    mean, deviation = aggregate.moments(held)
    bdp = mean_bdp(run)
    return {
        "flows": run["flows"], "bdp": bdp, "mean": mean, "deviation": deviation,
        "distance": aggregate.distance_from_normal(held),
        "model": gaussian.queue_deviation(bdp, run["buffer_packets"], run["flows"]),
        "synchronization": run.summary["aggregate_window_packets"]["synchronization"],
    }  # fmt: skip


def draw(data: Data) -> look.Figure:
    """One panel."""
    figure, ax = look.new_panel(look.COLUMN_IN, 2.6)
    density = data["density"]
    if density is None:
        return look.absent(ax)
    values, ns = density["held"]
    mean, deviation = density["mean"], density["deviation"]
    heights, edges = np.histogram(values, bins=BARS, weights=ns / ns.sum(), density=False)
    ax.stairs(heights / np.diff(edges), edges, fill=True, color=BLUE, alpha=0.6, label="measured")
    x = np.linspace(edges[0], edges[-1], 300)
    normal = np.exp(-(((x - mean) / deviation) ** 2) / 2) / deviation / np.sqrt(2 * np.pi)
    ax.plot(x, normal, color=BLACK, label="normal")
    for at, text in ((density["bdp"], "BDP"), (density["bdp"] + density["buffer"], "BDP + B")):
        ax.axvline(at, color=GREY, linestyle=":", linewidth=0.8)
        look.note(ax, text, (at, 1.0), (2, 5), xycoords=("data", "axes fraction"), color=GREY)
    ax.set_xlabel("sum of all windows (packets)")
    ax.set_ylabel("density over time")
    ax.set_ylim(bottom=0)
    ax.legend(loc="upper left", frameon=False)
    return figure


def facts(data: Data) -> list[Fact]:
    """Distance from normal and deviation, for the drawn run and by number of flows."""
    rows = []
    groups = dict(data["by_flows"])
    if data["density"]:
        rows += _facts("drawn run, ", [data["density"]], headline=True)
    for each in groups.values():
        rows += _facts("", each, headline=False)
    held_from = [n for n, each in groups.items() if all(run["distance"] <= ENOUGH for run in each)]
    if held_from:
        what = f"least number of flows with a distance of {ENOUGH:g} or less"
        rows.append(Fact(what, "", None, mean_interval([float(min(held_from))]), "flows", headline=True))
    return rows


def _facts(prefix: str, runs: list[Data], headline: bool) -> list[Fact]:
    first = runs[0]
    who = f"{prefix}n = {first['flows']}"
    return [
        Fact(
            f"{who}: distance from the normal distribution", "normal", 0.0,
            mean_interval(run["distance"] for run in runs), "Kolmogorov's", headline=headline,
        ),
        Fact(
            f"{who}: deviation of the sum", "(BDP + B)/(3√3√n) at most", first["model"],
            mean_interval(run["deviation"] for run in runs), "packets", headline=headline,
        ),
        Fact(f"{who}: synchronization S", "", 0.0, mean_interval(run["synchronization"] for run in runs), ""),
    ]  # fmt: skip


FIGURE = PaperFigure("figure_08", CAPTION, (aggregate.STEM, BY_FLOWS), prepare, draw, facts)
