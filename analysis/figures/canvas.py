# SPDX-License-Identifier: MIT
"""The two widths of a figure: page and phone. On a phone a figure of page width would have text of 4 px.

A phone's figure has the same data and the same size of text on less paper: its notes stand inside the axes instead of
in the right margin, axes stand below each other, and labels break into lines.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAGE_IN, PHONE_IN = 10.0, 4.0
MOST_NARROW_IN = 5.5  # the widest that is drawn as on a phone
PHONE = "-phone"  # ends the name of the phone's file
TITLE_LETTERS_PER_IN, BOLD_LETTERS_PER_IN = 15, 12
# Letters that fit into a line of a phone's figure; text of 9 points has about 14 letters an inch.
X_LABEL_LETTERS, Y_LABEL_LETTERS, LEGEND_LETTERS = 44, 26, 50
LEGEND_LINE = 6  # letters that take as much room as a legend's line and gaps
PAIR_HEIGHT = 0.75  # height of one of two stacked axes / their height side by side


def for_phone(data: dict[str, Any]) -> dict[str, Any]:
    """The data of a figure, to be drawn for a phone."""
    return data | {"facts": data["facts"] | {"phone": True}}


def new(facts: dict[str, Any], height_in: float) -> Figure:
    """An empty figure of the width that the facts ask for."""
    from matplotlib.figure import Figure

    width = facts.get("width_in") or (PHONE_IN if facts.get("phone") else PAGE_IN)  # width_in: in print (printed.py)
    return Figure(figsize=(width, height_in), layout="constrained")


def is_phone(figure: Any) -> bool:
    return bool(figure.get_figure(root=True).get_figwidth() <= MOST_NARROW_IN)


def pair(facts: dict[str, Any], height_in: float, ratios: Sequence[float], **grid: Any) -> tuple[Figure, Axes, Axes]:
    """A figure with two axes beside each other, on a phone below each other."""
    if not facts.get("phone"):
        figure = new(facts, height_in)
        left, right = figure.subplots(1, 2, width_ratios=ratios, **grid)
        return figure, left, right
    figure = new(facts, 2 * PAIR_HEIGHT * height_in)
    above, below = figure.subplots(2, 1, **grid)
    return figure, above, below


def title(figure: Figure, text: str, is_bold: bool = False) -> str:
    """The text in lines that fit the figure."""
    letters = BOLD_LETTERS_PER_IN if is_bold else TITLE_LETTERS_PER_IN
    return textwrap.fill(text, int(letters * figure.get_figwidth()), break_on_hyphens=False)


def note(ax: Axes, y: float, text: str, color: str, size: float = 8, va: str = "center") -> None:
    """Text at height `y` of the vertical axis, in the right margin. On a phone the text is inside the axes: above `y`,
    or below `y` with va="top".
    """
    inside = is_phone(ax.figure)
    below = va == "top"
    look: dict[str, Any] = {"xytext": (4, 0), "va": va}
    if inside:
        paper = {"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.5}
        look = {"xytext": (-2, -2 if below else 2), "va": "top" if below else "bottom", "ha": "right", "bbox": paper}
    ax.annotate(
        text, (1, y), xycoords=("axes fraction", "data"), textcoords="offset points", fontsize=size, color=color,
        annotation_clip=False, **look,
    )  # fmt: skip


def legend(ax: Axes, place: str = "above", columns: int = 1, line: float = 1, **more: Any) -> None:
    """A legend `above` the axes on the left, `beside` them in the right margin, or inside at one of matplotlib's
    locations. On a phone it is above the axes, in as many columns as its texts leave room for. `line` is the length of
    its lines in letters.
    """
    handles = more.pop("handles", None) or ax.get_legend_handles_labels()[0]
    if is_phone(ax.figure):
        longest = max((len(str(handle.get_label())) for handle in handles), default=0)
        place, columns = "above", max(1, LEGEND_LETTERS // (longest + LEGEND_LINE))
    places: dict[str, dict[str, Any]] = {
        "above": {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2},
        "beside": {"loc": "center left", "bbox_to_anchor": (1.005, 0.5)},
    }
    look = places.get(place, {"loc": place, "borderaxespad": 0})
    ax.legend(handles=handles, ncols=columns, handlelength=line, fontsize=8, **({"frameon": False} | look | more))


def fit_phone(figure: Figure) -> Figure:
    """Breaks a phone figure's labels into lines."""
    letters = int(X_LABEL_LETTERS * figure.get_figwidth() / PHONE_IN)
    for ax in figure.axes:
        ax.set_xlabel(textwrap.fill(ax.get_xlabel(), letters, break_on_hyphens=False))
        ax.set_ylabel(textwrap.fill(ax.get_ylabel(), Y_LABEL_LETTERS))
    return figure
