# SPDX-License-Identifier: MIT
"""Figure 10: how many Reno flows lose in the same RTT."""

from __future__ import annotations

import numpy as np

from analysis.figures import algorithms
from analysis.figures.common import GREY, RED, Data
from analysis.papers import curves, look
from analysis.papers.curves import Curve, Line, Panel, Shape
from analysis.papers.facts import Fact
from analysis.papers.paper_runs import PaperRuns
from analysis.papers.series import IS_ONE_BDP, bdp, grouped, series
from analysis.papers.spang2021 import notebook
from analysis.theory import many_flows

CAPTION = (
    "number of Reno flows that lose a packet in a base RTT with a loss, against the number of flows, B = 1 BDP; with "
    "the bound that Theorem 5 needs."
)
SWEEPS = ("reno-depth", "published")
SIDESTEP = 1.08  # so that markers do not hide each other
PLOTTED_DELTA = 2.0  # "The bound n^2/(2 BDP) + sqrt(n) of Theorem 5 is also plotted" (5.6)
PAPER = "a good estimate for few flows, an overestimate for many"


def prepare(runs: PaperRuns) -> Data:
    """By flows, of the runs whose buffer is one BDP: mean over the RTTs with a loss beside the plotted bound, and 99th
    percentile beside the bound with the measured Delta; and the notebook's mean over intervals of 5 ms.
    """
    selected = runs.select(SWEEPS[0], IS_ONE_BDP, needs=("utilization_p01",), cc="reno")
    as_published = runs.select(SWEEPS[1], imported=False, cc="reno", buffer_packets=notebook.LOSERS_BUFFER)
    if not selected:
        return {"panels": {}, "facts": [Fact("flows that lose in an RTT", PAPER, None, None, "flows")]}
    exact, flows = bdp(selected[0]), list(grouped(selected, "flows"))
    p99 = series(selected, "flows", lambda run: run.percentile("flows_losing", 99))
    in_5ms = series(as_published, "flows", notebook.losers_in_5ms)
    of_published = [] if runs.beside is None else runs.beside.losers.filter(cc="reno").iter_rows(named=True)
    published = {row["flows"]: row["mean"] for row in of_published}
    dense, shade = np.geomspace(flows[0], flows[-1], 200), algorithms.color("reno")
    bound = [many_flows.flows_seeing_loss(exact, n, PLOTTED_DELTA) for n in dense]
    lines = [
        Line(dense, bound, "bound", "--", width=0.9, behind=True),
        Line(flows, flows, "all n", ":", GREY, 0.8, behind=True),
        Line(list(p99), [estimate.value for estimate in p99.values()], "99th percentile", "_", shade,
             more={"markersize": 6, "markeredgewidth": 1.0}),
        Line([n * SIDESTEP for n in in_5ms], [estimate.value for estimate in in_5ms.values()],
             f"mean in 5 ms, B = {notebook.LOSERS_BUFFER}", "s", shade, more={"markersize": 2.6, "mfc": "white"}),
        Line([n / SIDESTEP for n in published], list(published.values()), "published: mean in 5 ms", "x", RED,
             more={"markersize": 3.5}),
    ]  # fmt: skip
    mean, delta, rows = series(selected, "flows", "flows_losing_per_rtt"), series(selected, "flows", "delta"), []
    for n in flows:
        bound_of_n = many_flows.flows_seeing_loss(exact, n, PLOTTED_DELTA)
        rows.append(Fact(f"n = {n}: flows that lose in an RTT, mean", PAPER, bound_of_n, mean.get(n), "flows"))
        if n in in_5ms:
            said = f"published: {published[n]:.3g}" if n in published else ""
            what = f"n = {n}: flows that lose in 5 ms, B = {notebook.LOSERS_BUFFER} packets, mean"
            rows.append(Fact(what, said, None, in_5ms[n], "flows"))
        if n in delta:
            bound_of_n, of_delta = many_flows.flows_seeing_loss(exact, n, delta[n].value), f"{delta[n].value:.3g}"
            what = f"n = {n}: flows that lose in an RTT, 99th percentile (bound with the measured Δ of {of_delta})"
            rows.append(Fact(what, "", bound_of_n, p99.get(n), "flows"))
    through = Line(list(mean), [estimate.value for estimate in mean.values()], shade=shade, width=0.5)
    drawn = Curve(mean, shade, width=0.5, beside=[through], key={"linestyle": "-"})
    panel = Panel({"mean": drawn}, [line for line in lines if len(line.x)])
    return {"panels": {"": panel}, "flows": flows, "facts": rows}


def _axes(ax: look.Axes, _: Panel, data: Data) -> None:
    flows = data["flows"]
    ax.get_lines()[0].set_label(r"$n^2$/(2 BDP) + √n")  # here, because a formula in the data would be taken for text
    ax.set_yscale("log", base=2)
    ax.set_yticks(flows, [str(n) for n in flows])
    look.log2_axis(ax, flows, 1.2)
    ax.set_ylim(0.85, flows[-1] * 1.2)


FIGURE = curves.figure(
    "figure_10", CAPTION, SWEEPS, prepare,
    Shape("Reno flows n", "flows with a loss,\nof a base RTT with any", (look.COLUMN_IN, 2.6), log="", y={},
          more=_axes, absent="no valid run with a loss", legend={"loc": "upper left", "handlelength": 1.6}),
)  # fmt: skip
