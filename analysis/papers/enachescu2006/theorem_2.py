# SPDX-License-Identifier: MIT
"""Theorem 2: with buffers of c_B log W packets, and a flow's packets at least c_S log W slots apart, flows with random
phases lose a packet with a probability of O(1/W^2).

Evenly spaced packets are measured by buffer with one W (and a check with a larger W), because W matters only through
the buffer. For each c_B a curve has the dropped share with c_B ln W packets of buffer, rounded up, by W. With packets
c_S ln W slots apart, each W has its own runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from analysis.figures.common import BLUE, GREY, ORANGE, Data
from analysis.papers import look
from analysis.papers.enachescu2006 import rounds
from analysis.papers.facts import Fact, exactly
from analysis.papers.paper import PaperFigure
from analysis.papers.series import Series, grouped, loss, series
from analysis.papers.stored_runs import StoredRun, StoredRuns
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


def slope(shares: dict[int, float]) -> float | None:
    """The slope of ln p against ln W, by least squares; None with fewer than three windows, or if a share is 0."""
    if len(shares) < 3 or min(shares.values()) <= 0:
        return None
    return float(np.polyfit(np.log(list(shares)), np.log(list(shares.values())), 1)[0])


def curve(by_buffer: Callable[[int], float | None], constant: float) -> dict[int, float]:
    """The share at each W with a buffer of c_B ln W packets; empty if any of these buffers has no share."""
    shares = {w: by_buffer(buffer(constant, w)) for w in WINDOWS}
    known = {w: share for w, share in shares.items() if share is not None}
    return known if len(known) == len(WINDOWS) else {}


def spaced(runs: list[StoredRun], load: float, constant: int) -> dict[int, float]:
    """The share at each W of packets c_S ln W slots apart; empty if any W has no share."""

    def is_one(run: StoredRun) -> bool:
        w = rounds.packets(run)
        return rounds.spacing(run) == round(constant * math.log(w), 2) and run["buffer_packets"] == buffer(
            OF_SPACINGS.get(load, 0), w
        )

    points = series((run for run in runs if is_one(run)), rounds.packets, loss)
    return {w: point.value for w, point in points.items()} if set(points) == set(WINDOWS) else {}


def _measured(points: Series) -> Callable[[int], float | None]:
    return lambda size: points[size].value if size in points else None


def prepare(runs: StoredRuns) -> Data:
    """For each load: the share by buffer, and its check; curves by c_B and c_S; the share of bursts by W, and by S."""
    panels: dict[float, Data] = {}
    for load, same in grouped(runs.select(STEM, traffic="open-loop"), "load").items():
        even = [run for run in same if rounds.spacing(run) is None]
        rounds_of = min((rounds.packets(run) for run in even), default=0)
        by_buffer = series((run for run in even if rounds.packets(run) == rounds_of), "buffer_packets", loss)
        curves = {constant: curve(_measured(by_buffer), constant) for constant in CONSTANTS}
        bursts = [run for run in same if rounds.spacing(run) is not None]
        panels[load] = {
            "by_buffer": by_buffer,
            "check": [  # evenly spaced packets with a larger W: the share should be the same
                (rounds.packets(run), run["buffer_packets"], of)
                for run in even
                if rounds.packets(run) > rounds_of and (of := series([run], "flows", loss))
            ],
            "curves": {constant: of for constant, of in curves.items() if of},
            "bursts": series((run for run in bursts if rounds.spacing(run) == 1), rounds.packets, loss),
            "by_spacing": series((run for run in bursts if _is_largest(run, load)), rounds.slots, loss),
            "spaced": {apart: shares for apart in STYLES if (shares := spaced(bursts, load, apart))},
        }
    return {"provenance": runs.provenance(), "panels": panels}


def _is_largest(run: StoredRun, load: float) -> bool:
    size = buffer(OF_BURSTS.get(load, 0), WINDOWS[-1])
    return rounds.packets(run) == WINDOWS[-1] and run["buffer_packets"] == size


def least(curves: dict[float, dict[int, float]]) -> float | None:
    """The smallest measured constant with a slope of LEAST_SLOPE or less; None if there is none."""
    return min((constant for constant, of in curves.items() if (slope(of) or 0.0) <= LEAST_SLOPE), default=None)


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


def facts(data: Data) -> list[Fact]:
    """Slopes, the least c_B and the least c_S first; then the share by buffer, by W, and by S."""
    first, rows = [], []
    for load, panel in data["panels"].items():
        constant = least(panel["curves"])
        first.append(
            Fact(f"ρ = {load:g}, S = N/ρ: least c_B with a slope of −2 or less", "large enough", None,
                 None if constant is None else exactly(constant), "", headline=True, none="none was measured")
        )  # fmt: skip
        for each, of in panel["curves"].items():
            poisson = slope(curve(lambda size, load=load: queues.md1_loss(load, size), each))  # type: ignore[misc]
            what = f"ρ = {load:g}, S = N/ρ, c_B = {each:g}: slope of ln p in ln W (prediction: Poisson packets)"
            first.append(_slope(what, "−2 or less" if each == constant else "", poisson, slope(of)))
        apart, of_spacings = least(panel["spaced"]), OF_SPACINGS.get(load, 0)
        what = f"ρ = {load:g}, S = c_S ln W, c_B = {of_spacings:g}: "
        first.append(
            Fact(f"{what}least c_S with a slope of −2 or less", "large enough", None,
                 None if apart is None else exactly(apart), "", headline=True, none="none was measured")
        )  # fmt: skip
        for each, of in panel["spaced"].items():
            first.append(_slope(f"{what}c_S = {each:g}: slope of ln p in ln W", "", None, slope(of)))
        bursts = {w: point.value for w, point in panel["bursts"].items()}
        what = f"ρ = {load:g}, S = 1, c_B = {OF_BURSTS.get(load, 0):g}: slope of ln p in ln W"
        first.append(_slope(what, "not −2: S is too small", None, slope(bursts)))
        for size, point in panel["by_buffer"].items():
            what = f"ρ = {load:g}, S = N/ρ, B = {size}: p (prediction: Poisson packets)"
            rows.append(Fact(what, "", queues.md1_loss(load, size), point, ""))
        for packets, size, check in panel["check"]:
            rows.append(
                Fact(f"ρ = {load:g}, S = N/ρ, B = {size}, W = {packets}: p", "", None, next(iter(check.values())), "")
            )
        rows += [Fact(f"ρ = {load:g}, S = 1, W = {w}: p", "", None, point, "") for w, point in panel["bursts"].items()]
        for slots, point in panel["by_spacing"].items():
            rows.append(Fact(f"ρ = {load:g}, W = {WINDOWS[-1]}, S = {slots:g}: p", "", None, point, ""))
    return first + rows


def _slope(what: str, said: str, predicted: float | None, measured: float | None) -> Fact:
    estimate = None if measured is None else exactly(measured)
    return Fact(what, said, predicted, estimate, "", none="some shares are 0 or missing")


FIGURE = PaperFigure("theorem_2", CAPTION, (STEM,), prepare, draw, facts)
