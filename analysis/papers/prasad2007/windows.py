# SPDX-License-Identifier: MIT
"""Figure 3: the share of time above a utilization, against the averaging time of the utilization."""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import polars as pl

from analysis.arithmetic.statistics import mean_interval
from analysis.figures.common import BLUE, ORANGE, Data
from analysis.papers import look
from analysis.papers.facts import Fact, each, exactly
from analysis.papers.packet_trace import REFUSED
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.prasad2007.rows import OF_USERS
from analysis.papers.series import Series
from analysis.read.postcards import wire_bytes

CAPTION = (
    "share of averaging windows with a utilization above 0.9 and 0.95, against the length T of the windows. Markers: "
    "145 users at a tenth of the rate; dashed: 1,450 users at full scale. The paper has a run of U1000 with a mean of "
    "0.68."
)
STEM, FULL_STEM = "windows", "windows-full-scale"
LEVELS = (0.9, 0.95)
SHADES = {0.9: BLUE, 0.95: ORANGE}
TIMES_S = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
PRINTED_S, PRINTED = 10.0, "about 0.07"
# Standard deviation with which the printed share of normal means around 0.68 is above 0.95
NEEDED = (0.95 - 0.68) / NormalDist().inv_cdf(1 - 0.07)


class Above(NamedTuple):
    """Of one run: `shares` of windows by level and window length, the standard `deviation` of utilization by window
    length, the `mean` utilization, and the `largest` transfer in bytes. Lengths with fewer than two windows are left
    out.
    """

    shares: dict[str, dict[str, float]]
    deviation: dict[str, float]
    mean: float | None
    largest: int | None


def above(run: PaperRun) -> Above:
    """The numbers of one run. Levels and window lengths are text, because they are keys of JSON objects. Raises
    InputError.
    """
    cards = run.table("postcards").filter(
        pl.col("egress_port") == run.summary["bottleneck_port"], (pl.col("flags") & REFUSED) == 0
    )
    start, end = run.summary["measurement_window_mono_ns"]
    left = (cards["enqueue_mono_ns"] + cards["sojourn_ns"]).to_numpy()
    order = np.argsort(left, kind="stable")
    sent = np.concatenate(([0], np.cumsum(wire_bytes(cards["packet_bytes"].to_numpy()[order]))))
    deviation: dict[str, float] = {}
    shares: dict[str, dict[str, float]] = {f"{level:g}": {} for level in LEVELS}
    for length_s in TIMES_S:
        count = int((end - start) / 1e9 / length_s)
        if count < 2:
            break
        edges = start + (np.arange(count + 1) * length_s * 1e9).astype(np.int64)
        used = np.diff(sent[np.searchsorted(left[order], edges)]) * 8 / (run["rate_bps"] * length_s)
        for level in LEVELS:
            shares[f"{level:g}"][f"{length_s:g}"] = float((used > level).mean())
        deviation[f"{length_s:g}"] = float(used.std(ddof=1))
    largest = run.table("flows").filter("measured")["size_bytes"].cast(pl.Int64).to_list()
    return Above(shares, deviation, run["utilization_mean"], max(largest, default=None))


def prepare(runs: PaperRuns) -> Data:
    """Mean utilization, the share at each averaging time, the deviation at the paper's, and the largest transfer: means
    over runs, by level and length of the windows.
    """
    by_place, rows = {}, []
    for where, stem in (("a tenth of the rate", STEM), ("full scale", FULL_STEM)):
        measured = [run.measure("windows", Above, above) for run in runs.select(stem, **OF_USERS)]
        rows.append(Fact(f"{where}: mean utilization", "0.68", None, mean_interval(of.mean for of in measured), ""))
        by_place[where] = shares = _mean(measured)
        for level, points in shares.items():
            said = {PRINTED_S: PRINTED} if level == LEVELS[1] else {}
            what = f"{where}, T = {{:g}} s: share of time above {level:g}"
            rows += each(points, what, said.get, headline=said.__contains__)
        if deviation := mean_interval(of.deviation.get(f"{PRINTED_S:g}") for of in measured):
            what = f"{where}: standard deviation of means over {PRINTED_S:g} s"
            rows.append(Fact(what, f"{NEEDED:.2g} makes 0.07 above 0.95", None, deviation, ""))
        if largest := max((of.largest for of in measured if of.largest is not None), default=None):
            rows.append(Fact(f"{where}: largest transfer of all runs", "", None, exactly(largest / 1e6), "MB"))
    return {"shares": by_place, "facts": rows}


def _mean(runs: list[Above]) -> dict[float, Series]:
    result: dict[float, Series] = {}
    for level in LEVELS:
        estimates = {
            length: mean_interval(run.shares[f"{level:g}"].get(f"{length:g}") for run in runs) for length in TIMES_S
        }
        result[level] = {length: estimate for length, estimate in estimates.items() if estimate is not None}
    return result


def draw(data: Data) -> look.Figure:
    """One panel, times logarithmic."""
    figure, ax = look.new_panel(look.COLUMN_IN, 2.6)
    scaled, at_full = data["shares"].values()
    if not any(scaled.values()):
        return look.absent(ax)
    look.log_axis(ax.xaxis)
    ax.margins(x=0.04)
    for level in LEVELS:
        points, full = scaled[level], at_full[level]
        ax.plot(list(points), [point.value for point in points.values()], color=SHADES[level], linewidth=0.8)
        look.interval_bars(ax, points, points.values(), SHADES[level])
        ax.plot(list(full), [point.value for point in full.values()], "--", color=SHADES[level], linewidth=0.8)
        ax.plot([], [], "o", color=SHADES[level], label=f"above {level:g}")
    ax.set_xlabel("averaging time T (s)")
    ax.set_ylabel("share of time")
    ax.set_ylim(bottom=0)
    ax.legend(loc="upper right", frameon=False)
    return figure


FIGURE_3 = PaperFigure("figure_03", CAPTION, (STEM, FULL_STEM), prepare, draw)
