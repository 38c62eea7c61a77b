# SPDX-License-Identifier: MIT
"""Figure 13: the least buffer for 95 % of the link, with short flows beside the long ones and without them."""

from __future__ import annotations

from analysis.figures.common import BLACK, BLUE, ORANGE, Data
from analysis.papers import brackets, look
from analysis.papers.appenzeller2004 import mixes
from analysis.papers.facts import Fact
from analysis.papers.paper import PaperFigure
from analysis.papers.series import grouped
from analysis.papers.stored_runs import StoredRuns
from analysis.statistics import Interval
from analysis.theory.many_flows import sqrt_rule

CAPTION = (
    "the least buffer for a utilization of 95 %, against the number of long flows; with short flows of 14 packets at a "
    "load of 0.2 beside them, and without. 400 Mb/s, 80 ms."
)
LEVEL = 0.95
LARGEST = 500
SIDESTEP = 1.04  # both kinds are drawn this factor left and right of n, so that they do not hide each other
KINDS = {mixes.STEM: ("with short flows", BLUE), mixes.ALONE: ("long flows alone", ORANGE)}


def prepare(runs: StoredRuns) -> Data:
    """Brackets by kind and number of long flows."""
    by_stem = {
        stem: {n: brackets.of_utilization(of, LEVEL) for n, of in grouped(runs.select(stem), "flows").items()}
        for stem in KINDS
    }
    return {"provenance": runs.provenance(), "brackets": by_stem}


def draw(data: Data) -> look.Figure:
    """Both axes logarithmic."""
    figure, ax = look.new_panel(look.COLUMN_IN, 2.8)
    flows = brackets.axes_of(ax, data["brackets"].values(), "long flows n", 1.2)
    if not flows:
        return figure
    ax.plot(flows, [sqrt_rule(mixes.BDP_PACKETS, n) for n in flows], "--", color=BLACK, linewidth=0.9, label="BDP/√n")
    for at, (stem, (text, shade)) in enumerate(KINDS.items()):
        for n, edges in data["brackets"][stem].items():
            brackets.draw(ax, n * SIDESTEP ** (2 * at - 1), edges, shade)
        for n, edges in data.get("ns3", {}).get("brackets", {}).get(stem, {}).items():
            brackets.draw_ns3(ax, n * SIDESTEP ** (2 * at - 1), edges, shade)
        ax.plot([], [], "o", color=shade, label=text)
    ax.legend(loc="lower left", frameon=False)
    return figure


def facts(data: Data) -> list[Fact]:
    """Least buffers in BDP/sqrt(n), and the ratio of the least buffers with and without short flows."""
    rows = []
    for stem, (text, _) in KINDS.items():
        for n, edges in data["brackets"][stem].items():
            rule = sqrt_rule(mixes.BDP_PACKETS, n)
            what = f"n = {n}, {text}: least buffer"
            measured = edges.interval(rule)
            rows.append(Fact(what, "", 1.0, measured, "BDP/√n", "", edges.open_text(rule)))
    for n, edges in data["brackets"][mixes.STEM].items():
        alone = data["brackets"][mixes.ALONE].get(n)
        both = (edges.interval(), alone.interval() if alone else None)
        if both[0] is not None and both[1] is not None:
            ratio = Interval(both[0].value / both[1].value, None, None, 1)
            rows.append(
                Fact(f"n = {n}: with short flows over without", "no more", 1.0, ratio, "", headline=n == LARGEST)
            )
    return rows


FIGURE = PaperFigure("figure_13", CAPTION, (mixes.STEM, mixes.ALONE), prepare, draw, facts)
