# SPDX-License-Identifier: MIT
"""Theorem 2: with buffers of c_B log W packets, and a flow's packets at least c_S log W slots apart, flows with random
phases lose a packet with a probability of O(1/W^2).

Evenly spaced packets are measured by buffer with one W (and a check with a larger W), because W matters only through
the buffer. For each c_B a curve has the dropped share with c_B ln W packets of buffer, rounded up, by W. With packets
c_S ln W slots apart, each W has its own runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from analysis.figures.common import BLUE, GREY, ORANGE, Data
from analysis.papers import look
from analysis.papers.enachescu2006 import model
from analysis.papers.facts import Fact, each, exactly
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.series import grouped, loss, series
from analysis.theory import queues

CAPTION = (
    "dropped share of the packets of 50 periodic flows, whose phases are drawn anew in each round. Left: evenly spaced "
    "packets (S = N/ρ slots) against the buffer, and Poisson packets (dotted). Right: against the packets W of a "
    "round, with buffers of c_B ln W packets, rounded up; evenly spaced, c_S ln W slots apart with the same buffers, "
    "and S = 1 slot apart (triangles). Grey: a slope of −2."
)
STEM = "theorem-2"
WINDOWS = (8, 16, 32, 64, 128)
CONSTANTS = (0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5)  # c_B
OF_BURSTS = {0.5: 1.25, 0.8: 2.25}  # c_B of the spec's points with S = 1, 4 and 16
OF_SPACINGS = {0.5: 1.25, 0.8: 2.5}  # c_B of the spec's points with packets c_S ln W slots apart
LEAST_SLOPE = -2.0
LOWEST = 1e-7  # lowest dropped share on the axis; leaves room for the legends
SHADES = {0.5: BLUE, 0.8: ORANGE}
EVEN, ONE, STYLES = "o-", "^-", {2: "--", 4: "-.", 8: ":"}  # evenly spaced; 1 slot apart; by c_S: c_S ln W slots apart


def buffer(constant: float, packets: int) -> int:
    """c_B ln W, rounded up."""
    return math.ceil(constant * math.log(packets))


def slope(shares: Mapping[int, float]) -> float | None:
    """The slope of ln p against ln W, by least squares; None with fewer than three windows, or if a share is 0."""
    if len(shares) < 3 or min(shares.values()) <= 0:
        return None
    return float(np.polyfit(np.log(list(shares)), np.log(list(shares.values())), 1)[0])


def least(curves: Mapping[Any, Mapping[int, float]]) -> float | None:
    """The smallest measured constant with a slope of LEAST_SLOPE or less; None if there is none."""
    return min((constant for constant, of in curves.items() if (slope(of) or 0.0) <= LEAST_SLOPE), default=None)


def spaced(runs: list[PaperRun], load: float, constant: int) -> dict[int, float]:
    """The share at each W of packets c_S ln W slots apart; empty if any W has no share."""
    same = []
    for run in runs:
        w = model.round_packets(run)
        apart, size = round(constant * math.log(w), 2), buffer(OF_SPACINGS.get(load, 0), w)
        if model.spacing(run) == apart and run["buffer_packets"] == size:
            same.append(run)
    points = series(same, model.round_packets, loss)
    return {w: point.value for w, point in points.items()} if set(points) == set(WINDOWS) else {}


def prepare(runs: PaperRuns) -> Data:
    """Slopes, the least c_B and the least c_S first; then the share by buffer, by W, and by S."""
    panels: dict[float, Data] = {}
    slopes, rows = [], []
    for load, same in grouped(runs.select(STEM, traffic="open-loop"), "load").items():
        even = [run for run in same if model.spacing(run) is None]
        bursts = [run for run in same if model.spacing(run) is not None]
        rounds_of = min((model.round_packets(run) for run in even), default=0)
        by_buffer = series((run for run in even if model.round_packets(run) == rounds_of), "buffer_packets", loss)
        of_constants = {}
        for at_constant in CONSTANTS:  # only those with a share at each W
            sizes = {w: buffer(at_constant, w) for w in WINDOWS}
            if set(sizes.values()) <= set(by_buffer):
                of_constants[at_constant] = {w: by_buffer[size].value for w, size in sizes.items()}
        one_apart = series((run for run in bursts if model.spacing(run) == 1), model.round_packets, loss)
        of_spacings = {apart: shares for apart in STYLES if (shares := spaced(bursts, load, apart))}
        panels[load] = {"by_buffer": by_buffer, "curves": of_constants, "bursts": one_apart, "spaced": of_spacings}

        who, constant = f"ρ = {load:g}, S = N/ρ", least(of_constants)
        slopes.append(_least(f"{who}: least c_B with a slope of −2 or less", constant))
        for at_constant, of in of_constants.items():
            poisson = {w: queues.md1_loss(load, buffer(at_constant, w)) for w in WINDOWS}
            what = f"{who}, c_B = {at_constant:g}: slope of ln p in ln W (prediction: Poisson packets)"
            slopes.append(_slope(what, "−2 or less" if at_constant == constant else "", slope(poisson), of))
        what = f"ρ = {load:g}, S = c_S ln W, c_B = {OF_SPACINGS.get(load, 0):g}: "
        slopes.append(_least(f"{what}least c_S with a slope of −2 or less", least(of_spacings)))
        for apart, of in of_spacings.items():
            slopes.append(_slope(f"{what}c_S = {apart:g}: slope of ln p in ln W", "", None, of))
        what = f"ρ = {load:g}, S = 1, c_B = {OF_BURSTS.get(load, 0):g}: slope of ln p in ln W"
        of = {w: point.value for w, point in one_apart.items()}
        slopes.append(_slope(what, "not −2: S is too small", None, of))

        exact = partial(queues.md1_loss, load)
        rows += each(by_buffer, f"{who}, B = {{}}: p (prediction: Poisson packets)", predicted=exact)
        for run in even:  # with a larger W: the share should be the same
            if (w := model.round_packets(run)) > rounds_of:
                rows += each(series([run], "buffer_packets", loss), f"{who}, B = {{}}, W = {w}: p")
        rows += each(one_apart, f"ρ = {load:g}, S = 1, W = {{}}: p")
        size, largest = buffer(OF_BURSTS.get(load, 0), WINDOWS[-1]), WINDOWS[-1]
        same_size = (run for run in bursts if model.round_packets(run) == largest and run["buffer_packets"] == size)
        rows += each(series(same_size, model.slots, loss), f"ρ = {load:g}, W = {largest}, S = {{:g}}: p")
    return {"panels": panels, "facts": slopes + rows}


def _least(what: str, constant: float | None) -> Fact:
    measured = None if constant is None else exactly(constant)
    return Fact(what, "large enough", None, measured, "", headline=True, none="none was measured")


def _slope(what: str, said: str, predicted: float | None, shares: Mapping[int, float]) -> Fact:
    measured = slope(shares)
    estimate = None if measured is None else exactly(measured)
    return Fact(what, said, predicted, estimate, "", none="some shares are 0 or missing")


def draw(data: Data) -> look.Figure:
    """The share by buffer on the left, by W on the right."""
    figure, (left, right) = _panels()
    if not data["panels"]:
        return look.absent(left)
    for load, panel in data["panels"].items():
        shade, points = SHADES.get(load, GREY), panel["by_buffer"]
        positive = {size: point for size, point in points.items() if point.value > 0}
        look.interval_bars(left, list(positive), positive.values(), shade, "o", f"ρ = {load:g}")
        left.plot(list(points), [queues.md1_loss(load, size) for size in points], ":", color=shade, linewidth=0.7)
        bursts = {w: point.value for w, point in panel["bursts"].items()}
        constant = least(panel["curves"])
        even = {} if constant is None else panel["curves"][constant]
        for style, of in ((EVEN, even), *((STYLES[apart], of) for apart, of in panel["spaced"].items()), (ONE, bursts)):
            right.plot(list(of), list(of.values()), style, color=shade, linewidth=0.9, markersize=3.5)
    right.plot(WINDOWS, [0.05 * (WINDOWS[0] / w) ** 2 for w in WINDOWS], color=GREY, linewidth=0.7)
    left.legend(loc="lower left", frameon=False)
    named = {"evenly spaced": EVEN, **{f"$c_S$ = {apart}": style for apart, style in STYLES.items()}, "S = 1": ONE}
    for name, style in named.items():
        right.plot([], [], style, color=GREY, markersize=3.5, label=name)
    right.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return figure


def _panels() -> tuple[look.Figure, tuple[look.Axes, look.Axes]]:
    figure, axes = look.new_figure(look.PAGE_IN, 2.7, 1, 2, sharey=True)
    left, right = axes[0]
    left.set_yscale("log")
    look.log_axis(right.xaxis)
    left.set_xlabel("buffer B (packets)")
    left.set_ylabel("dropped share p")
    left.set_ylim(LOWEST, 1)
    for ax in (left, right):
        ax.margins(x=0.05)
    right.set_xlabel("packets W of a flow in a round")
    return figure, (left, right)


FIGURE = PaperFigure("theorem_2", CAPTION, (STEM,), prepare, draw)
