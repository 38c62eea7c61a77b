# SPDX-License-Identifier: MIT
"""Figure 8: the density of the sum of all windows beside the normal distribution."""

from __future__ import annotations

import numpy as np

from analysis.figures.common import BLACK, GREY, Data
from analysis.papers import look
from analysis.papers.appenzeller2004 import aggregate
from analysis.papers.appenzeller2004.profiles import COLORS, NAMES, PROFILES
from analysis.papers.appenzeller2004.section_3 import STEM as BY_FLOWS
from analysis.papers.facts import Fact, absent
from analysis.papers.paper import PaperFigure
from analysis.papers.series import grouped, mean_bdp
from analysis.papers.stored_runs import StoredRun, StoredRuns
from analysis.statistics import mean_interval
from analysis.theory import gaussian

CAPTION = (
    "density over time of the sum of the windows (packets in flight) of 100 flows, and the normal distribution with "
    "its mean and deviation; a panel for each sender. Dotted: below the BDP the link is idle, above BDP + B the queue "
    "is full."
)
ENOUGH = 0.05  # largest distance from the normal distribution that counts as normal
BARS = 60


def prepare(runs: StoredRuns) -> Data:
    """By sender: the density of the first run of the sweep `aggregate`; distance and deviation by number of flows."""
    densities, by_flows = {}, {}
    for profile in PROFILES:
        if selected := runs.select(aggregate.STEM, profile=profile):
            densities[profile] = _density(selected[0])
        groups = grouped(runs.select(BY_FLOWS, profile=profile), "flows")
        by_flows[profile] = {flows: [_numbers(run) for run in of] for flows, of in groups.items()}
    return {"provenance": runs.provenance(), "densities": densities, "by_flows": by_flows}


def _density(run: StoredRun) -> Data:
    held = run.distribution("aggregate_window_over_time_packets")
    return {"held": held, "buffer": run["buffer_packets"]} | _numbers(run)


def _numbers(run: StoredRun) -> Data:
    held = run.distribution("aggregate_window_over_time_packets")
    mean, deviation = aggregate.moments(held)
    bdp = mean_bdp(run)
    return {
        "flows": run["flows"], "bdp": bdp, "mean": mean, "deviation": deviation,
        "distance": aggregate.distance_from_normal(held),
        "model": gaussian.queue_deviation(bdp, run["buffer_packets"], run["flows"]),
        "synchronization": run.value("aggregate_window_packets", "synchronization"),
    }  # fmt: skip


def draw(data: Data) -> look.Figure:
    """A panel for each sender."""
    if not data["densities"]:
        return look.absent(look.new_panel(look.COLUMN_IN, 2.6)[1])
    figure, axes = look.new_figure(look.PAGE_IN, 2.6, 1, len(data["densities"]))
    for ax, (profile, density) in zip(axes[0], data["densities"].items(), strict=True):
        _draw_density(ax, density, COLORS[profile])
        ax.set_title(NAMES[profile])
    axes[0, 0].set_ylabel("density over time")
    axes[0, 0].legend(loc="upper left", frameon=False)
    return figure


def _draw_density(ax: look.Axes, density: Data, shade: str) -> None:
    values, ns = density["held"]
    mean, deviation = density["mean"], density["deviation"]
    heights, edges = np.histogram(values, bins=BARS, weights=ns / ns.sum(), density=False)
    ax.stairs(heights / np.diff(edges), edges, fill=True, color=shade, alpha=0.6, label="measured")
    x = np.linspace(edges[0], edges[-1], 300)
    normal = np.exp(-(((x - mean) / deviation) ** 2) / 2) / deviation / np.sqrt(2 * np.pi)
    ax.plot(x, normal, color=BLACK, label="normal")
    for at, text in ((density["bdp"], "BDP"), (density["bdp"] + density["buffer"], "BDP + B")):
        ax.axvline(at, color=GREY, linestyle=":", linewidth=0.8)
        look.note(ax, text, (at, 1.0), (2, 5), xycoords=("data", "axes fraction"), color=GREY)
    ax.set_xlabel("sum of all windows (packets)")
    ax.set_ylim(bottom=0)


def facts(data: Data) -> list[Fact]:
    """Distance from normal and deviation by sender, for the drawn run and by number of flows."""
    rows = []
    for profile in PROFILES:
        who, groups = NAMES[profile], data["by_flows"][profile]
        if profile in data["densities"]:
            rows += _facts(f"{who}, drawn run, ", [data["densities"][profile]], headline=True)
        for each in groups.values():
            rows += _facts(f"{who}, ", each, headline=False)
        held_from = [n for n, each in groups.items() if all(run["distance"] <= ENOUGH for run in each)]
        what = f"{who}: least number of flows with a distance of {ENOUGH:g} or less in all runs"
        if held_from:
            rows.append(Fact(what, "", None, mean_interval([float(min(held_from))]), "flows"))
        elif groups:
            rows.append(absent(f"{what}: none of {', '.join(map(str, groups))}"))
    return rows


def _facts(prefix: str, runs: list[Data], headline: bool) -> list[Fact]:
    first = runs[0]
    who = f"{prefix}n = {first['flows']}"
    return [
        Fact(
            f"{who}: distance from the normal distribution", "normal", 0.0,
            mean_interval(run["distance"] for run in runs), "Kolmogorov's",
        ),
        Fact(
            f"{who}: deviation of the sum", "(BDP + B)/(3√3√n) at most", first["model"],
            mean_interval(run["deviation"] for run in runs), "packets", headline=headline,
        ),
        Fact(f"{who}: synchronization S", "", 0.0, mean_interval(run["synchronization"] for run in runs), ""),
    ]  # fmt: skip


FIGURE = PaperFigure("figure_08", CAPTION, (aggregate.STEM, BY_FLOWS), prepare, draw, facts)
