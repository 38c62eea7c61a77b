# SPDX-License-Identifier: MIT
"""FIGURES=pdf: each figure also as a vector PDF as wide as a paper's column, in the pages' style, and its numbers.

<name>.pdf         fonts embedded as TrueType (fonttype 42); text of 8 and 7 points at any width
<name>-drawn.csv   the points of each line, bar and mark, in the units of its axes

The width holds for this process and those that it forks (`begin`): figures are drawn in several places.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from analysis.figures import canvas
from lib.errors import BadValue, SpecError
from lib.keys import Keys, field

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INCHES = {"in": 1.0, "mm": 1 / 25.4, "cm": 1 / 2.54}
LEAST_IN, MOST_IN, DEFAULT = 2.0, 20.0, "3.3in"
TEXT = 8 / 9  # of the pages' text, 9 and 8 points
HEAD = ("panel", "x label", "y label", "series", "label", "x", "y")
_WIDTH = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3})?)(in|mm|cm)")
_width_in: float | None = None


def inches(value: object) -> float:
    """Raises ValueError."""
    match = _WIDTH.fullmatch(str(value).strip())
    width = float(match[1]) * INCHES[match[2]] if match else 0.0
    if not LEAST_IN <= width <= MOST_IN:
        raise ValueError(f"is no width; allowed: {LEAST_IN:g}in to {MOST_IN:g}in, as 3.3in, 84mm, 8.4cm")
    return width


class Printing(Keys):
    """The keys of the commands that write figures."""

    figures_: str | None = field(
        "pdf: also write each figure for print, as <name>.pdf with embedded fonts, and the numbers that it draws, as "
        "<name>-drawn.csv", values=("pdf",),
    )  # fmt: skip
    width: float | None = field(f"with FIGURES=pdf: the width of a column, as 84mm (default: {DEFAULT})", inches)


def begin(asked: Printing) -> None:
    """From now on this process writes figures for print, too, if its user asked for them. Raises SpecError."""
    global _width_in
    if asked.width and not asked.figures_:
        raise SpecError([BadValue("WIDTH", f"{asked.width:g}in", "is of figures for print; add FIGURES=pdf")])
    _width_in = (asked.width or inches(DEFAULT)) if asked.figures_ else None


def width_in() -> float | None:
    """None: no figures for print."""
    return _width_in


def words() -> list[str]:
    """The words with which another process writes the same."""
    return [] if _width_in is None else ["FIGURES=pdf", f"WIDTH={_width_in:.3f}in"]


def for_print(data: dict[str, Any], width: float) -> dict[str, Any]:
    """The data of a figure, to be drawn as wide as `save` will scale it down to `width`."""
    natural = width / TEXT
    return data | {"facts": data["facts"] | {"phone": natural <= canvas.MOST_NARROW_IN, "width_in": natural}}


def save(figure: Figure, directory: Path, name: str, scale: float = TEXT) -> None:
    """Writes <directory>/<name>.pdf, with everything scaled, and its numbers. Raises OSError."""
    from matplotlib import rc_context
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

    with (directory / f"{name}-drawn.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(HEAD)
        table.writerows(numbers(figure))
    figure.set_size_inches(*(figure.get_size_inches() * scale))
    for artist in cast("list[Any]", figure.findobj()):
        if artist.get_rasterized():
            artist.set_rasterized(False)
        if isinstance(artist, Text):
            artist.set_fontsize(float(artist.get_fontsize()) * scale)
        if isinstance(artist, Line2D):
            artist.set_linewidth(artist.get_linewidth() * scale)
            artist.set_markersize(artist.get_markersize() * scale)
    with rc_context({"pdf.fonttype": 42}):
        figure.savefig(directory / f"{name}.pdf", metadata={"CreationDate": None, "Creator": "bufferscope"})


def numbers(figure: Figure) -> Iterator[tuple[Any, ...]]:
    """A row for each point of each line, collection and bar, in the units of their axes."""
    for number, ax in enumerate(figure.axes, 1):
        where = (number, _plain(ax.get_xlabel()), _plain(ax.get_ylabel()))
        for series, artist in enumerate(ax.get_children(), 1):
            label = str(artist.get_label())
            for x, y in _points(ax, artist):
                yield (*where, series, "" if label.startswith("_") else _plain(label), f"{x:.9g}", f"{y:.9g}")


def _points(ax: Axes, artist: Artist) -> Iterator[tuple[float, float]]:
    """The points of an artist that is drawn in the units of both axes; of others, such as texts, none."""
    from matplotlib.collections import Collection, PathCollection
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch, Rectangle, StepPatch

    found: Any = ()
    if isinstance(artist, Line2D) and artist.get_transform() == ax.transData:
        found = zip(artist.get_xdata(), artist.get_ydata(), strict=True)  # type: ignore[arg-type]
    elif isinstance(artist, PathCollection):
        found = artist.get_offsets()
    elif isinstance(artist, Collection) and artist.get_transform() == ax.transData:
        found = (point for path in artist.get_paths() for point in cast("Any", path.vertices))
    elif isinstance(artist, StepPatch):
        found = zip(*cast("Any", artist.get_data())[:2], strict=False)  # values, edges
        found = ((edge, value) for value, edge in found)
    elif isinstance(artist, Patch) and artist is not ax.patch and artist.get_data_transform() == ax.transData:
        corner = isinstance(artist, Rectangle) and artist.get_x() + artist.get_width() / 2
        top = isinstance(artist, Rectangle) and artist.get_y() + artist.get_height()
        found = [(corner, top)] if isinstance(artist, Rectangle) else artist.get_path().vertices
    for x, y in found:
        yield float(x), float(y)


def _plain(text: str) -> str:
    return " ".join(text.replace(r"\$", "$").split())
