# SPDX-License-Identifier: MIT
"""The two clocks: points of the sweeps that were also measured in real time, at a rate that a machine keeps up with
(CLOCK=real), against the same in virtual time. Rate, RTT and MTU differ; the BDP in packets, and all that is given in
BDPs, packets and RTTs, are the same.

A point is a marker with its intervals in both directions, filled where they have nothing in common, to a packet: then
the rectangle that they span does not touch the diagonal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from analysis.figures.common import BLACK, GREY, Data
from analysis.metrics import UTILIZATION_WINDOW_RTTS
from analysis.papers import look as common
from analysis.papers.series import ALGORITHMS, bdp, exactly
from analysis.papers.stored_runs import REAL
from analysis.statistics import Interval, mean_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.papers.look import Fact
    from analysis.papers.stored_runs import Run, Runs

SWEEPS = ("single-flow-buffers", "reno-depth", "others-depth", "twenty-packets", "ecn")  # a few points of each figure
MISSING = "no point measured by both clocks:\nmake figures PAPER=spang2021 CLOCK=real\nmeasures in real time"
ROWS, COLUMNS = 3, 3


class Measure(NamedTuple):
    """One panel: what it is of a run (None: not measured, or not telling), and how it is written. What differs by less
    than the `grain` is the same: a packet, as far as it counts in this measure.
    """

    name: str
    unit: str
    of: Callable[[Run], float | None]
    grain: Callable[[Run], float]
    log: bool = False


def _percent(column: str) -> Callable[[Run], float | None]:
    return lambda run: None if run[column] is None else 100 * run[column]


def _over_bdp(column: str) -> Callable[[Run], float | None]:
    return lambda run: None if run[column] is None else run[column] / bdp(run)


def _losers(run: Run) -> float | None:
    """Of one flow it can only be that one."""
    found = run["flows_losing_per_rtt"]
    return None if found is None or run["flows"] < 2 else 100 * found / run["flows"]


def _of_a_window(run: Run) -> float:
    return 100 / (UTILIZATION_WINDOW_RTTS * bdp(run))


def _of_the_bdp(run: Run) -> float:
    return 1 / bdp(run)


MEASURES = (
    Measure("utilization, mean", "%", _percent("utilization_mean"), _of_a_window),
    Measure("utilization, p1 of 10-RTT windows", "%", _percent("utilization_p01"), _of_a_window),
    Measure("packets that meet a queue", "%", _percent("queue_nonempty_fraction"), _of_a_window),
    Measure("depth, 1st percentile", "BDP", _over_bdp("depth_p01_packets"), _of_the_bdp),
    Measure("depth, median", "BDP", _over_bdp("depth_p50_packets"), _of_the_bdp),
    Measure("depth, 99th percentile", "BDP", _over_bdp("depth_p99_packets"), _of_the_bdp),
    Measure("fall of the queue, median", "BDP", lambda run: run["drained_of_bdp"], _of_the_bdp),
    Measure("flows that lose in an RTT with a loss", "%", _losers, lambda run: 0.0),
    Measure("Δ of almost fairness", "", lambda run: run["delta"], lambda run: run["flows"] / bdp(run), log=True),
)


class Both(NamedTuple):
    """What virtual and what real time say of one measure, and what difference there is none."""

    virtual: Interval
    real: Interval
    grain: float

    @property
    def meet(self) -> bool | None:
        """Whether the intervals have something in common, to the grain. A single run has its number alone, which is the
        stricter test; None if both are of single runs.
        """
        if self.virtual.low is None and self.real.low is None:
            return None
        (low, high), (least, most) = _ends(self.virtual), _ends(self.real)
        room = 1.01 * self.grain  # whole packets over a BDP that is not quite the same
        return low <= most + room and least <= high + room

    @property
    def difference(self) -> float:
        """Real less virtual."""
        return self.real.value - self.virtual.value


class Pair(NamedTuple):
    """One point: what both say of each measure; None where one of them does not."""

    label: str
    cc: str
    values: tuple[Both | None, ...]


def prepare(runs: Runs) -> Data:
    """Every point that both clocks have, by sweep; and those that only real time has."""
    pairs, alone = [], []
    for stem in SWEEPS:
        for real in _points(runs.select(stem + REAL, clock="real")):
            virtual = runs.select(stem, *_same(real[0]), clock="virtual")
            label = _label(real[0])
            if virtual:
                pairs.append(Pair(label, real[0]["cc"], tuple(_both(m, virtual, real) for m in MEASURES)))
            else:
                alone.append(label)
    return {"pairs": pairs, "alone": alone, "provenance": runs.provenance()}


def _points(runs: Iterable[Run]) -> list[list[Run]]:
    """Runs that differ in nothing but their repetition, together."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run["point"], []).append(run)
    return list(found.values())


def _same(run: Run) -> list[pl.Expr]:
    """What makes runs of the other clock the same point: algorithm, flows, policy, and a buffer and a threshold that
    are, over the BDP, less than a packet from its own.
    """
    exact = pl.col("buffer_packets") / pl.col("buffer_over_bdp")
    conditions = [pl.col(name).eq_missing(pl.lit(run[name])) for name in ("cc", "flows", "traffic", "mode")]
    for name in ("buffer_packets", "ecn_threshold_packets"):
        own = run[name]
        near = pl.col(name).is_null() if own is None else (pl.col(name) * bdp(run) / exact - own).abs() < 1
        conditions.append(near)
    return conditions


def _label(run: Run) -> str:
    flows = f"n = {run['flows']}"
    if run["ecn_threshold_packets"] is not None:
        return f"{common.name(run['cc'])}, {flows}, marks from {run['ecn_threshold_packets'] / bdp(run):.2g} BDP on"
    return f"{common.name(run['cc'])}, {flows}, B = {run['buffer_over_bdp']:.2g} BDP"


def _both(measure: Measure, virtual: list[Run], real: list[Run]) -> Both | None:
    first, second = (mean_interval(measure.of(run) for run in runs) for runs in (virtual, real))
    return None if first is None or second is None else Both(first, second, measure.grain(real[0]))


# Drawing --------------------------------------------------------------------------------------------------------------


def draw(data: Data) -> Figure:
    """A panel for each measure."""
    from matplotlib.lines import Line2D

    if not data["pairs"]:
        figure, axes = common.new_figure(common.COLUMN_IN, 2.4)
        common.absent(axes[0, 0], MISSING)
        axes[0, 0].set_xticks([])
        axes[0, 0].set_yticks([])
        common.footer(figure, data["provenance"])
        return figure
    figure, axes = common.new_figure(common.PAGE_IN, 7.4, ROWS, COLUMNS)
    for at, (measure, ax) in enumerate(zip(MEASURES, axes.flat, strict=True)):
        _panel(ax, measure, [(pair.cc, pair.values[at]) for pair in data["pairs"]])
    for ax in axes[:, 0]:
        ax.set_ylabel("real time")
    for ax in axes[-1]:
        ax.set_xlabel("virtual time")
    present = [cc for cc in ALGORITHMS if cc in {pair.cc for pair in data["pairs"]}]
    handles = [
        Line2D(
            [],
            [],
            color=common.color(cc),
            marker=common.MARKERS[cc],
            markerfacecolor="none",
            linestyle="",
            label=common.name(cc),
        )
        for cc in present
    ]
    handles.append(Line2D([], [], color=GREY, marker="o", linestyle="", label="filled: intervals do not meet"))
    handles.append(Line2D([], [], color=GREY, linewidth=0.7, label="equal"))
    figure.legend(handles=handles, loc="outside upper left", ncols=len(handles), frameon=False, handlelength=1.4)
    common.footer(figure, data["provenance"])
    return figure


def _panel(ax: Axes, measure: Measure, points: list[tuple[str, Both | None]]) -> None:
    from matplotlib.ticker import MaxNLocator

    drawn = [(cc, both) for cc, both in points if both is not None]
    ax.set_title(measure.name + (f" ({measure.unit})" if measure.unit else ""), loc="left", pad=3)
    if not drawn:
        common.absent(ax, "not measured by both")
        return
    if measure.log:
        ax.set_xscale("log", base=2)
        ax.set_yscale("log", base=2)
    for cc, both in drawn:
        shade, (virtual, real, _) = common.color(cc), both
        for x, y in ((_ends(virtual), [real.value] * 2), ([virtual.value] * 2, _ends(real))):
            ax.plot(x, y, color=shade, linewidth=0.9, solid_capstyle="butt")
        fill = shade if both.meet is False else "none"
        ax.plot(virtual.value, real.value, common.MARKERS.get(cc, "o"), color=shade, markerfacecolor=fill,
                markeredgewidth=0.8)  # fmt: skip
    low, high = _limits([end for _, both in drawn for found in both[:2] for end in _ends(found)], measure)
    ax.plot([low, high], [low, high], color=GREY, linewidth=0.7, zorder=0)
    ax.set(xlim=(low, high), ylim=(low, high), aspect="equal")
    ax.grid(axis="x", color="#EBEBEB", linewidth=0.6)
    for axis in (ax.xaxis, ax.yaxis):
        if measure.log:
            axis.set_major_formatter(lambda value, _: f"{value:g}")
        else:
            axis.set_major_locator(MaxNLocator(5))  # the same on both
    ax.minorticks_off()
    verdicts = [both.meet for _, both in drawn]
    text = f"{verdicts.count(True)} of {len(verdicts) - verdicts.count(None)} meet"
    text += f"\n{verdicts.count(None)} of single runs" if None in verdicts else ""
    ax.text(0.97, 0.03, text, transform=ax.transAxes, ha="right", fontsize=common.LABEL_POINTS, color=BLACK)


def _ends(found: Interval) -> list[float]:
    return [found.value if end is None else end for end in (found.low, found.high)]


def _limits(values: list[float], measure: Measure) -> tuple[float, float]:
    """The same for both axes, with room around what is drawn."""
    if measure.log:  # bars of intervals that reach 0 end at the edge
        values = [value for value in values if value > 0]
        return min(values) / 1.25, max(values) * 1.25
    low, high = min(values), max(values)
    room = 0.08 * (high - low) or 0.02 * (abs(high) or 1)
    return low - room, high + room


# Words ----------------------------------------------------------------------------------------------------------------


def facts(data: Data) -> list[Fact]:
    """Of each measure: at how many points the clocks agree within their intervals, how far apart they are at half of
    the points, and where most.
    """
    if not data["pairs"]:
        return [common.Fact("every measure: points whose intervals of both clocks meet", "", None, None, "")]
    rows = []
    for at, measure in enumerate(MEASURES):
        known = [(pair.label, both) for pair in data["pairs"] if (both := pair.values[at]) is not None]
        judged = [both.meet for _, both in known if both.meet is not None]
        what = f"{measure.name}: points whose intervals of both clocks meet"
        count = exactly(judged.count(True)) if judged else None
        rows.append(common.Fact(what, "", None, count, f"of {len(judged)}"))
        if known:
            middle = exactly(median(abs(both.difference) for _, both in known))
            what = f"{measure.name}: real and virtual time apart, median over points"
            rows.append(common.Fact(what, "", None, middle, measure.unit))
            label, both = max(known, key=lambda point: abs(point[1].difference))
            what = f"{measure.name}: real time less virtual time where it is most"
            rows.append(common.Fact(what, "", None, exactly(both.difference), measure.unit, label))
    return rows


def table(data: Data) -> str:
    """Every point and measure in Markdown, virtual and real side by side; and what has no partner."""
    lines = ["| point | | virtual time | real time | real − virtual | intervals |", "|---|---|---|---|---|---|"]
    for pair in data["pairs"]:
        for measure, both in zip(MEASURES, pair.values, strict=True):
            if both is None:
                continue
            verdict = {True: "meet", False: "**do not meet**", None: "of single runs"}[both.meet]
            name = measure.name + (f" ({measure.unit})" if measure.unit else "")
            lines.append(
                f"| {pair.label} | {name} | {both.virtual} | {both.real} | {both.difference:+.3g} | {verdict} |"
            )
    folded = f"<details><summary>{len(data['pairs'])} points, each measure</summary>\n\n" + "\n".join(lines)
    alone = f"Without valid runs in virtual time, and so not compared: {'; '.join(data['alone'])}."
    return "\n\n".join([folded + "\n\n</details>"] * bool(data["pairs"]) + [alone] * bool(data["alone"]))
