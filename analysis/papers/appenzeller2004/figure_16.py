# SPDX-License-Identifier: MIT
"""Figure 16: the tail of the queue of short flows on the OC3 link."""

from __future__ import annotations

import math

import numpy as np

from analysis.figures.common import BLACK, BLUE, GREY, ORANGE, Data
from analysis.papers import look
from analysis.papers.appenzeller2004 import oc3, short_flows
from analysis.papers.facts import Fact
from analysis.papers.paper import PaperFigure
from analysis.papers.series import grouped, pooled
from analysis.papers.stored_runs import StoredRun, StoredRuns
from analysis.statistics import mean_interval
from analysis.theory import short_flows as theory

CAPTION = (
    "P(Q ≥ b) over time of short flows on an OC3 link, load 0.8. Dashed: the model, exactly and by second order. Pale: "
    "the queue less the 43 packets of the output FIFO, as the router reports it."
)
STEM = "card"
SHADES = {14: BLUE, 62: ORANGE}
SLOPE_BETWEEN = (0.1, 0.001)  # probabilities between which the slope is measured


def prepare(runs: StoredRuns) -> Data:
    """The tail of each length, pooled over runs, and each run's slope."""
    tails, slopes = {}, {}
    for length, of in grouped(runs.select(STEM), short_flows.length).items():
        tails[length] = _tail(of)
        slopes[length] = [slope for run in of if (slope := _slope(*_tail([run]))) is not None]
    return {"provenance": runs.provenance(), "tails": tails, "slopes": slopes}


def _tail(runs: list[StoredRun]) -> tuple[np.ndarray, np.ndarray]:
    """(b, P(Q >= b)) over time."""
    depths, ns = pooled(runs, "depth_over_time_packets")
    return depths, ns[::-1].cumsum()[::-1] / ns.sum()


def _slope(depths: np.ndarray, tail: np.ndarray) -> float | None:
    """Least squares of ln P(Q >= b) between the probabilities of SLOPE_BETWEEN, 1/packets; None for too few depths."""
    high, low = SLOPE_BETWEEN
    inside = (tail <= high) & (tail >= low)
    if inside.sum() < 3 or tail.min() > low:
        return None
    return float(-np.polyfit(depths[inside], np.log(tail[inside]), 1)[0])


def draw(data: Data) -> look.Figure:
    """One panel, probabilities logarithmic."""
    figure, ax = look.new_panel(look.COLUMN_IN, 2.8)
    if not data["tails"]:
        return look.absent(ax)
    ax.set_yscale("log")
    for length, (depths, tail) in data["tails"].items():
        shade = SHADES.get(length, BLUE)
        ax.step(depths, tail, where="post", color=shade, label=f"{length} packets a flow")
        ax.step(np.maximum(depths - oc3.FIFO_PACKETS, 0), tail, where="post", color=shade, alpha=0.35, linewidth=0.7)
        bursts = theory.slow_start_bursts(length)
        b = np.linspace(0, depths[tail >= SLOPE_BETWEEN[1] / 3].max(), 100)
        for order, tint in ((None, BLACK), (2, GREY)):
            ax.plot(
                b, [theory.tail(short_flows.LOAD, bursts, x, order=order) for x in b], "--", color=tint, linewidth=0.7
            )
    ax.set_ylim(SLOPE_BETWEEN[1] / 3, 1.1)
    ax.set_xlim(left=0)
    ax.set_xlabel("b (packets)")
    ax.set_ylabel("P(Q ≥ b)")
    ax.legend(loc="upper right", frameon=False)
    return figure


def facts(data: Data) -> list[Fact]:
    """Slopes of the tail beside the exact and the second-order decay."""
    rows = []
    for length, slopes in data["slopes"].items():
        bursts = theory.slow_start_bursts(length)
        exact = theory.decay(short_flows.LOAD, bursts, order=None)
        second = theory.decay(short_flows.LOAD, bursts, order=2)
        what = f"{length} packets a flow: slope of ln P(Q ≥ b) (second order {second:.4f})"
        measured = mean_interval(slopes)
        rows.append(Fact(what, "", exact, measured, "1/packet", headline=True))
        if measured is not None:
            over = math.exp(abs(math.log(measured.value / exact))) - 1
            rows.append(Fact(f"{length} packets a flow: off the exact slope by", "", 0.0, mean_interval([over]), ""))
    return rows


FIGURE = PaperFigure("figure_16", CAPTION, (STEM,), prepare, draw, facts)
