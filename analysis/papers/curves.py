# SPDX-License-Identifier: MIT
"""Figures whose panels have measured curves over one quantity, beside lines of theory: a figure says what its curves
are (`Panel`) and how its axes look (`Shape`). ns-3's points are drawn beside the curve with the same label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from analysis.figures.common import BLACK, BLUE, BROWN, GREEN, GREY, OLIVE, ORANGE, PURPLE, RED, SKY, Data
from analysis.papers import look
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRuns
from analysis.papers.series import Series

PALETTE = (BLUE, ORANGE, GREEN, PURPLE, BLACK, GREY, RED, BROWN, SKY, OLIVE)
SHAPES = "so^Dv*"
WIDE, RIGHT = look.PAGE_IN * 0.72, {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}


class Line(NamedTuple):
    """A line of theory, or marks. `behind`: the curves are drawn over it."""

    x: Sequence[float] | np.ndarray
    y: Sequence[float] | np.ndarray
    label: str | None = None
    style: str = "-"
    shade: str = BLACK
    width: float = 0.7
    behind: bool = False
    more: Mapping[str, Any] = {}  # other properties


class Curve(NamedTuple):
    """Measured estimates by their place on the axis, predictions for them, and lines `beside` them that belong to the
    curve. Estimates and predictions have a line of the curve's shade if they have a style. `key` has properties of its
    handle in the legend that differ from the curve's.
    """

    points: Series
    shade: str = BLUE
    marker: str = "o"
    style: str = ""
    theory: Mapping[float, float] = {}
    theory_style: str = "--"
    width: float = 0.7
    beside: Sequence[Line] = ()
    key: Mapping[str, Any] = {}


class Panel(NamedTuple):
    """Curves by their label in the legend, and lines of theory."""

    curves: Mapping[str, Curve]
    lines: Sequence[Line] = ()


@dataclass(frozen=True)
class Shape:
    """Axes that all panels of a figure share. `log` names the logarithmic axes: "x", "y", "xy". `x` and `y` are limits.
    `level` is a horizontal line. `more` draws what only this figure has. The legend is in the panel with the number
    `legend_in`.
    """

    x_label: str
    y_label: str = "utilization u"
    size_in: tuple[float, float] = (WIDE, 2.8)
    log: str = "x"
    y: Mapping[str, Any] = field(default_factory=lambda: {"bottom": 0, "top": 1.05})
    x: Mapping[str, Any] = field(default_factory=dict)
    margin: float = 0.03  # else the axes cut the outer markers in half
    legend: Mapping[str, Any] | None = None
    legend_in: int = 0
    label_each: bool = True  # False: only the first panel has the label of the y-axis
    ns3: str = "last"  # ns-3's points are drawn, and named in the legend, "last", after "each" curve, or not: ""
    level: float | None = None
    absent: str = "no valid run"
    more: Callable[[look.Axes, Panel, Data], None] | None = None


def figure(
    name: str, caption: str, sweeps: tuple[str, ...], prepare: Callable[[PaperRuns], Data], shape: Shape
) -> PaperFigure:
    """`prepare` returns `panels`, Panel by title, `facts`, and what else `shape.more` needs."""
    return PaperFigure(name, caption, sweeps, prepare, partial(draw, shape))


def numbered(curves: Mapping[str, Curve]) -> dict[str, Curve]:
    """The n-th curve gets the n-th colour of PALETTE, the n-th marker of SHAPES (both repeat), and a line."""
    return {
        label: curve._replace(shade=PALETTE[at % len(PALETTE)], marker=SHAPES[at % len(SHAPES)], style="-")
        for at, (label, curve) in enumerate(curves.items())
    }


def draw(shape: Shape, data: Data) -> look.Figure:
    """Panels side by side."""
    panels: dict[str, Panel] = data["panels"]
    figure, axes = look.new_figure(*shape.size_in, 1, max(len(panels), 1), sharey=True)
    for ax, (title, panel) in zip(axes[0], panels.items(), strict=False):
        if title:
            ax.set_title(title, loc="left", pad=3)
        if not any(curve.points for curve in panel.curves.values()):
            look.absent(ax, text=shape.absent)
            continue
        draw_panel(ax, panel, look.of_ns3(data, "panels").get(title), shape)
        if shape.more:
            shape.more(ax, panel, data)
    if not panels:
        return look.absent(axes[0, 0], text=shape.absent)
    if not shape.label_each:
        axes[0, 0].set_ylabel(shape.y_label)
    if shape.legend:
        look.legend(axes[0, shape.legend_in], **shape.legend)
    return figure


def draw_panel(ax: look.Axes, panel: Panel, ns3: Panel | None, shape: Shape) -> None:
    """One panel with axes and labels."""
    if "x" in shape.log:
        look.log_axis(ax.xaxis)
    if "y" in shape.log:
        ax.set_yscale("log")
    ax.margins(x=shape.margin)
    draw_lines(ax, (line for line in panel.lines if line.behind))
    simulated = {label: curve.points for label, curve in ns3.curves.items() if curve.points} if ns3 else {}
    for label, curve in panel.curves.items():
        draw_curve(ax, label, curve)
        if shape.ns3 == "each" and label in simulated:
            look.ns3_points(ax, simulated[label], simulated[label].values(), curve.shade)
        draw_lines(ax, curve.beside, markerfacecolor="none")
    for label, points in simulated.items() if shape.ns3 == "last" else ():
        if label in panel.curves:
            look.ns3_points(ax, points, points.values(), panel.curves[label].shade)
    for curve in panel.curves.values():
        places = sorted(curve.theory)
        if curve.theory_style and places:
            ax.plot(places, [curve.theory[at] for at in places], curve.theory_style, color=curve.shade, linewidth=0.7)
    draw_lines(ax, (line for line in panel.lines if not line.behind))
    if shape.level is not None:
        look.level(ax, shape.level, "")
    ax.set_xlabel(shape.x_label)
    if shape.label_each:
        ax.set_ylabel(shape.y_label)
    if shape.x:
        ax.set_xlim(**shape.x)
    if shape.y:
        ax.set_ylim(**shape.y)


def draw_curve(ax: look.Axes, label: str, curve: Curve) -> None:
    """Estimates with their intervals, the line through them, and their entry in the legend."""
    style: dict[str, Any] = {"color": curve.shade, "linewidth": curve.width}
    if curve.style:
        ax.plot(list(curve.points), [point.value for point in curve.points.values()], curve.style, **style)
    look.interval_bars(ax, curve.points, curve.points.values(), curve.shade, curve.marker)
    handle: dict[str, Any] = {"linestyle": curve.style or "none", "marker": curve.marker, **style, **curve.key}
    if label:
        ax.plot([], [], label=label, **handle)


def draw_lines(ax: look.Axes, lines: Iterable[Line], **style: Any) -> None:
    for line in lines:
        ax.plot(
            line.x, line.y, line.style, color=line.shade, linewidth=line.width, label=line.label, **style, **line.more
        )
