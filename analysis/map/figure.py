# SPDX-License-Identifier: MIT
"""Draws the map: a panel per criterion with the least buffers over the number of flows, and one panel with the best
buffers over the capacity ratio. The panels stand one below another, so that the figure is readable on a phone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mode
from typing import Any, NamedTuple

import numpy as np

from analysis.figures import algorithms
from analysis.figures.common import BLACK, BLUE, BROWN, GREY, OLIVE, ORANGE, SKY, Data
from analysis.map import ratio
from analysis.map.points import BBR, CRITERIA, PACED, SENDERS, SLOW_ACCESS, UNPACED, MapPoint
from analysis.map.ratio import LARGE, SMALL, BestBuffer
from analysis.map.rules import LEAST_WINDOW, RULES, MapRule, region, spans
from analysis.papers import look
from analysis.theory import capacity_ratio
from analysis.wording import algorithm_names

WIDTH_IN, PANEL_IN, LEGEND_IN = 4.0, 2.7, 1.6
MARKERS = {UNPACED: "o", PACED: "s", SLOW_ACCESS: "^", BBR: "D"}
SHADES = (BLACK, BROWN, SKY, OLIVE)  # of the rules, in their order
DODGE = 1.035  # factor between points with the same number of flows
FIRST_FLOWS, LAST_FLOWS = 0.8, 700
DROPS_ON_ARRIVAL = "tail-drop"
UP, DOWN, ARROW_POINTS = 1, -1, 8
OF_RATIO = {SMALL: (BLUE, "v"), LARGE: (ORANGE, "^")}


class Look(NamedTuple):
    """How points are drawn. `arrow`: UP or DOWN, towards the bound that is not known; 0 if both are known."""

    shade: str
    face: str
    marker: str
    arrow: int


def draw(data: Data) -> look.Figure:
    """`data`: points, bests, and provenance."""
    panels = len(CRITERIA) + 1
    figure, axes = look.new_figure(WIDTH_IN, panels * PANEL_IN + LEGEND_IN, panels, 1)
    points: list[MapPoint] = data["points"]
    for letter, ax, criterion in zip("abc", axes[:, 0], CRITERIA, strict=False):
        ax.set_title(f"({letter}) Least buffer with which {criterion.text}", loc="left", pad=3)
        _panel(ax, [point for point in points if point.criterion == criterion])
    for ax in axes[: len(CRITERIA), 0]:
        ax.sharey(axes[0, 0])
    _ratio_panel(axes[-1, 0], data["bests"])
    figure.legend(handles=_handles(points), loc="outside upper left", ncols=2, frameon=False, handlelength=2.2)
    return figure


def _panel(ax: Any, points: Sequence[MapPoint]) -> None:
    ax.set_xscale("log")
    ax.set_yscale("log")
    bdp = _paced_bdp(points)
    for rule, shade in zip(RULES, SHADES, strict=True):
        _line(ax, rule, shade, points, bdp)
    at: dict[int, int] = {}
    looks: dict[Look, list[tuple[float, MapPoint]]] = {}
    for point in sorted(points, key=lambda point: not point.bounds.censored):
        place = at[point.flows] = at.get(point.flows, -1) + (not point.bounds.censored)
        sideways = 0 if point.bounds.censored else (place + 1) // 2 * (1 if place % 2 else -1)
        looks.setdefault(_look(point), []).append((point.flows * DODGE**sideways, point))
    for look_of, placed in looks.items():
        _draw_points(ax, look_of, placed)
    ax.set_xlim(FIRST_FLOWS, LAST_FLOWS)
    ax.set_ylim(3e-4, 6)
    ticks = [1, 3, 10, 30, 100, 300]
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.minorticks_off()
    ax.set_xlabel("long flows n")
    ax.set_ylabel("buffer over BDP")


def _paced_bdp(points: Sequence[MapPoint]) -> float:
    """The most common BDP of points with limited windows, unpaced senders excluded. The axis is buffer / BDP, so this
    BDP changes only two things: the height of the logarithmic rule, and the right end of every rule's line.
    """
    return float(mode(round(point.bdp) for point in points if point.senders != UNPACED and point.window_packets))


def _line(ax: Any, rule: MapRule, shade: str, points: Sequence[MapPoint], bdp: float) -> None:
    """Draws the rule as a thin line. The line is broad at numbers of flows at which the rule held for every judged
    point of the senders that the paper states it for.
    """

    def heights(flows: np.ndarray) -> list[float]:
        return [rule.buffer(bdp, n, bdp / n) / bdp for n in flows]

    flows = np.geomspace(FIRST_FLOWS, LAST_FLOWS, 60)
    flows = flows[(flows >= 1) & (flows <= bdp / LEAST_WINDOW)]
    ax.plot(flows, heights(flows), color=shade, linewidth=0.7, linestyle="--", zorder=1)
    rule_region = region(rule, [point for point in points if point.senders in rule.senders])
    for first, last in spans(rule_region.held_at, rule_region.failed_at):
        held = np.geomspace(max(first * 0.93, 1), last * 1.07, 30)
        ax.plot(held, heights(held), color=shade, linewidth=6, alpha=0.3, solid_capstyle="butt", zorder=1)


def _look(point: MapPoint) -> Look:
    shade = algorithms.color(point.cc)
    face = shade if point.drops == DROPS_ON_ARRIVAL else "white"
    arrow = UP if math.isinf(point.bounds.high) else DOWN if point.bounds.censored else 0
    return Look(shade, face, MARKERS[point.senders], arrow)


def _draw_points(ax: Any, of: Look, placed: Sequence[tuple[float, MapPoint]]) -> None:
    """Draws points of one look, and their bars or arrows, with few artists: the picture is a file of the repository."""
    x, y = [at for at, _ in placed], [point.bounds.middle / point.bdp for _, point in placed]
    style: dict[str, Any] = {"color": of.shade, "markeredgewidth": 0.7, "linestyle": "", "zorder": 3}
    if of.arrow:
        ax.plot(x, y, of.marker, markerfacecolor=of.face, **style | {"markersize": 2.2, "alpha": 0.6})
        _arrows(ax, x, y, of.arrow, of.shade)
        return
    low, high = ([getattr(point.bounds, end) / point.bdp for _, point in placed] for end in ("low", "high"))
    ax.vlines(x, low, high, color=of.shade, linewidth=0.7, zorder=2)
    ax.plot(x, y, of.marker, markerfacecolor=of.face, **style)


def _arrows(ax: Any, x: Sequence[float], y: Sequence[float], direction: int, shade: str) -> None:
    """Draws arrows from the known bounds towards the unknown bounds."""
    from matplotlib.path import Path

    corners = [(0, 0), (0, 1), (-0.18, 0.72), (0, 1), (0.18, 0.72)]
    path = Path([(across, along * direction) for across, along in corners], [1, 2, 1, 2, 2])
    ax.plot(x, y, linestyle="", marker=path, markersize=2 * ARROW_POINTS, markerfacecolor="none", color=shade,
            markeredgewidth=0.6, alpha=0.6, zorder=2)  # fmt: skip


def _ratio_panel(ax: Any, bests: Sequence[BestBuffer]) -> None:
    """Draws the best buffers of Prasad et al.'s closed loops, and lines for the paper's rules where it has any."""
    ax.set_title("(d) Buffer with the highest throughput of transfers", loc="left", pad=3)
    ax.set_xscale("log")
    ax.set_yscale("log")
    of_gamma: dict[float, int] = {}
    for best in bests:
        shade, marker = OF_RATIO[best.transfers]
        place = of_gamma[best.gamma] = of_gamma.get(best.gamma, -1) + 1
        x = best.gamma * 1.22**place
        high = best.buffer if math.isinf(best.high) else best.high
        ax.plot([x, x], [best.low / best.bdp, high / best.bdp], color=shade, linewidth=1.2)
        ax.plot(x, best.buffer / best.bdp, marker, color=shade)
        text = f"{best.users:,}"
        look.note(ax, text, (x, best.buffer / best.bdp), (4, 0), fontsize=6, color=shade)
        if ratio.is_open(best):
            _arrows(ax, [x], [high / best.bdp], UP, shade)
    for rule, style in ((_small_rule, "--"), (_large_rule, ":"), (_fast_rule, "-.")):
        for bdp in sorted({best.bdp for best in bests}):
            gammas = [best.gamma for best in bests if best.bdp == bdp]
            height = rule(gammas[0], bdp)
            if height is not None:
                ax.plot([gammas[0] / 1.25, gammas[0] * 3.2], [height, height], style, color=BLACK, linewidth=0.8)
    ax.set_xlim(0.05, 40)
    ax.set_ylim(0.01, 20)
    ticks = [0.1, 1, 10]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.set_xlabel("capacity ratio Γ: output over input. Beside the points: users")
    ax.set_ylabel("buffer over BDP")
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=shade, marker=marker, label=name) for name, (shade, marker) in OF_RATIO.items()]
    texts: dict[Any, str] = {
        "--": "small: √(2 M/D BDP)",
        ":": f"large: {capacity_ratio.pl_l_buffer(1):.2g} BDP",
        "-.": f"Γ > 1: less than {capacity_ratio.EX_LARGEST_PACKETS} packets",
    }
    handles += [Line2D([], [], color=BLACK, linestyle=style, label=text) for style, text in texts.items()]
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.45, -0.2), ncols=2, frameon=False)


def _small_rule(gamma: float, bdp: float) -> float | None:
    return capacity_ratio.mm1b_s_buffer(bdp, capacity_ratio.S_SEGMENTS) / bdp if gamma <= 1 else None


def _large_rule(gamma: float, bdp: float) -> float | None:
    return capacity_ratio.pl_l_buffer(bdp) / bdp if gamma <= 1 else None


def _fast_rule(gamma: float, bdp: float) -> float | None:
    return capacity_ratio.EX_LARGEST_PACKETS / bdp if gamma > 1 else None


def _handles(points: Sequence[MapPoint]) -> list[Any]:
    from matplotlib.lines import Line2D

    shown = sorted({point.cc for point in points}, key=lambda cc: list(algorithm_names.NAMES).index(cc))
    by_name = {algorithms.name(cc).partition(" (")[0]: algorithms.color(cc) for cc in shown}
    colours = [Line2D([], [], color=shade, marker="o", linestyle="", label=name) for name, shade in by_name.items()]
    kinds = [
        Line2D([], [], color=GREY, marker=MARKERS[kind], linestyle="", label=f"senders: {kind}") for kind in SENDERS
    ]
    kinds.append(Line2D([], [], color=GREY, marker="o", markerfacecolor="white", linestyle="",
                        label="drops take link time"))  # fmt: skip
    rules = [
        Line2D([], [], color=shade, linestyle="--", label=f"{rule.name} ({rule.paper})")
        for rule, shade in zip(RULES, SHADES, strict=True)
    ]
    return [*colours, *kinds, *rules]
