# SPDX-License-Identifier: MIT
"""Figure 16: the tail of the queue of short flows on the OC3 link."""

from __future__ import annotations

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
    "P(Q ≥ b) over time of short flows on an OC3 link, load 0.8. Dashed: the model, exactly and by second order. "
    "Dotted: UDP bursts in place of the flows' windows. Pale: the queue without the 43 packets of the output FIFO, as "
    "the router reports it."
)
STEM, BURSTS = "card", "burst-queue"
SHADES = {14: BLUE, 62: ORANGE}
SLOPE_BETWEEN = (0.1, 0.001)  # probabilities between which the slope is measured
LEAST_DRAWN = SLOPE_BETWEEN[1] / 3
KINDS = {"flows": "packets a flow", "bursts": "packets, UDP bursts"}


def prepare(runs: StoredRuns) -> Data:
    """The tail for each length of a flow, pooled over runs, and each run's slope; the same for UDP bursts."""
    flows = grouped(runs.select(STEM), short_flows.length)
    bursts = grouped(runs.select(BURSTS), short_flows.length)
    return {
        "provenance": runs.provenance(),
        "flows": _tails_and_slopes(flows),
        "bursts": _tails_and_slopes({length: of for length, of in bursts.items() if length in flows}),
    }


def _tails_and_slopes(by_length: dict[int, list[StoredRun]]) -> dict[int, Data]:
    return {
        length: {
            "tail": _tail(of),
            "slopes": [slope for run in of if (slope := _slope(*_tail([run]))) is not None],
        }
        for length, of in by_length.items()
    }


def _tail(runs: list[StoredRun]) -> tuple[np.ndarray, np.ndarray]:
    """(b, P(Q >= b)) over time."""
    depths, ns = pooled(runs, "depth_over_time_packets")
    return depths, ns[::-1].cumsum()[::-1] / ns.sum()


def _slope(depths: np.ndarray, tail: np.ndarray) -> float | None:
    """The decay of ln P(Q >= b), 1/packets, by least squares between the probabilities of SLOPE_BETWEEN. None if the
    tail lies between them at fewer than three depths, or if it ends above the lower one.
    """
    high, low = SLOPE_BETWEEN
    inside = (tail <= high) & (tail >= low)
    if inside.sum() < 3 or tail.min() > low:
        return None
    return float(-np.polyfit(depths[inside], np.log(tail[inside]), 1)[0])


def draw(data: Data) -> look.Figure:
    """One panel, probabilities logarithmic."""
    figure, ax = look.new_panel(look.COLUMN_IN, 2.8)
    if not data["flows"]:
        return look.absent(ax)
    ax.set_yscale("log")
    for length, of in data["flows"].items():
        (depths, tail), shade = of["tail"], SHADES.get(length, BLUE)
        ax.step(depths, tail, where="post", color=shade, label=f"{length} packets a flow")
        ax.step(np.maximum(depths - oc3.FIFO_PACKETS, 0), tail, where="post", color=shade, alpha=0.35, linewidth=0.7)
        if length in data["bursts"]:
            ax.step(*data["bursts"][length]["tail"], ":", where="post", color=shade, linewidth=0.9)
        bursts = theory.slow_start_bursts(length)
        drawn = [data[kind][length]["tail"] for kind in KINDS if length in data[kind]]
        b = np.linspace(0, max(depths[tail >= LEAST_DRAWN].max() for depths, tail in drawn), 100)
        for order, tint in ((None, BLACK), (2, GREY)):
            ax.plot(
                b, [theory.tail(short_flows.LOAD, bursts, x, order=order) for x in b], "--", color=tint, linewidth=0.7
            )
    ax.set_ylim(LEAST_DRAWN, 1.1)
    ax.set_xlim(left=0)
    ax.set_xlabel("b (packets)")
    ax.set_ylabel("P(Q ≥ b)")
    ax.legend(loc="upper right", frameon=False)
    return figure


def facts(data: Data) -> list[Fact]:
    """Slopes of the tail beside the exact and the second-order decay."""
    rows = []
    for kind, unit in KINDS.items():
        for length, of in data[kind].items():
            bursts = theory.slow_start_bursts(length)
            exact = theory.decay(short_flows.LOAD, bursts, order=None)
            second = theory.decay(short_flows.LOAD, bursts, order=2)
            what = f"{length} {unit}: slope of ln P(Q ≥ b) (second order {second:.4f})"
            measured = mean_interval(of["slopes"])
            rows.append(Fact(what, "", exact, measured, "1/packet", headline=kind == "flows"))
            if measured is not None:
                share = mean_interval([measured.value / exact])
                rows.append(Fact(f"{length} {unit}: slope over the exact one", "", 1.0, share, ""))
    return rows


FIGURE = PaperFigure("figure_16", CAPTION, (STEM, BURSTS), prepare, draw, facts)
