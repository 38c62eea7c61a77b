# SPDX-License-Identifier: MIT
"""Figure 10: how many Reno flows lose in the same RTT."""

from __future__ import annotations

import numpy as np

from analysis.figures import algorithms
from analysis.figures.common import BLACK, GREY, RED, Data
from analysis.papers import look
from analysis.papers.columns import IS_ONE_BDP
from analysis.papers.facts import Fact
from analysis.papers.paper import PaperFigure
from analysis.papers.series import bdp, grouped, series
from analysis.papers.spang2021 import notebook
from analysis.papers.stored_runs import StoredRuns
from analysis.statistics import mean_interval
from analysis.theory import many_flows

CAPTION = (
    "number of Reno flows that lose a packet in a base RTT with a loss, against the number of flows, B = 1 BDP; with "
    "the bound that Theorem 5 needs."
)
SWEEPS = ("reno-depth", "published")
SIDESTEP = 1.08  # so that markers do not hide each other
PLOTTED_DELTA = 2.0  # "The bound n^2/(2 BDP) + sqrt(n) of Theorem 5 is also plotted" (5.6)
PAPER = "a good estimate for few flows, an overestimate for many"


def prepare(runs: StoredRuns) -> Data:
    """Mean and 99th percentile over the RTTs with a loss, by flows, of the runs whose buffer is one BDP; and the
    notebook's mean over intervals of 5 ms.
    """
    selected = runs.select(SWEEPS[0], IS_ONE_BDP, needs=("utilization_p01",), cc="reno")
    as_published = runs.select(SWEEPS[1], imported=False, cc="reno", buffer_packets=notebook.LOSERS_BUFFER)
    flows = list(grouped(selected, "flows"))
    exact = bdp(selected[0]) if selected else None
    dense = np.geomspace(flows[0], flows[-1], 200) if flows else np.empty(0)
    return {
        "mean": series(selected, "flows", "flows_losing_per_rtt"),
        "p99": series(selected, "flows", lambda run: run.percentile("flows_losing", 99)),
        "delta": series(selected, "flows", "delta"),
        "in_5ms": series(as_published, "flows", notebook.losers_in_5ms),
        "published": {}
        if runs.beside is None
        else {row["flows"]: row["mean"] for row in runs.beside.losers.filter(cc="reno").iter_rows(named=True)},
        "bound": {n: many_flows.flows_seeing_loss(exact, n, PLOTTED_DELTA) for n in flows if exact},
        "line": np.array([dense, [many_flows.flows_seeing_loss(exact or 1, n, PLOTTED_DELTA) for n in dense]]),
        "bdp": exact,
        "provenance": runs.provenance(),
    }


def draw(data: Data) -> look.Figure:
    """Both axes logarithmic."""
    figure, ax = look.new_panel(look.COLUMN_IN, 2.6)
    if not data["mean"]:
        return look.absent(ax, text="no valid run with a loss")
    flows = list(data["bound"])
    ax.set_yscale("log", base=2)
    ax.set_yticks(flows, [str(n) for n in flows])
    look.log2_axis(ax, flows, 1.2)
    ax.set_ylim(0.85, flows[-1] * 1.2)
    ax.plot(*data["line"], "--", color=BLACK, linewidth=0.9, label=r"$n^2$/(2 BDP) + √n")
    ax.plot(flows, flows, ":", color=GREY, linewidth=0.8, label="all n")
    shade = algorithms.color("reno")
    look.interval_bars(ax, data["mean"], data["mean"].values(), shade)
    ax.plot(list(data["mean"]), [estimate.value for estimate in data["mean"].values()], color=shade, linewidth=0.5)
    ax.plot([], [], "o-", color=shade, linewidth=0.5, label="mean")
    ax.plot(list(data["p99"]), [estimate.value for estimate in data["p99"].values()], "_", color=shade, markersize=6,
            markeredgewidth=1.0, label="99th percentile")  # fmt: skip
    if data["in_5ms"]:
        means = [estimate.value for estimate in data["in_5ms"].values()]
        ax.plot([n * SIDESTEP for n in data["in_5ms"]], means, "s", color=shade, markersize=2.6, mfc="white",
                label=f"mean in 5 ms, B = {notebook.LOSERS_BUFFER}")  # fmt: skip
    if data["published"]:
        places = [n / SIDESTEP for n in data["published"]]
        ax.plot(places, list(data["published"].values()), "x", color=RED, markersize=3.5,
                label="published: mean in 5 ms")  # fmt: skip
    ax.set_xlabel("Reno flows n")
    ax.set_ylabel("flows with a loss,\nof a base RTT with any")
    ax.legend(loc="upper left", frameon=False, handlelength=1.6)
    return figure


def facts(data: Data) -> list[Fact]:
    """For each number of flows: the mean of the flows that lose in an RTT beside the plotted bound, and the 99th
    percentile beside the bound with the measured Delta.
    """
    rows = []
    for n, bound in data["bound"].items():
        mean = data["mean"].get(n)
        rows.append(Fact(f"n = {n}: flows that lose in an RTT, mean", PAPER, bound, mean, "flows"))
        if n in data["in_5ms"]:
            said = f"published: {data['published'][n]:.3g}" if n in data["published"] else ""
            what = f"n = {n}: flows that lose in 5 ms, B = {notebook.LOSERS_BUFFER} packets, mean"
            rows.append(Fact(what, said, None, data["in_5ms"][n], "flows"))
        what = f"n = {n}: flows that lose in an RTT, 99th percentile"
        delta = data["delta"].get(n)
        if delta and data["bdp"]:
            bound_with_delta = many_flows.flows_seeing_loss(data["bdp"], n, delta.value)
            what += f" (bound with the measured Δ of {delta.value:.3g})"
            rows.append(Fact(what, "", bound_with_delta, data["p99"].get(n), "flows"))
    if not rows:
        rows.append(Fact("flows that lose in an RTT", PAPER, None, mean_interval([]), "flows"))
    return rows


FIGURE = PaperFigure("figure_10", CAPTION, SWEEPS, prepare, draw, facts)
