# SPDX-License-Identifier: MIT
"""Theorem 2: with buffers of c_B log W packets, and a flow's packets at least c_S log W slots apart, flows with random
phases lose a packet with a probability of O(1/W^2).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from analysis.figures.common import BLUE, GREY, ORANGE, RED, Data
from analysis.papers import look
from analysis.papers.enachescu2006 import rounds
from analysis.papers.facts import Fact, exactly
from analysis.papers.paper import PaperFigure
from analysis.papers.series import grouped, loss, series
from analysis.papers.stored_runs import StoredRun, StoredRuns
from analysis.statistics import Interval
from analysis.theory import queues

CAPTION = (
    "dropped share of the packets of 50 periodic flows, whose phases are drawn anew in each round, against the "
    "packets W of a round. The buffer is c_B ln W packets, rounded up. Packets of a flow are N/ρ slots apart (even), "
    "or follow each other at the link's rate (S = 1). Dotted: Poisson packets with the same buffers. Grey: a slope of "
    "−2. Open triangles: no drop; the share of three drops."
)
STEM = "theorem-2"
# c_B of the spec, the smaller one first.
CONSTANTS = {0.5: (1.0, 1.5), 0.8: (1.5, 2.5)}
LEAST_DROPS = 10  # fewer say little about a logarithm
BURST = 1.0  # S
SHADES = (ORANGE, BLUE)


class Curve(NamedTuple):
    """The dropped share by W, the number of drops, and Poisson packets' share with the same buffers."""

    points: dict[int, Interval]
    drops: dict[int, int]
    packets: dict[int, int]
    poisson: dict[int, float]


def buffer(constant: float, packets: int) -> int:
    """c_B ln W, rounded up."""
    return math.ceil(constant * math.log(packets))


def _curve(runs: list[StoredRun]) -> Curve:
    by_round = grouped(runs, rounds.packets)
    return Curve(
        series(runs, rounds.packets, loss),
        {w: sum(run["drops"] for run in same) for w, same in by_round.items()},
        {w: sum(run["arrivals"] for run in same) for w, same in by_round.items()},
        {w: queues.md1_loss(same[0]["load"], same[0]["buffer_packets"]) for w, same in by_round.items()},
    )


def prepare(runs: StoredRuns) -> Data:
    """For each load: a curve for each c_B and spacing; and the dropped share by S at the largest W."""
    panels: dict[float, Data] = {}
    for load, same in grouped(runs.select(STEM, traffic="open-loop"), "load").items():
        constants = CONSTANTS.get(load, ())
        curves = {
            (constant, spacing): _curve([run for run in same if rounds.spacing(run) == spacing and _has(run, constant)])
            for constant in constants
            for spacing in (None, BURST)
        }
        largest = max(map(rounds.packets, same))
        at_largest = [run for run in same if rounds.packets(run) == largest and _has(run, constants[-1])]
        panels[load] = {
            "curves": {key: curve for key, curve in curves.items() if curve.points},
            "by_spacing": series(at_largest, rounds.slots, loss),
            "largest": largest,
        }
    return {"provenance": runs.provenance(), "panels": panels}


def _has(run: StoredRun, constant: float) -> bool:
    return bool(run["buffer_packets"] == buffer(constant, rounds.packets(run)))


def slope(curve: Curve) -> float | None:
    """Of ln p in ln W, by least squares over the points with LEAST_DROPS drops or more; None with fewer than three."""
    used = [(w, point.value) for w, point in curve.points.items() if curve.drops[w] >= LEAST_DROPS]
    if len(used) < 3:
        return None
    windows, shares = zip(*used, strict=True)
    return float(np.polyfit(np.log(windows), np.log(shares), 1)[0])


def draw(data: Data) -> look.Figure:
    """A panel for each load."""
    panels = data["panels"]
    figure, axes = look.new_figure(look.PAGE_IN, 2.7, 1, max(len(panels), 1), sharey=True)
    if not panels:
        return look.absent(axes[0, 0])
    for ax, (load, panel) in zip(axes[0], panels.items(), strict=True):
        ax.set_title(f"ρ = {load:g}", loc="left", pad=3)
        look.log_axis(ax.xaxis)
        ax.set_yscale("log")
        for (constant, spacing), curve in panel["curves"].items():
            shade = RED if spacing else SHADES[CONSTANTS[load].index(constant)]
            name = f"$c_B$ = {constant:g}, " + ("S = 1" if spacing else "S = N/ρ")
            seen = {w: point for w, point in curve.points.items() if point.value > 0}
            ax.plot(list(seen), [point.value for point in seen.values()], color=shade, linewidth=0.7)
            look.interval_bars(ax, list(seen), seen.values(), shade, "^" if spacing else "o", name)
            for w, point in curve.points.items():
                if point.value == 0:  # at most about 3 drops were likely
                    ax.plot([w], [3 / curve.packets[w]], "v", color=shade, markersize=4, markerfacecolor="none")
            if not spacing:
                ax.plot(list(curve.poisson), list(curve.poisson.values()), ":", color=shade, linewidth=0.7)
        windows = sorted({w for curve in panel["curves"].values() for w in curve.points})
        ax.plot(windows, [0.3 * (windows[0] / w) ** 2 for w in windows], color=GREY, linewidth=0.7)
        ax.set_xlabel("packets W of a flow in a round")
        ax.legend(loc="lower left", frameon=False)
    axes[0, 0].set_ylabel("dropped share p")
    return figure


def facts(data: Data) -> list[Fact]:
    """Slopes first, then the share at each W, and at the largest W by S."""
    slopes, rows = [], []
    for load, panel in data["panels"].items():
        for (constant, spacing), curve in panel["curves"].items():
            apart = "S = 1" if spacing else "S = N/ρ"
            name = f"ρ = {load:g}, c_B = {constant:g}, {apart}"
            largest = constant == CONSTANTS[load][-1]
            measured = slope(curve)
            printed = ("above −2" if spacing else "−2 or less") if largest else ""
            windows, shares = zip(*curve.poisson.items(), strict=True)
            poisson = float(np.polyfit(np.log(windows), np.log(shares), 1)[0]) if len(windows) > 2 else None
            slopes.append(
                Fact(
                    f"{name}: slope of ln p in ln W (the prediction is Poisson packets')", printed,
                    None if spacing else poisson, None if measured is None else exactly(measured), "",
                    headline=largest, none=f"fewer than three points have {LEAST_DROPS} drops",
                )
            )  # fmt: skip
            rows += [
                Fact(f"{name}, W = {w}, B = {buffer(constant, w)}: p",
                     "", None if spacing else curve.poisson[w], point, "")
                for w, point in curve.points.items()
            ]  # fmt: skip
        for slots, point in panel["by_spacing"].items():
            what = f"ρ = {load:g}, W = {panel['largest']}, S = {slots:g} slots: p times W²"
            scaled = exactly(point.value * panel["largest"] ** 2)
            rows.append(Fact(what, "", None, scaled, ""))
    return slopes + rows


FIGURE = PaperFigure("theorem_2", CAPTION, (STEM,), prepare, draw, facts)
