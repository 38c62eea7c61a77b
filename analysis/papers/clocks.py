# SPDX-License-Identifier: MIT
"""The figure that compares the two clocks: points of sweeps that were measured in virtual time and also in real time
(CLOCK=real). If a machine does not keep up with a sweep's rate, the points in real time have another rate, RTT and MTU.
The BDP in packets stays the same, and so does every parameter that a spec gives in BDPs, packets and RTTs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median
from typing import NamedTuple

import polars as pl

from analysis.arithmetic.statistics import Interval, mean_interval
from analysis.figures import algorithms
from analysis.figures.common import BLACK, GREY, Data
from analysis.measure.metrics import UTILIZATION_WINDOW_RTTS
from analysis.papers import look
from analysis.papers.facts import Fact, exactly
from analysis.papers.paper import REAL, PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.series import BDP, bdp
from analysis.wording import algorithm_names

CAPTION = (
    "points of the sweeps that were also measured in real time (CLOCK=real), against the same in virtual time. Where a "
    "machine does not keep up with the paper's rate, rate, RTT and MTU differ. The BDP in packets is the same, and so "
    "is every setting in BDPs, packets or RTTs."
)
MISSING = "no point measured by both clocks:\nmake figures PAPER={} CLOCK=real\nmeasures in real time"
ROWS, COLUMNS = 4, 3


def figure(sweeps: tuple[str, ...]) -> PaperFigure:
    """The comparison for a paper: every point of these sweeps that their real-time versions have as well."""
    return PaperFigure(
        "clocks", CAPTION, sweeps, partial(prepare, sweeps), draw, facts, points=points, compares_clocks=True
    )


class ClockMeasure(NamedTuple):
    """One panel: a quantity of the run table, its name here and its unit. `over`: the quantity is a part of that one.
    `grain` is by how much one packet changes the number: numbers that differ by less count as equal.
    """

    name: str
    unit: str
    quantity: str
    grain: Callable[[PaperRun], float]
    over: str = ""
    log: bool = False

    @property
    def title(self) -> str:
        return self.name + (f" ({self.unit})" if self.unit else "")

    def of(self, run: PaperRun) -> float | None:
        """The number in `unit`; None if not measured, and for a single flow, which is always 100 % of the flows."""
        value, over = run[self.quantity], run[self.over] if self.over else 1
        if value is None or not over or (self.over == "flows" and over < 2):
            return None
        if self.unit == "%":
            return 100 * value / over
        return value / bdp(run) if self.quantity.endswith("_packets") else value


def _of_a_window(run: PaperRun) -> float:
    return 100 / (UTILIZATION_WINDOW_RTTS * bdp(run))


def _of_the_bdp(run: PaperRun) -> float:
    return 1 / bdp(run)


def _of_arrivals(run: PaperRun) -> float:
    return 100 / run["arrivals"]


MEASURES = (
    ClockMeasure("utilization, mean", "%", "utilization_mean", _of_a_window),
    ClockMeasure("utilization, p1 of 10-RTT windows", "%", "utilization_p01", _of_a_window),
    ClockMeasure("packets that meet a queue", "%", "queue_nonempty_fraction", _of_a_window),
    ClockMeasure("depth, mean over packets", "BDP", "depth_mean_packets", _of_the_bdp),
    ClockMeasure("depth, 1st percentile", "BDP", "depth_p01_packets", _of_the_bdp),
    ClockMeasure("depth, median", "BDP", "depth_p50_packets", _of_the_bdp),
    ClockMeasure("depth, 99th percentile", "BDP", "depth_p99_packets", _of_the_bdp),
    ClockMeasure("fall of the queue, median", "BDP", "drained_of_bdp", _of_the_bdp),
    ClockMeasure("packets in flight, mean", "BDP", "in_flight_mean_packets", _of_the_bdp),
    ClockMeasure("packets dropped", "%", "drops", _of_arrivals, over="arrivals"),
    ClockMeasure("flows that lose in an RTT with a loss", "%", "flows_losing_per_rtt", lambda run: 0.0, over="flows"),
    ClockMeasure("Δ of almost fairness", "", "delta", lambda run: run["flows"] / bdp(run), log=True),
)


class ClockComparison(NamedTuple):
    """One measure of a point in virtual and in real time, and the difference below which they are the same."""

    virtual: Interval
    real: Interval
    grain: float

    @property
    def meet(self) -> bool | None:
        """Whether the intervals overlap, or miss each other by no more than the grain. A single run counts as an
        interval of length 0, so the test is stricter. None if both sides are single runs.
        """
        if self.virtual.low is None and self.real.low is None:
            return None
        (low, high), (least, most) = self.virtual.ends, self.real.ends
        room = 1.01 * self.grain  # 1 %: the two clocks' BDPs differ a little
        return low <= most + room and least <= high + room

    @property
    def difference(self) -> float:
        """Real time minus virtual time."""
        return self.real.value - self.virtual.value


class ClockPoint(NamedTuple):
    """One point with each measure; None where a clock does not have it."""

    label: str
    cc: str
    values: tuple[ClockComparison | None, ...]


def prepare(sweeps: tuple[str, ...], runs: PaperRuns) -> Data:
    """Every point that both clocks have, in the order of `sweeps`; and the labels of points that only real time has."""
    points, alone = [], []
    for stem in sweeps:
        by_point: dict[str, list[PaperRun]] = {}
        for run in runs.select(stem + REAL, clock="real"):
            by_point.setdefault(run["point"], []).append(run)
        for real in by_point.values():
            virtual, label = _virtual(runs, stem, real[0]), _label(real[0])
            if virtual:
                points.append(ClockPoint(label, _cc(real[0]), tuple(_both(m, virtual, real) for m in MEASURES)))
            else:
                alone.append(label)
    return {"points": points, "alone": alone, "missing": MISSING.format(runs.paper.key)}


def _virtual(runs: PaperRuns, stem: str, real: PaperRun) -> list[PaperRun]:
    """The runs of a point in virtual time: at the rate of the run in real time if there are any, else at any rate."""
    virtual = runs.select(stem, *_same_point(real), clock="virtual")
    return [run for run in virtual if run["rate_bps"] == real["rate_bps"]] or virtual


def _same_point(run: PaperRun) -> list[pl.Expr]:
    """A run of the other clock is the same point if algorithm, flows, traffic, profile and policy are the same, and if
    its buffer and its threshold, scaled by the BDP, differ from this run's by less than a packet.
    """
    names = ("cc", "finite_cc", "flows", "traffic", "flow_sizes", "load", "profile", "mode")
    conditions = [pl.col(name).eq_missing(pl.lit(run[name])) for name in names]
    for name in ("buffer_packets", "ecn_threshold_packets"):
        packets = run[name]
        near = pl.col(name).is_null() if packets is None else (pl.col(name) * bdp(run) / BDP - packets).abs() < 1
        conditions.append(near)
    return conditions


def _cc(run: PaperRun) -> str:
    """The congestion control of the long flows, or of the finite flows if the run has no long flows."""
    return str(run["cc"] or run["finite_cc"])


def _label(run: PaperRun) -> str:
    name = algorithms.name(_cc(run))
    if run["flow_sizes"] is not None:
        return f"{name}, flows of {run['flow_sizes']}, load {run['load']:g}, {run['rate_bps'] / 1e6:g} Mb/s"
    flows = f"n = {run['flows']}"
    if run["ecn_threshold_packets"] is not None:
        return f"{name}, {flows}, marks from {run['ecn_threshold_packets'] / bdp(run):.2g} BDP on"
    buffer = f"{run['buffer_over_bdp']:.2g} BDP"
    if run["mode"] == "egress-ecn":
        return f"{name}, {flows}, marks at departure from {buffer} on"
    return f"{name}, {flows}, B = {buffer}"


def _both(measure: ClockMeasure, virtual: list[PaperRun], real: list[PaperRun]) -> ClockComparison | None:
    first, second = (mean_interval(measure.of(run) for run in runs) for runs in (virtual, real))
    return None if first is None or second is None else ClockComparison(first, second, measure.grain(real[0]))


# Drawing --------------------------------------------------------------------------------------------------------------


def draw(data: Data) -> look.Figure:
    """A panel for each measure."""
    from matplotlib.lines import Line2D

    if not data["points"]:
        figure, ax = look.new_panel(look.COLUMN_IN, 2.4)
        look.absent(ax, text=data["missing"])
        ax.set_xticks([])
        ax.set_yticks([])
        return figure
    figure, axes = look.new_figure(look.PAGE_IN, 9.6, ROWS, COLUMNS)
    for at, (measure, ax) in enumerate(zip(MEASURES, axes.flat, strict=True)):
        _panel(ax, measure, [(point.cc, point.values[at]) for point in data["points"]])
    for ax in axes[:, 0]:
        ax.set_ylabel("real time")
    for ax in axes[-1]:
        ax.set_xlabel("virtual time")
    present = {point.cc for point in data["points"]}
    handles = [
        Line2D([], [], color=algorithms.color(cc), marker=algorithms.marker(cc), markerfacecolor="none", linestyle="",
               label=algorithms.name(cc))
        for cc in sorted(present, key=[*algorithm_names.NAMES, *present].index)
    ]  # fmt: skip
    handles.append(Line2D([], [], color=GREY, marker="o", linestyle="", label="filled: intervals do not meet"))
    handles.append(Line2D([], [], color=GREY, linewidth=0.7, label="equal"))
    figure.legend(handles=handles, loc="outside upper left", ncols=len(handles), frameon=False, handlelength=1.4)
    return figure


def _panel(ax: look.Axes, measure: ClockMeasure, points: list[tuple[str, ClockComparison | None]]) -> None:
    from matplotlib.ticker import MaxNLocator

    drawn = [(cc, both) for cc, both in points if both is not None]
    ax.set_title(measure.title, loc="left", pad=3)
    if not drawn:
        look.absent(ax, text="not measured by both")
        return
    if measure.log:
        ax.set_xscale("log", base=2)
        ax.set_yscale("log", base=2)
    for cc, both in drawn:
        shade, (virtual, real, _) = algorithms.color(cc), both
        for x, y in ((virtual.ends, [real.value] * 2), ([virtual.value] * 2, real.ends)):
            ax.plot(x, y, color=shade, linewidth=0.9, solid_capstyle="butt")
        fill = shade if both.meet is False else "none"
        ax.plot(virtual.value, real.value, algorithms.marker(cc), color=shade, markerfacecolor=fill,
                markeredgewidth=0.8)  # fmt: skip
    ends = [end for _, both in drawn for interval in both[:2] for end in interval.ends]
    if measure.log:  # bars of intervals that reach 0 end at the edge
        ends = [end for end in ends if end > 0]
        low, high = min(ends) / 1.25, max(ends) * 1.25
    else:
        room = 0.08 * (max(ends) - min(ends)) or 0.02 * (abs(max(ends)) or 1)
        low, high = min(ends) - room, max(ends) + room
    ax.plot([low, high], [low, high], color=GREY, linewidth=0.7, zorder=0)
    ax.set(xlim=(low, high), ylim=(low, high), aspect="equal")
    ax.grid(axis="x", color="#EBEBEB", linewidth=0.6)
    for axis in (ax.xaxis, ax.yaxis):
        if measure.log:
            axis.set_major_formatter(lambda value, _: f"{value:g}")
        else:
            axis.set_major_locator(MaxNLocator(5))  # the same ticks on both axes
    ax.minorticks_off()
    verdicts = [both.meet for _, both in drawn]
    text = f"{verdicts.count(True)} of {len(verdicts) - verdicts.count(None)} meet"
    text += f"\n{verdicts.count(None)} of single runs" if None in verdicts else ""
    ax.text(0.97, 0.03, text, transform=ax.transAxes, ha="right", fontsize=look.LABEL_POINTS, color=BLACK)


# Words ----------------------------------------------------------------------------------------------------------------


def facts(data: Data) -> list[Fact]:
    """For each measure: the number of points where the intervals of the clocks meet, the median over points of the
    absolute difference, and the point with the largest difference.
    """
    if not data["points"]:
        return [Fact("every measure: points whose intervals of both clocks meet", "", None, None, "")]
    rows = []
    for at, measure in enumerate(MEASURES):
        known = [(point.label, both) for point in data["points"] if (both := point.values[at]) is not None]
        judged = [both.meet for _, both in known if both.meet is not None]
        name, unit = measure.name, measure.unit
        count = exactly(judged.count(True)) if judged else None
        rows.append(Fact(f"{name}: points whose intervals of both clocks meet", "", None, count, f"of {len(judged)}"))
        if known:
            middle = exactly(median(abs(both.difference) for _, both in known))
            label, both = max(known, key=lambda point: abs(point[1].difference))
            largest = exactly(both.difference)
            what = f"{name}: distance of real from virtual time, median over points"
            rows.append(Fact(what, "", None, middle, unit))
            what = f"{name}: largest difference, real time less virtual time"
            rows.append(Fact(what, "", None, largest, unit, label))
    return rows


def points(data: Data) -> pl.DataFrame:
    """Every point and measure, virtual and real time side by side. A point that only real time has is a row without
    numbers.
    """
    numbers = [f"{clock}{end}" for clock in ("virtual", "real") for end in ("", "_low", "_high", "_runs")]
    schema = {"point": pl.String, "measure": pl.String, "unit": pl.String, **dict.fromkeys(numbers, pl.Float64)}
    rows = [
        (point.label, measure.name, measure.unit or None, *both.virtual, *both.real, both.meet)
        for point in data["points"]
        for measure, both in zip(MEASURES, point.values, strict=True)
        if both is not None
    ]
    alone = [(label, *[None] * (len(schema))) for label in data["alone"]]
    frame = pl.DataFrame([*rows, *alone], schema=schema | {"intervals_meet": pl.Boolean}, orient="row")
    return frame.cast({"virtual_runs": pl.Int64, "real_runs": pl.Int64})
