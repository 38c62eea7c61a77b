# SPDX-License-Identifier: MIT
"""The testbed's runs at a tenth of its rate, users and buffers, and at full scale: utilization against the buffer
(Figure 2), and median throughput of small and of large transfers (Figures 4 and 5).
"""

from __future__ import annotations

import math
from functools import partial

import polars as pl

from analysis.arithmetic.statistics import Interval, mean_interval
from analysis.figures.common import BLUE, GREEN, ORANGE, Data
from analysis.papers import curves, look
from analysis.papers.curves import Curve, Line, Panel, Shape
from analysis.papers.facts import Fact, absent, each, exactly
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.prasad2007 import transfers
from analysis.papers.prasad2007.rows import FULL, OF_USERS
from analysis.papers.published_numbers import BEST_BUFFER, Key
from analysis.papers.series import Series, grouped, series

STEM, FULL_STEM, FROM_START = "testbed", "full-scale", "think-from-start"
SCALE = 10  # rates, users and buffers of the testbed / those of most of our runs
FULL_BPS = 1_000_000_000
PRINTED_USERS = {100: 1000, 120: 1200, 300: 3000}
COLORS = {100: GREEN, 120: ORANGE, 300: BLUE}
PACKET_BYTES = 1500
BESIDE_NS3 = (3, 50, 2656)  # buffers (packets, a tenth of the scale) of ns-3's runs
BUFFER_AXIS = "buffer at a tenth of the scale (packets)"


def name(users: int) -> str:
    """The paper's name of a run; `users` is a tenth of the paper's number."""
    return f"U{PRINTED_USERS.get(users, users * SCALE)}"


def buffer_text(packets: float) -> str:
    """A buffer at a tenth of the scale in the paper's unit, at the testbed's scale."""
    kb = buffer_kb(packets)
    return f"{kb:.3g} KB" if kb < 1024 else f"{kb / 1024:.3g} MB"


def buffer_kb(packets: float) -> float:
    """In KB of 1,024 bytes."""
    return packets * SCALE * PACKET_BYTES / 1024


def by_text(points: Series, buffers: tuple[int, ...] = ()) -> dict[str, Interval]:
    """The points with these buffers (default: all), by the buffer in the paper's unit."""
    return {buffer_text(at): points[at] for at in buffers or points if at in points}


# Figure 2 -------------------------------------------------------------------------------------------------------------

CAPTION_2 = (
    "utilization of the testbed's link against the buffer, at a tenth of its rate, users and buffers. Crosses: full "
    "scale, with buffers divided by ten. Triangles: think times that run from the start of a transfer."
)
# U E[S] / (C x mean cycle), at most 1, from the paper's sizes, think times and RTTs
PREDICTED, PREDICTED_FROM_START = {100: 0.48, 120: 0.58, 300: 1.0}, {100: 0.70, 120: 0.84}
PRINTED = {100: "0.60 to 0.70", 120: "0.80 to 0.90", 300: "saturated"}


def _utilization(runs: PaperRuns) -> Data:
    """Utilization: with the largest buffer by both kinds of think times, with small buffers, at full scale; errors."""
    selected, from_start = runs.select(STEM, **OF_USERS), _by_users(runs.select(FROM_START, **OF_USERS))
    full = {
        users // SCALE: {buffer / SCALE: point for buffer, point in points.items()}
        for users, points in _by_users(runs.select(FULL_STEM, rate_bps=FULL_BPS, **OF_USERS)).items()
    }
    scaled, drawn, rows = _by_users(selected), {}, []
    for users, points in scaled.items():
        shade = COLORS.get(users, COLORS[100])
        beside = [
            Line(list(more), [point.value for point in more.values()], style=marker, shade=shade)
            for marker, more in (("^", from_start.get(users, {})), ("x", full.get(users, {})))
        ]
        drawn[name(users)] = Curve(points, shade, "o", "-", width=0.8, beside=beside, key={"linewidth": 0.9})
    for words, of_users, predicted in (
        ("after a transfer", scaled, PREDICTED), ("from start to start", from_start, PREDICTED_FROM_START)
    ):  # fmt: skip
        for users, points in of_users.items():
            what = f"{name(users)}, think times {words}: utilization with the largest buffer"
            printed, last = PRINTED.get(users, ""), points[max(points)]
            rows.append(Fact(what, printed, predicted.get(users), last, "", headline=True))
    for users, points in scaled.items():
        rows += each(by_text(points, (3, 20, 50)), f"{name(users)}: utilization with {{}}")
    for users, points in full.items():
        rows += each(by_text(points), f"{name(users)} at full scale, {{}}: utilization")
        enough = [buffer_kb(buffer) for buffer, point in points.items() if point.value >= FULL]
        what = f"{name(users)} at full scale: least buffer for a utilization of {FULL:g}"
        least = exactly(min(enough)) if enough else None
        rows.append(Fact(what, "200 KB" if users == 300 else "", None, least, "KB"))
    # Relative errors of Little's law: (open flows / rate + think time) / (users / rate) - 1
    laws = [law for run in selected if (law := run.value("finite_flows", 0, "littles_law")) is not None]
    if laws:
        what = "Little's law, a tenth of the scale: largest relative error of users / rate over the runs"
        largest = exactly(max(abs(float(law["cycle_error_fraction"])) for law in laws))
        rows.append(Fact(what, "", 0.0, largest, "", over_points=True))
    return {"panels": {"": Panel(drawn)}, "facts": rows}


def _by_users(runs: list[PaperRun]) -> dict[int, Series]:
    return {users: series(of, "buffer_packets", "utilization_mean") for users, of in grouped(runs, "users").items()}


FIGURE_2 = curves.figure(
    "figure_02", CAPTION_2, (STEM, FROM_START, FULL_STEM), _utilization,
    Shape(BUFFER_AXIS, "utilization", margin=0.04, ns3="each", legend={"loc": "lower right"}),
)  # fmt: skip

# Figures 4 and 5 ------------------------------------------------------------------------------------------------------

SMALL, LARGE = "small (45 to 50 kB)", "large (above 1 MB)"
CLASSES = {SMALL: (transfers.SMALL, BLUE), LARGE: (transfers.LARGE, ORANGE)}
KEYS = {SMALL: "small", LARGE: "large"}  # `transfers` in keys of published numbers
FLAT = 0.05  # maxima are flat: all buffers within this share of the largest throughput count as best
UNITS = 1e6


def _throughputs(users: tuple[int, ...], runs: PaperRuns) -> Data:
    """For each number of users and class: the best buffer; the ratio of the throughput with the largest buffer to the
    largest throughput; the plateau's start; the throughput with the buffers of ns-3's runs; throughputs at full scale.
    """
    scaled = runs.select(STEM, pl.col("users").is_in(list(users)), **OF_USERS)
    at_full = pl.col("users").is_in([number * SCALE for number in users])
    full = runs.select(FULL_STEM, at_full, rate_bps=FULL_BPS, **OF_USERS)
    panels, rows = {}, []
    for number in users:
        mine = [run for run in scaled if run["users"] == number]
        mine_at_full = [run for run in full if run["users"] == number * SCALE]
        drawn, of_full = {}, []
        for kind, (sizes, shade) in CLASSES.items():
            points, who = _medians(mine, sizes), f"{name(number)}, {kind}"
            more = {buffer / SCALE: point for buffer, point in _medians(mine_at_full, sizes).items()}
            crosses = Line(list(more), [point.value for point in more.values()], None, "x", shade)
            drawn[kind] = Curve(points, shade, "o", "-", width=0.8, beside=[crosses], key={"linestyle": "none"})
            rows += _facts(number, kind, points, mine) if points else [absent(f"{who}: no transfer")]
            what = f"{name(number)} at full scale, {kind}, {{}}: median throughput"
            of_full += each(by_text(more), what, unit="Mb/s")
        panels[name(number)] = Panel(drawn)
        rows += of_full
    return {"panels": panels, "facts": rows}


def _facts(users: int, kind: str, points: Series, runs: list[PaperRun]) -> list[Fact]:
    """The facts at a tenth of the scale; the start of the plateau is a mean over repetitions."""
    who, top = f"{name(users)}, {kind}", best(points)
    fall = points[max(points)].scaled(1 / max(point.value for point in points.values()))
    sizes, _ = CLASSES[kind]
    start = mean_interval(plateau_start(_medians(of, sizes)) for of in grouped(runs, "repetition").values())
    key: Key = {"quantity": BEST_BUFFER, "transfers": KEYS[kind], "scale": SCALE, "users": users * SCALE}
    at_full_scale = partial(Fact, predicted=None, unit="packets at full scale", over_points=True)
    what = f"{who}: best buffer (interval: within {100 * FLAT:.0f} % of the largest throughput)"
    rows = [at_full_scale(what, "", measured=top.scaled(SCALE), headline=users == 300, key=key)]
    printed = "significantly lower" if users == 300 and kind == SMALL else ""
    what = f"{who}: throughput with the largest buffer"
    rows.append(Fact(what, printed, None, fall, "of the largest", over_points=True))
    if start is not None:
        printed = "below that of large flows" if kind == SMALL else ""
        rows.append(at_full_scale(f"{who}: the plateau starts at", printed, measured=start.scaled(SCALE)))
    return rows + each(by_text(points, BESIDE_NS3), f"{who}, {{}}: median throughput", unit="Mb/s")


def _medians(runs: list[PaperRun], sizes: tuple[int, int]) -> Series:
    by_buffer = {buffer: transfers.median_bps(of, sizes) for buffer, of in grouped(runs, "buffer_packets").items()}
    return {buffer: point.scaled(1 / UNITS) for buffer, point in by_buffer.items() if point is not None}


def plateau_start(points: Series) -> float | None:
    """The least buffer whose throughput is within FLAT of the largest throughput."""
    least = (1 - FLAT) * max((point.value for point in points.values()), default=0.0)
    return next((float(buffer) for buffer, point in sorted(points.items()) if point.value >= least), None)


def best(points: Series) -> Interval:
    """The buffer with the largest throughput, and the neighbouring buffers that are within FLAT of it. An end at the
    smallest or largest measured buffer is open: 0 or infinity.
    """
    buffers = list(points)
    top = max(range(len(buffers)), key=lambda at: points[buffers[at]].value)
    least = (1 - FLAT) * points[buffers[top]].value
    low = high = top
    while low > 0 and points[buffers[low - 1]].value >= least:
        low -= 1
    while high < len(buffers) - 1 and points[buffers[high + 1]].value >= least:
        high += 1
    ends = (0.0 if low == 0 else buffers[low], math.inf if high == len(buffers) - 1 else buffers[high])
    return Interval(buffers[top], *ends, points[buffers[top]].runs)


def _figure(number: str, users: tuple[int, ...], width_in: float, caption: str) -> PaperFigure:
    """The figure for these numbers of users, a tenth of the testbed's."""
    shape = Shape(
        BUFFER_AXIS, "median throughput (Mb/s)", (width_in, 2.6), y={}, margin=0.04, ns3="each", label_each=False,
        legend={"loc": "upper left"}, legend_in=-1, more=lambda ax, *_: look.log_axis(ax.yaxis),
    )  # fmt: skip
    return curves.figure(number, caption, (STEM, FULL_STEM), partial(_throughputs, users), shape)


FIGURE_4 = _figure(
    "figure_04", (100, 120), look.PAGE_IN,
    "median throughput of small and large transfers against the buffer, with fewer users than fill the link. "
    "Crosses: full scale, buffers divided by ten.",
)  # fmt: skip
FIGURE_5 = _figure(
    "figure_05", (300,), look.COLUMN_IN,
    "median throughput of small and large transfers against the buffer; the link is full. Crosses: full scale, "
    "buffers divided by ten.",
)  # fmt: skip
