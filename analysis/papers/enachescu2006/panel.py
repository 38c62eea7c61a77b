# SPDX-License-Identifier: MIT
"""A panel of utilization against one quantity: measured estimates by curve, and lines of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from analysis.figures.common import BLACK, BLUE, BROWN, GREEN, GREY, OLIVE, ORANGE, PURPLE, RED, SKY
from analysis.papers import look
from analysis.papers.enachescu2006 import model, senders
from analysis.papers.series import Series

PALETTE = (BLUE, ORANGE, GREEN, PURPLE, BLACK, GREY, RED, BROWN, SKY, OLIVE)
SHAPES = "so^Dv*"
STYLES = {model.EXPONENTIAL: ":", model.EQUAL: "--"}


class Curve(NamedTuple):
    """Estimates by their place on the axis."""

    label: str
    shade: str
    marker: str
    points: Series
    style: str = "-"


def by_sender(curves: Mapping[str, Series]) -> list[Curve]:
    """`curves` has the keys of senders.NAMES. Each curve gets the label, colour and marker of its sender."""
    return [Curve(senders.NAMES[name], senders.COLORS[name], senders.MARKERS[name], of) for name, of in curves.items()]


def numbered(curves: Mapping[str, Series]) -> list[Curve]:
    """The n-th curve gets the n-th colour of PALETTE and the n-th marker of SHAPES; both repeat."""
    return [
        Curve(label, PALETTE[at % len(PALETTE)], SHAPES[at % len(SHAPES)], points)
        for at, (label, points) in enumerate(curves.items())
    ]


def draw(ax: look.Axes, curves: Sequence[Curve], x_label: str, log: bool = True) -> bool:
    """Draws the curves. Returns False, with a note in the panel, if no curve has a point."""
    if not any(curve.points for curve in curves):
        look.absent(ax)
        return False
    if log:
        look.log_axis(ax.xaxis)
    for curve in curves:
        places = list(curve.points)
        ax.plot(places, [point.value for point in curve.points.values()], curve.style, color=curve.shade, linewidth=0.7)
        look.interval_bars(ax, places, curve.points.values(), curve.shade, curve.marker)
        ax.plot([], [], curve.style, marker=curve.marker, color=curve.shade, linewidth=0.7, label=curve.label)
    ax.margins(x=0.03)  # else the axes cut the outer markers in half
    ax.set_xlabel(x_label)
    ax.set_ylabel("utilization u")
    ax.set_ylim(0, 1.05)
    return True


def draw_ns3(ax: look.Axes, curves: Sequence[Curve], ns3: Sequence[Curve]) -> None:
    """ns-3's points, each in the colour of the curve with the same label."""
    shades = {curve.label: curve.shade for curve in curves}
    for curve in ns3:
        if curve.label in shades:
            look.ns3_points(ax, curve.points, curve.points.values(), shades[curve.label])


def model_line(
    ax: look.Axes, points: Sequence[tuple[float, float]], label: str | None, shade: str = BLACK, name: str = ""
) -> None:
    """A line of a model through points in any order. `name`, a key of model.MODELS, selects the style; "": solid."""
    places, values = zip(*sorted(points), strict=True) if points else ((), ())
    ax.plot(places, values, STYLES.get(name, "-"), color=shade, linewidth=0.7, label=label)
