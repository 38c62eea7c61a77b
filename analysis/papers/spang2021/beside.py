# SPDX-License-Identifier: MIT
"""Our depths minus the published depths, point by point (BESIDE=path), and the share of percentiles that are near.

Each point has one published run at most. A percentile of this run is inside our runs' spread if it lies in their 95 %
prediction interval, widened by one packet because both depths are rounded.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy import stats

from analysis.arithmetic.statistics import CONFIDENCE, Interval
from analysis.figures import algorithms
from analysis.figures.common import BLACK, GREY, Data
from analysis.papers import look
from analysis.papers.facts import Fact, exactly
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.series import bdp, grouped
from analysis.papers.spang2021.artifact import Published

CAPTION = (
    "depth of the queue at the points of the published runs: our 1st, 50th and 99th percentile minus the published "
    "one. Each marker is one number of flows with one buffer; dotted lines are at ±0.03 and ±0.08 BDP. "
    "`published.yaml` has the points, and `artifact.py` converts a published reading into a depth."
)
STEM = "published"
PERCENTILES = {"p01": "1st percentile", "p50": "median", "p99": "99th percentile"}
NEAR, FAR = 0.03, 0.08  # BDP; the facts count the percentiles within each distance
ROUNDING = 1.0  # packets
ABOUT_ONE_BDP = (153, 175)  # the two buffers (packets) nearest to the paper's 166
ROOMS_OF = (16, 32, 64)
NO_DATA = "give BESIDE=path of a checkout\nof the published data"


class Point(NamedTuple):
    """One quantile at one point, in packets."""

    cc: str
    flows: int
    buffer: int
    which: str  # a key of PERCENTILES
    measured: tuple[float, ...]  # one number per run
    published: int | None

    @property
    def mean(self) -> float:
        return float(np.mean(self.measured))

    @property
    def difference(self) -> float:
        return math.nan if self.published is None else self.mean - self.published

    @property
    def is_inside(self) -> bool | None:
        """Whether the published number is inside our runs' spread. None without a published number, and for a single
        run of ours, which has no spread.
        """
        count = len(self.measured)
        if self.published is None or count < 2:
            return None
        spread = float(np.std(self.measured, ddof=1)) * math.sqrt(1 + 1 / count)
        return bool(abs(self.difference) <= stats.t.ppf((1 + CONFIDENCE) / 2, count - 1) * spread + ROUNDING)


def prepare(runs: PaperRuns) -> Data:
    """Every point, with the published number where there is one."""
    selected = runs.select(STEM, needs=tuple(f"depth_{name}_packets" for name in PERCENTILES))
    points, curves = [], {}
    for cc in runs.paper.algorithms:
        of_cc = [run for run in selected if run["cc"] == cc]
        if of_cc:
            points += _points(cc, of_cc, runs.beside)
            curves[cc] = ""
    exact = bdp(selected[0]) if selected else math.nan
    return {"points": points, "ccs": list(curves), "bdp": exact, "beside": runs.beside is not None,
            "least": {"measured": _least(points, "measured"), "published": _least(points, "published")}}  # fmt: skip


def _points(cc: str, of_cc: list[PaperRun], beside: Published | None) -> list[Point]:
    published = {}
    if beside is not None:
        for row in beside.depths.iter_rows(named=True):
            published[row["cc"], row["flows"], row["buffer_packets"]] = row
    points = []
    for flows, same in grouped(of_cc, "flows").items():
        for buffer, runs in grouped(same, "buffer_packets").items():
            row = published.get((cc, flows, buffer), {})
            for which in PERCENTILES:
                depths = tuple(float(run[f"depth_{which}_packets"]) for run in runs)
                points.append(Point(cc, flows, buffer, which, depths, row.get(which)))
    return points


def _least(points: list[Point], whose: str) -> dict[tuple[str, int], tuple[float, float]]:
    """For each (algorithm, flows): the next smaller tried buffer (0 if there is none), and the smallest buffer that was
    enough (infinity if none was). The criterion is the notebook's: 99 % of departing packets leave a packet behind. If
    several runs have the same buffer, all must meet the criterion.
    """
    enough: dict[tuple[str, int], dict[int, bool]] = {}
    for point in points:
        if point.which == "p01" and (whose == "measured" or point.published is not None):
            numbers = point.measured if whose == "measured" else (float(point.published or 0),)
            enough.setdefault((point.cc, point.flows), {})[point.buffer] = min(numbers) >= 1
    brackets = {}
    for key, of_buffer in enough.items():
        least = min((buffer for buffer, is_enough in of_buffer.items() if is_enough), default=math.inf)
        brackets[key] = (max((buffer for buffer in of_buffer if buffer < least), default=0.0), least)
    return brackets


def draw(data: Data) -> look.Figure:
    """A row for each percentile, a column for each algorithm."""
    ccs = data["ccs"]
    figure, axes = look.new_figure(look.PAGE_IN, 4.2, len(PERCENTILES), max(len(ccs), 1), sharex=True, sharey=True)
    if not ccs or not data["beside"]:
        return look.absent(*axes.flat, text=NO_DATA if ccs else "no valid run")
    buffers = sorted({point.buffer for point in data["points"]})
    flows = sorted({point.flows for point in data["points"]})
    for row, which in enumerate(PERCENTILES):
        for column, cc in enumerate(ccs):
            _panel(axes[row, column], [p for p in data["points"] if (p.cc, p.which) == (cc, which)], data, buffers)
            if row == 0:
                axes[row, column].set_title(algorithms.name(cc), loc="left", pad=3)
        axes[row, 0].set_ylabel(f"{PERCENTILES[which]}\n(BDP)")
    filled = "filled: the published run is inside our runs' spread"
    figure.suptitle(f"ours less published; {filled}", fontsize=look.LABEL_POINTS - 0.5, color=GREY, x=0.01, ha="left")
    for ax in axes[-1]:
        look.log2_axis(ax, flows, 1.4)
        ax.set_xlabel("flows")
    return figure


def _panel(ax: look.Axes, points: list[Point], data: Data, buffers: list[int]) -> None:
    """Buffers side by side at their number of flows, the smallest on the left."""
    ax.axhline(0, color=BLACK, linewidth=0.6)
    for bound in (-FAR, -NEAR, NEAR, FAR):
        ax.axhline(bound, color=GREY, linewidth=0.5, linestyle=":")
    for point in points:
        if point.published is not None:
            step = 1.07 ** (buffers.index(point.buffer) - (len(buffers) - 1) / 2)
            ax.plot(point.flows * step, point.difference / data["bdp"], algorithms.marker(point.cc), markersize=2.2,
                    color=algorithms.color(point.cc), markerfacecolor="white" if not point.is_inside else None,
                    markeredgewidth=0.6)  # fmt: skip


def facts(data: Data) -> list[Fact]:
    """The distance of each algorithm from the published runs, the part of the buffer that Reno uses (packets), and the
    least buffers of each algorithm.
    """
    rows, exact = [], data["bdp"]
    for cc in data["ccs"]:
        known = [point for point in data["points"] if point.cc == cc and point.published is not None]
        if not known:
            continue
        off = np.array([abs(point.difference) for point in known]) / exact
        inside = [point.is_inside for point in known if point.is_inside is not None]
        who = f"{algorithms.name(cc)}, {len(known)} percentiles of depth"
        said = "≤ 0.03" if cc == "reno" else ""
        rows.append(Fact(f"{who}: median distance", said, None, exactly(float(np.median(off))), "BDP"))
        rows.append(Fact(f"{who}: share within {NEAR} BDP", "", None, exactly(float((off <= NEAR).mean())), ""))
        share, said = exactly(float((off <= FAR).mean())), "≥ 0.9" if cc == "reno" else ""
        rows.append(Fact(f"{who}: share within {FAR} BDP", said, None, share, "", headline=True))
        if inside:
            share = exactly(float(np.mean(inside)))
            rows.append(Fact(f"{who}: share inside our runs' spread", "", 0.95, share, "", headline=True))
    return rows + _rooms(data) + _brackets(data)


def _rooms(data: Data) -> list[Fact]:
    """Reno's B minus the 1st percentile of depth: the mean over the two buffers around one BDP."""
    rows = []
    for n in ROOMS_OF:
        about = [
            p for p in data["points"] if (p.cc, p.flows, p.which) == ("reno", n, "p01") and p.buffer in ABOUT_ONE_BDP
        ]
        if len(about) == len(ABOUT_ONE_BDP):
            mean_room = float(np.mean([point.buffer - point.mean for point in about]))
            published_rooms = [point.buffer - point.published for point in about if point.published is not None]
            published = f"{np.mean(published_rooms):.3g} packets" if len(published_rooms) == len(about) else ""
            what = f"Reno, n = {n}: B less the 1st percentile, mean of B = {ABOUT_ONE_BDP[0]} and {ABOUT_ONE_BDP[1]}"
            rows.append(Fact(what, published, None, exactly(mean_room), "packets", headline=True))
    return rows


def _brackets(data: Data) -> list[Fact]:
    rows = []
    for (cc, n), (low, high) in data["least"]["measured"].items():
        published = data["least"]["published"].get((cc, n))
        said = f"{published[0]:.0f} to {published[1]:.0f} packets" if published else ""
        value = high if math.isfinite(high) else low
        what = f"{algorithms.name(cc)}, n = {n}: least buffer by the notebook's criterion, of the buffers tried"
        bracket = Interval(value, low, high, 1)
        rows.append(Fact(what, said, None, bracket, "packets"))
    return rows


def points(data: Data) -> pl.DataFrame:
    """Every percentile of every point: ours (the mean of `runs`), published, and whether the published run is inside
    our runs' spread.
    """
    schema = {"cc": pl.String, "flows": pl.Int64, "buffer_packets": pl.Int64, "percentile": pl.String}
    schema |= {"runs": pl.Int64, "measured": pl.Float64, "published": pl.Float64, "published_is_inside": pl.Boolean}
    rows = [
        (point.cc, point.flows, point.buffer, point.which, len(point.measured), point.mean, point.published,
         point.is_inside)
        for point in data["points"]
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")


FIGURE = PaperFigure("beside", CAPTION, (STEM,), prepare, draw, facts, points=points)
