# SPDX-License-Identifier: MIT
"""The effect of dropping on arrival: every number of the paper's figures that was measured in both sets of runs, and
the depths of `factors`, whose sweep has both modes itself. The second set has MODE=tail-drop. The figure `clocks` is
left out.
"""

from __future__ import annotations

from typing import NamedTuple

from analysis.arithmetic.statistics import Interval
from analysis.figures import algorithms
from analysis.figures.common import BLACK, DISTINCT, Data
from analysis.papers import look
from analysis.papers.facts import Fact, exactly
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRuns
from analysis.papers.spang2021 import factors
from analysis.papers.spang2021.beside import PERCENTILES

CAPTION = (
    "numbers of the other figures that were measured with drops at departure and also on arrival: those in packets "
    "(left) and those without a unit (right). A number off the line differs between the two. Columns `measured` "
    "and `second` of those figures' CSV files have all numbers."
)
NAME = "arrival"
ON_ARRIVAL = "tail-drop"
MARKERS = "os^Dv<>"
UNITS = {"packets": "packets", "": "without a unit"}
NO_DATA = "no number was measured in both sets:\nmake figures PAPER=spang2021 MODE=tail-drop"


class Pair(NamedTuple):
    """One number of a figure in both sets."""

    figure: str
    what: str
    unit: str
    departure: Interval
    arrival: Interval

    @property
    def is_apart(self) -> bool | None:
        """Whether the intervals do not meet; None if one of them lacks an end, as for a single run."""
        ends = (self.departure.low, self.departure.high, self.arrival.low, self.arrival.high)
        if None in ends:
            return None
        (low, high), (other_low, other_high) = self.departure.ends, self.arrival.ends
        return high < other_low or other_high < low


def prepare(runs: PaperRuns) -> Data:
    """The pairs of all figures, in the order of the page; for each figure, the number of pairs whose intervals do not
    meet.
    """
    pairs: list[Pair] = []
    second = runs.second_set()
    for figure in runs.paper.figures:
        if second is None or figure.name in (NAME, factors.FIGURE.name) or figure.compares_clocks:
            continue
        on_arrival = {fact.what: fact for fact in figure.facts(figure.prepare(second)) if fact.measured is not None}
        if not on_arrival:
            continue
        pairs += [
            Pair(figure.title, fact.what, fact.unit, fact.measured, measured)
            for fact in figure.facts(figure.prepare(runs))
            if fact.measured and fact.what in on_arrival and (measured := on_arrival[fact.what].measured)
        ]
    if second is not None:
        runs.used.update(second.used)
        runs.left_out.update(second.left_out)
    groups = factors.prepare(runs)["groups"]
    pairs += [
        Pair(factors.FIGURE.title, f"{algorithms.name(cc)}, n = {flows}: {name} of depth", "packets",
             group[factors.AS_THE_SET][which], group[ON_ARRIVAL][which])
        for (cc, flows), group in groups.items()
        if factors.AS_THE_SET in group and ON_ARRIVAL in group
        for which, name in PERCENTILES.items()
    ]  # fmt: skip
    rows = []
    for title in dict.fromkeys(pair.figure for pair in pairs):
        judged = [pair.is_apart for pair in pairs if pair.figure == title and pair.is_apart is not None]
        what = f"{title}: numbers whose intervals with drops at departure and on arrival do not meet"
        count, none = exactly(float(sum(judged))) if judged else None, "no intervals: each point has one run"
        rows.append(Fact(what, "", None, count, f"of {len(judged)}", none=none))
    return {"pairs": pairs, "facts": rows}


def draw(data: Data) -> look.Figure:
    """A panel for numbers of packets and one for numbers without a unit: x with drops at departure, y on arrival."""
    figure, axes = look.new_figure(look.PAGE_IN, 3.4, 1, len(UNITS))
    pairs: list[Pair] = data["pairs"]
    titles = list(dict.fromkeys(pair.figure for pair in pairs))
    for ax, (unit, title) in zip(axes[0], UNITS.items(), strict=True):
        shown = [pair for pair in pairs if pair.unit == unit]
        if not shown:
            look.absent(ax, text=NO_DATA)
            continue
        for number, name in enumerate(titles):
            some = [pair for pair in shown if pair.figure == name]
            x, y = [pair.departure.value for pair in some], [pair.arrival.value for pair in some]
            ax.plot(x, y, MARKERS[number % len(MARKERS)], color=DISTINCT[number % len(DISTINCT)], markersize=2.6,
                    markerfacecolor="none", markeredgewidth=0.7, label=name,
                    zorder=3)  # fmt: skip
        values = [end.value for pair in shown for end in (pair.departure, pair.arrival)]
        low, high = min(*values, 0), max(*values, 1e-3)
        high += 0.03 * (high - low)
        ax.plot((low, high), (low, high), color=BLACK, linewidth=0.6)
        ax.set_xlim(low, high)
        ax.set_ylim(low, high)
        ax.set_title(title, loc="left", pad=3)
        ax.set_xlabel("drops at departure")
    axes[0, 0].set_ylabel("drops on arrival")
    if pairs:
        axes[0, 0].legend(loc="upper left", frameon=False, handlelength=1.0)
    return figure


FIGURE = PaperFigure(NAME, CAPTION, (factors.STEM,), prepare, draw)
