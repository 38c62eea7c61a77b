# SPDX-License-Identifier: MIT
"""Figures 4 and 5: median throughput of small and of large transfers against the buffer."""

from __future__ import annotations

import math
from functools import partial

import polars as pl

from analysis.figures.common import BLUE, ORANGE, Data
from analysis.papers import look
from analysis.papers.facts import Fact, absent
from analysis.papers.paper import PaperFigure
from analysis.papers.prasad2007 import testbed, transfers
from analysis.papers.prasad2007.rows import OF_USERS
from analysis.papers.series import Series, grouped
from analysis.papers.stored_runs import StoredRun, StoredRuns
from analysis.published_numbers import BEST_BUFFER
from analysis.statistics import Interval, mean_interval

CLASSES = {"small (45 to 50 kB)": (transfers.SMALL, BLUE), "large (above 1 MB)": (transfers.LARGE, ORANGE)}
SMALL_FLOWS = tuple(CLASSES)[:1]
KEYS = dict(zip(CLASSES, ("small", "large"), strict=True))  # `transfers` in keys of published numbers
FLAT = 0.05  # maxima are flat: all buffers within this share of the largest throughput count as best
UNITS = 1e6


def figure(name: str, users: tuple[int, ...], caption: str) -> PaperFigure:
    """The figure for these numbers of users (a tenth of the testbed's): runs at a tenth of its scale, and some at full
    scale.
    """
    stems = (testbed.STEM, testbed.FULL_STEM)
    return PaperFigure(name, caption, stems, partial(prepare, users), draw, facts)


def prepare(users: tuple[int, ...], runs: StoredRuns) -> Data:
    """For each number of users and class of flows: throughput by buffer, scaled and at full scale; plateau starts."""
    scaled = runs.select(testbed.STEM, pl.col("users").is_in(list(users)), **OF_USERS)
    at_full = pl.col("users").is_in([number * testbed.SCALE for number in users])
    full = runs.select(testbed.FULL_STEM, at_full, rate_bps=testbed.FULL_BPS, **OF_USERS)
    return {
        "provenance": runs.provenance(),
        "panels": {number: _classes([run for run in scaled if run["users"] == number]) for number in users},
        "starts": {number: _starts([run for run in scaled if run["users"] == number]) for number in users},
        "full": {number: _classes([run for run in full if run["users"] == number * testbed.SCALE]) for number in users},
    }


def _classes(runs: list[StoredRun]) -> dict[str, Series]:
    return {name: _throughput(runs, sizes) for name, (sizes, _) in CLASSES.items()}


def _throughput(runs: list[StoredRun], sizes: tuple[int, int]) -> Series:
    by_buffer = {buffer: transfers.median_bps(of, sizes) for buffer, of in grouped(runs, "buffer_packets").items()}
    return {buffer: point for buffer, point in by_buffer.items() if point is not None}


def plateau_start(values: dict[int, float]) -> float | None:
    """The least buffer whose throughput is within FLAT of the largest throughput."""
    if not values:
        return None
    least = (1 - FLAT) * max(values.values())
    return next(float(buffer) for buffer, value in sorted(values.items()) if value >= least)


def _starts(runs: list[StoredRun]) -> dict[str, Interval]:
    """For each class of flows, the mean start of the plateau over repetitions."""
    result = {}
    for name, (sizes, _) in CLASSES.items():
        starts = []
        for of_repetition in grouped(runs, "repetition").values():
            points = _throughput(of_repetition, sizes)
            starts.append(plateau_start({buffer: point.value for buffer, point in points.items()}))
        start = mean_interval(value for value in starts if value is not None)
        if start is not None:
            result[name] = start
    return result


def best(points: Series) -> Interval | None:
    """The buffer with the largest throughput, and the neighbouring buffers that are within FLAT of it. An end at the
    smallest or largest measured buffer is open: 0 or infinity.
    """
    if not points:
        return None
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


def draw(data: Data) -> look.Figure:
    """A panel for each number of users, throughput logarithmic."""
    panels = data["panels"]
    figure, axes = look.new_figure(
        look.PAGE_IN if len(panels) > 1 else look.COLUMN_IN, 2.6, 1, len(panels), sharey=True
    )
    for ax, (users, classes) in zip(axes[0], panels.items(), strict=True):
        ax.set_title(testbed.name(users), loc="left", pad=3)
        if not any(classes.values()):
            look.absent(ax)
            continue
        look.log_axis(ax.xaxis)
        ax.margins(x=0.04)
        look.log_axis(ax.yaxis)
        for name, (_, shade) in CLASSES.items():
            points = {buffer: point.scaled(1 / UNITS) for buffer, point in classes[name].items()}
            ax.plot(list(points), [point.value for point in points.values()], color=shade, linewidth=0.8)
            look.interval_bars(ax, points, points.values(), shade, label=name)
            full = data["full"][users][name]
            ax.plot(
                [buffer / testbed.SCALE for buffer in full], [point.value / UNITS for point in full.values()], "x",
                color=shade,
            )  # fmt: skip
            simulated = data.get("ns3", {}).get("panels", {}).get(users, {}).get(name)
            if simulated:
                look.ns3_points(ax, simulated, [point.scaled(1 / UNITS) for point in simulated.values()], shade)
        ax.set_xlabel("buffer at a tenth of the scale (packets)")
    axes[0, 0].set_ylabel("median throughput (Mb/s)")
    look.legend(axes[0, -1], loc="upper left")
    return figure


def facts(data: Data) -> list[Fact]:
    """For each class: the best buffer; the ratio of the throughput with the largest buffer to the largest throughput;
    the plateau's start; the throughput with the buffers of ns-3's runs. Then throughputs at full scale.
    """
    rows = []
    for users, classes in data["panels"].items():
        for name, points in classes.items():
            who = f"{testbed.name(users)}, {name}"
            top = best(points)
            if top is None:
                rows.append(absent(f"{who}: no transfer"))
                continue
            what = f"{who}: best buffer (interval: within {100 * FLAT:.0f} % of the largest throughput)"
            at_scale = top.scaled(testbed.SCALE)
            key = {"quantity": BEST_BUFFER, "transfers": KEYS[name], "scale": testbed.SCALE,
                   "users": users * testbed.SCALE}  # fmt: skip
            rows.append(
                Fact(
                    what, "", None, at_scale, "packets at full scale", headline=users == 300, over_points=True, key=key
                )
            )
            most = points[int(top.value)].value
            fall = points[max(points)].scaled(1 / most)
            printed = "significantly lower" if users == 300 and name in SMALL_FLOWS else ""
            rows.append(
                Fact(
                    f"{who}: throughput with the largest buffer",
                    printed,
                    None,
                    fall,
                    "of the largest",
                    over_points=True,
                )
            )
            if name in data["starts"][users]:
                start = data["starts"][users][name].scaled(testbed.SCALE)
                printed = "below that of large flows" if name in SMALL_FLOWS else ""
                rows.append(
                    Fact(
                        f"{who}: the plateau starts at", printed, None, start, "packets at full scale", over_points=True
                    )
                )
            for buffer in testbed.BESIDE_NS3:
                if buffer in points:
                    kb = testbed.size_text(testbed.buffer_kb(buffer))
                    rows.append(
                        Fact(f"{who}, {kb}: median throughput", "", None, points[buffer].scaled(1 / UNITS), "Mb/s")
                    )
        for name, points in data["full"][users].items():
            for buffer, point in points.items():
                kb = testbed.size_text(testbed.buffer_kb(buffer / testbed.SCALE))
                what = f"{testbed.name(users)} at full scale, {name}, {kb}: median throughput"
                rows.append(Fact(what, "", None, point.scaled(1 / UNITS), "Mb/s"))
    return rows
