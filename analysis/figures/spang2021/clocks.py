# SPDX-License-Identifier: MIT
"""The two clocks: points of the sweeps that were also measured in real time, at a rate that a machine keeps up with
(CLOCK=real), against the same in virtual time. Rate, RTT and MTU differ; the BDP in packets, and all that is given in
BDPs, packets and RTTs, are the same.

A point is a marker with its intervals in both directions, filled where they have nothing in common: then the rectangle
that they span does not touch the diagonal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from analysis.figures.common import BLACK, GREY, Data
from analysis.figures.spang2021 import common
from analysis.figures.spang2021.series import ALGORITHMS, bdp, exactly
from analysis.statistics import Interval, bootstrap

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.figures.spang2021.common import Fact
    from analysis.figures.spang2021.runs import Run, Runs

SWEEPS = ("single-flow-buffers", "reno-depth", "others-depth", "twenty-packets", "ecn")  # those with a `real` version
REAL = "-real"  # of the names of their directories
MISSING = "no point measured by both clocks:\nmake figures PAPER=spang2021 CLOCK=real\nmeasures in real time"
ROWS, COLUMNS = 3, 3


class Measure(NamedTuple):
    """One panel: what it is of a run (None: not measured, or not telling), and how it is written."""

    name: str
    unit: str
    of: Callable[[Run], float | None]
    log: bool = False


def _percent(column: str) -> Callable[[Run], float | None]:
    return lambda run: None if run[column] is None else 100 * run[column]


def _over_bdp(column: str) -> Callable[[Run], float | None]:
    return lambda run: None if run[column] is None else run[column] / bdp(run)


def _losers(run: Run) -> float | None:
    """Of one flow it can only be that one."""
    found = run["flows_losing_per_rtt"]
    return None if found is None or run["flows"] < 2 else 100 * found / run["flows"]


MEASURES = (
    Measure("utilization, mean", "%", _percent("utilization_mean")),
    Measure("utilization, p1 of 10-RTT windows", "%", _percent("utilization_p01")),
    Measure("packets that meet a queue", "%", _percent("queue_nonempty_fraction")),
    Measure("depth, 1st percentile", "BDP", _over_bdp("depth_p01_packets")),
    Measure("depth, median", "BDP", _over_bdp("depth_p50_packets")),
    Measure("depth, 99th percentile", "BDP", _over_bdp("depth_p99_packets")),
    Measure("fall of the queue, median", "BDP", lambda run: run["drained_of_bdp"]),
    Measure("flows that lose in an RTT with a loss", "%", _losers),
    Measure("Δ of almost fairness", "", lambda run: run["delta"], log=True),
)


class Pair(NamedTuple):
    """One point: of each measure what virtual and what real time say; None where one of them does not."""

    label: str
    cc: str
    values: tuple[tuple[Interval, Interval] | None, ...]


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


def _both(measure: Measure, virtual: list[Run], real: list[Run]) -> tuple[Interval, Interval] | None:
    first, second = (bootstrap(measure.of(run) for run in runs) for runs in (virtual, real))
    return None if first is None or second is None else (first, second)


def meet(one: Interval, other: Interval) -> bool | None:
    """Whether the intervals have something in common. A single run has its number alone, which is the stricter test;
    None if both are of single runs.
    """
    if one.low is None and other.low is None:
        return None
    (low, high), (least, most) = _ends(one), _ends(other)
    return low <= most and least <= high


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


def _panel(ax: Axes, measure: Measure, points: list[tuple[str, tuple[Interval, Interval] | None]]) -> None:
    from matplotlib.ticker import MaxNLocator

    drawn = [(cc, *both) for cc, both in points if both is not None]
    ax.set_title(measure.name + (f" ({measure.unit})" if measure.unit else ""), loc="left", pad=3)
    if not drawn:
        common.absent(ax, "not measured by both")
        return
    if measure.log:
        ax.set_xscale("log", base=2)
        ax.set_yscale("log", base=2)
    for cc, virtual, real in drawn:
        shade = common.color(cc)
        for x, y in ((_ends(virtual), [real.value] * 2), ([virtual.value] * 2, _ends(real))):
            ax.plot(x, y, color=shade, linewidth=0.9, solid_capstyle="butt")
        fill = shade if meet(virtual, real) is False else "none"
        ax.plot(virtual.value, real.value, common.MARKERS.get(cc, "o"), color=shade, markerfacecolor=fill,
                markeredgewidth=0.8)  # fmt: skip
    low, high = _limits([end for _, *both in drawn for found in both for end in _ends(found)], measure)
    ax.plot([low, high], [low, high], color=GREY, linewidth=0.7, zorder=0)
    ax.set(xlim=(low, high), ylim=(low, high), aspect="equal")
    ax.grid(axis="x", color="#EBEBEB", linewidth=0.6)
    for axis in (ax.xaxis, ax.yaxis):
        if measure.log:
            axis.set_major_formatter(lambda value, _: f"{value:g}")
        else:
            axis.set_major_locator(MaxNLocator(5))  # the same on both
    ax.minorticks_off()
    verdicts = [meet(virtual, real) for _, virtual, real in drawn]
    text = f"{verdicts.count(True)} of {len(verdicts) - verdicts.count(None)} meet"
    text += f"\n{verdicts.count(None)} of single runs" if None in verdicts else ""
    ax.text(0.97, 0.03, text, transform=ax.transAxes, ha="right", fontsize=common.LABEL_POINTS, color=BLACK)


def _ends(found: Interval) -> list[float]:
    return [found.value if end is None else end for end in (found.low, found.high)]


def _limits(values: list[float], measure: Measure) -> tuple[float, float]:
    """The same for both axes, with room around what is drawn."""
    low, high = min(values), max(values)
    if measure.log:
        return low / 1.25, high * 1.25
    room = 0.08 * (high - low) or 0.02 * (abs(high) or 1)
    return low - room, high + room


# Words ----------------------------------------------------------------------------------------------------------------


def facts(data: Data) -> list[Fact]:
    """Of each measure: at how many points the clocks agree within their intervals, and where they are most apart."""
    if not data["pairs"]:
        return [common.Fact("every measure: points whose intervals of both clocks meet", "", None, None, "")]
    rows = []
    for at, measure in enumerate(MEASURES):
        known = [(pair.label, *both) for pair in data["pairs"] if (both := pair.values[at]) is not None]
        judged = [verdict for _, virtual, real in known if (verdict := meet(virtual, real)) is not None]
        what = f"{measure.name}: points whose intervals of both clocks meet"
        count = exactly(judged.count(True)) if judged else None
        rows.append(common.Fact(what, "", None, count, f"of {len(judged)}"))
        if known:
            label, virtual, real = max(known, key=lambda point: abs(point[2].value - point[1].value))
            what = f"{measure.name}: real time less virtual time where it is most"
            rows.append(common.Fact(what, "", None, exactly(real.value - virtual.value), measure.unit, label))
    return rows


def table(data: Data) -> str:
    """Every point and measure in Markdown, virtual and real side by side; and what has no partner."""
    lines = ["| point | | virtual time | real time | real − virtual | intervals |", "|---|---|---|---|---|---|"]
    for pair in data["pairs"]:
        for measure, both in zip(MEASURES, pair.values, strict=True):
            if both is None:
                continue
            virtual, real = both
            verdict = {True: "meet", False: "**do not meet**", None: "of single runs"}[meet(virtual, real)]
            name = measure.name + (f" ({measure.unit})" if measure.unit else "")
            lines.append(
                f"| {pair.label} | {name} | {virtual} | {real} | {real.value - virtual.value:+.3g} | {verdict} |"
            )
    folded = f"<details><summary>{len(data['pairs'])} points, each measure</summary>\n\n" + "\n".join(lines)
    alone = f"Without valid runs in virtual time, and so not compared: {'; '.join(data['alone'])}."
    return "\n\n".join([folded + "\n\n</details>"] * bool(data["pairs"]) + [alone] * bool(data["alone"]))
