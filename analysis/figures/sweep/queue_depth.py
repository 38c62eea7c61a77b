# SPDX-License-Identifier: MIT
"""1st to 99th percentile of the queue depth at arrivals, against the parameters of the sweep."""

from __future__ import annotations

import operator

import numpy as np

from analysis.figures.common import GREY, Data
from analysis.figures.sweep import common
from analysis.figures.sweep.common import PlottedMeasure

CAPTION = (
    "Queue depth at packet arrivals. Bars run from the 1st to the 99th percentile, hollow marks are medians; both are "
    "means over repetitions. Dots are the medians of single repetitions. Short grey strokes are the buffer, unless it "
    "is above the figure."
)
MEASURES = tuple(
    PlottedMeasure("queue depth (packets)", operator.itemgetter(column))
    for column in ("depth_p50_packets", "depth_p01_packets", "depth_p99_packets", "buffer_packets")
)


def prepare(sweep: common.Stored) -> Data | None:
    """Three percentiles and the buffer of every valid run."""
    return common.measured(sweep, MEASURES)


def draw(data: Data) -> common.Figure:
    """One axis per panel."""
    figure, axes = common.new_figure(data, 1, 3.6)
    where = common.positions(data)
    deepest = 1.0
    for ax, lines in zip(axes[0], data["panels"].values(), strict=False):
        for number, (line, cells) in enumerate(lines.items()):
            color, marker = data["colors"][line], common.MARKERS[number % len(common.MARKERS)]
            drawn = [
                (common.shifted(data, where[x], number, len(lines)), *values)
                for x, values in cells.items()
                if all(values[:3])
            ]
            if not drawn:
                continue
            at = [x for x, *_ in drawn]
            medians, lows, highs, buffers = ([float(np.mean(point[i])) for point in drawn] for i in range(1, 5))
            deepest = max(deepest, *highs)
            ax.vlines(at, lows, highs, color=color, linewidth=2.2, alpha=0.55)
            dots = [(x, value) for x, values, *_ in drawn for value in values]
            ax.plot(*zip(*dots, strict=True), ".", color=color, markersize=3, alpha=0.6)
            ax.plot(at, medians, marker, color=color, markersize=4.5, markerfacecolor="white")
            ax.plot(at, buffers, "_", color=GREY, markersize=9, markeredgewidth=1, zorder=1)
            ax.plot([], [], marker=marker, color=color, markersize=4.5, markerfacecolor="white", label=line)
        common.label_x(ax, data)
    axes[0, 0].set_ylim(0, 1.12 * deepest)  # a buffer above this limit is not shown
    for ax in axes[0] if data["facts"].get("phone") else axes[0, :1]:
        ax.set_ylabel(MEASURES[0].title)
    common.legend(figure, axes, data)
    return figure


FIGURE = common.SweepFigure(CAPTION, prepare, draw)
