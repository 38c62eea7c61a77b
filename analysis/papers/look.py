# SPDX-License-Identifier: MIT
"""The look of a paper's figures: sizes for print, the line that names the runs, panels without data, labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.arithmetic.statistics import Interval
from analysis.figures import algorithms, common, printed
from analysis.figures.common import BLACK, GREY, Data, plain, tidy
from analysis.figures.common import log_axis as log_axis
from analysis.papers.paper_runs import kinds
from lib.terminal import counted

if TYPE_CHECKING:  # figures annotate with look.Figure and look.Axes: matplotlib is loaded only where it draws
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN_IN, PAGE_IN = 3.5, 7.1  # widths of a column and of a page of a journal
PNG_DPI = 300
SMALL: dict[str, Any] = {  # for figures as wide as a column or a page; journals ask for 7 pt or more
    "font.size": 7.5, "axes.labelsize": 7.5, "axes.titlesize": 7.5, "xtick.labelsize": 7, "ytick.labelsize": 7,
    "axes.linewidth": 0.6, "xtick.major.width": 0.6, "ytick.major.width": 0.6, "xtick.major.size": 2.5,
    "ytick.major.size": 2.5, "lines.linewidth": 0.9, "lines.markersize": 3.2, "legend.fontsize": 7,
    "hatch.linewidth": 0.5,
}  # fmt: skip
LABEL_POINTS, FOOTER_POINTS = 7, 5
CENTRED: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": LABEL_POINTS}
# A hollow diamond, large enough to surround the marker of the same point
NS3: dict[str, Any] = {"markerfacecolor": "none", "markersize": 5.6, "markeredgewidth": 0.8}


def new_figure(width_in: float, height_in: float, rows: int = 1, columns: int = 1, **grid: Any) -> tuple[Figure, Any]:
    """A figure and its axes as an array of rows x columns, tidied."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width_in, height_in), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.03, h_pad=0.03, wspace=0.03, hspace=0.03)  # type: ignore[union-attr,call-arg]
    axes = figure.subplots(rows, columns, squeeze=False, **grid)
    for ax in axes.flat:
        tidy(ax)
    return figure, axes


def new_panel(width_in: float, height_in: float) -> tuple[Figure, Any]:
    """A figure with one panel, and its axes."""
    figure, axes = new_figure(width_in, height_in)
    return figure, axes[0, 0]


def footer(figure: Figure, provenance: Data) -> None:
    """One line under the figure: the number of runs that it shows (or the name of a single run), and the number of runs
    that were left out. The paper's page lists the runs that were left out; the list of runs beside the page names all.
    A line that is too long for the figure omits the commits, and if it is still too long, the clocks and the names.
    """
    used, left_out = provenance["used"], provenance["left_out"]
    count = f"{len(used)} run{'s' * (len(used) != 1)}"
    names = list(dict.fromkeys(run.split("/")[0] for run in used))
    shown = used[0] if len(used) == 1 else f"{count} of {names[0]}" if len(names) == 1 else count
    clocks = " and ".join(f"{clock} time" for clock in provenance["clocks"])
    commits = f"; commit {', '.join(provenance['commits'])}"
    more = ""
    if provenance.get("imported"):
        more += f", {provenance['imported']} of them imported, without a ledger"
    if left_out:
        more += f"; {len(left_out)} not drawn, {kinds(left_out)}"
    width = round(figure.get_figwidth() * 72 / FOOTER_POINTS * 1.75)
    if provenance.get("ns3"):
        more += f"; {counted(provenance['ns3'], 'run')} of ns-3 beside"
    texts = [f"From {shown} ({clocks}{commits}){more}.", f"From {shown} ({clocks}){more}.", f"From {count}{more}."]
    text = next((text for text in texts if len(text) <= width), texts[-1]) if used else f"From no run{more}."
    figure.supxlabel(text, fontsize=FOOTER_POINTS, color=GREY, x=0.01, ha="left")


def split(curves: Data) -> tuple[Data, list[str]]:
    """Splits `curves` (by algorithm or sender): those with numbers, and a line with the reason for each other curve."""
    missing = [curve["absent"].replace("\n", " ") for curve in curves.values() if "absent" in curve]
    return {cc: curve for cc, curve in curves.items() if "absent" not in curve}, missing


def of_ns3(data: Data, *path: Any) -> Any:
    """What ns-3's runs have at this path of a figure's data; an empty dictionary if they have nothing."""
    found = data.get("ns3", {})
    for key in path:
        found = found.get(key, {})
    return found


def sketch(ax: Axes) -> None:
    """Empties a panel for boxes and arrows, with coordinates from 0 to 1."""
    ax.set_axis_off()
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)


def box(ax: Axes, left: float, right: float, middle: float, height: float, text: str) -> None:
    """A box with text in it."""
    from matplotlib.patches import Rectangle

    corner = (left, middle - height / 2)
    ax.add_patch(Rectangle(corner, right - left, height, fill=False, edgecolor=BLACK, linewidth=0.8))
    ax.text((left + right) / 2, middle, text, **CENTRED)


def log2_axis(ax: Axes, values: Sequence[float], margin: float) -> None:
    """A logarithmic x axis (base 2) from first value / `margin` to last value * `margin`, with a tick at each value."""
    ax.set_xscale("log", base=2)
    ax.set_xlim(values[0] / margin, values[-1] * margin)
    ax.set_xticks(values, [str(value) for value in values])
    ax.minorticks_off()


def level(ax: Axes, y: float, text: str) -> None:
    """A dotted line at height `y` with its meaning at the right end."""
    common.level(ax, y, text, GREY, ":", LABEL_POINTS)


def legend(ax: Axes, **where: Any) -> None:
    """The legend of a panel, if anything in the panel has a label."""
    if ax.get_legend_handles_labels()[1]:
        ax.legend(frameon=False, **where)


def note(ax: Axes, text: str, at: tuple[float, float], offset_points: tuple[float, float], **style: Any) -> None:
    """Writes text beside a point of the axes."""
    where: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": LABEL_POINTS}
    ax.annotate(text, at, xytext=offset_points, **where | style)


def absent(*panels: Axes, text: str = "no valid run") -> Figure:
    """Panels without data say why, on grey, so that they cannot be taken for zero. Returns their figure."""
    for ax in panels:
        ax.set_facecolor("#F4F4F4")
        ax.grid(visible=False)
        if len(ax.get_shared_x_axes().get_siblings(ax)) == 1:  # the numbers of an empty axis mean nothing
            ax.tick_params(which="both", bottom=False, labelbottom=False)
        if len(ax.get_shared_y_axes().get_siblings(ax)) == 1:
            ax.tick_params(which="both", left=False, labelleft=False)
        ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", color=GREY, fontsize=LABEL_POINTS)
    return panels[0].get_figure(root=True)  # type: ignore[return-value]  # axes have a figure


def label_right(ax: Axes, labels: Sequence[tuple[float, str, str]]) -> None:
    """Writes each (y, text, colour) outside the right edge at height y; texts that would touch are moved apart."""
    height_points = ax.get_window_extent().height * 72 / ax.figure.dpi  # before layout: near enough
    low, high = ax.get_ylim()
    log = ax.get_yscale() == "log"
    place = (lambda y: np.log(y / low) / np.log(high / low)) if log else (lambda y: (y - low) / (high - low))
    ordered = sorted(labels, key=lambda label: label[0])
    at = [float(place(y)) * height_points for y, _, _ in ordered]
    for _ in range(50):  # push neighbours apart until all have room
        for i in range(len(at) - 1):
            short = LABEL_POINTS + 1 - (at[i + 1] - at[i])
            if short > 0.01:
                at[i], at[i + 1] = at[i] - short / 2, at[i + 1] + short / 2
    for (_, text, shade), y in zip(ordered, at, strict=True):
        note(ax, text, (1, y / height_points), (3, 0), xycoords="axes fraction", color=shade, annotation_clip=False)


def legend_right(ax: Axes, curves: Mapping[str, str], missing: Iterable[str], more: Iterable[Artist] = ()) -> None:
    """A legend right of the axes: each algorithm with the text of its curve, then `more`, then the texts of `missing`:
    why the other algorithms have no curve.
    """
    from matplotlib.lines import Line2D

    handles: list[Artist] = [
        Line2D(
            [],
            [],
            color=algorithms.color(cc),
            marker=algorithms.marker(cc),
            label=algorithms.name(cc) + (f": {text}" if text else ""),
        )
        for cc, text in curves.items()
    ]
    handles += [*more, *(Line2D([], [], color="none", label=text.replace(", ", ",\n")) for text in missing)]
    ax.legend(handles=handles, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, handlelength=1.2)


def interval_bars(
    ax: Axes, x: Iterable[float], intervals: Iterable[Interval], shade: str, marker: str = "o", label: str = ""
) -> None:
    """Estimates as markers, intervals as bars; for a single run only a hollow marker. `label` enters the legend."""
    for at, (value, low, high, _) in zip(x, intervals, strict=True):
        face = "white"
        if low is not None and high is not None:
            ax.plot([at, at], [low, high], color=shade, linewidth=0.9, solid_capstyle="butt")
            face = shade
        ax.plot(at, value, marker, color=shade, markerfacecolor=face, markeredgewidth=0.8)
    if label:
        ax.plot([], [], marker, color=shade, label=label)


def ns3_points(ax: Axes, x: Iterable[float], intervals: Iterable[Interval], shade: str) -> None:
    """Results of ns-3 as hollow diamonds. `shade` is the colour of the lab's curve with which they are compared."""
    for at, estimate in zip(x, intervals, strict=True):
        if estimate.low is not None and estimate.high is not None:
            ax.plot([at, at], [estimate.low, estimate.high], color=shade, linewidth=0.5)
        ax.plot(at, estimate.value, "D", color=shade, **NS3)
    if not any(text == "ns-3" for text in ax.get_legend_handles_labels()[1]):
        ax.plot([], [], "D", color=GREY, **NS3, label="ns-3")


def render(name: str, draw: Callable[[Data], Figure], data: Data, directory: Path, *, only_svg: bool = False) -> None:
    """Draws one figure in the papers' style into <directory>/<name>.svg, and for print into <name>.png: the same bytes
    from the same data. A figure with axes gets a footer. A figure without axes is a table of text that draws its own
    footer. Raises OSError.
    """
    import matplotlib

    from analysis.figures.drawing import STYLE, save, save_svg

    with matplotlib.rc_context(STYLE | SMALL):  # type: ignore[arg-type]
        figure = draw(plain(data))
        if figure.axes:
            beside = len(data["ns3"]["provenance"]["used"]) if "ns3" in data else 0
            footer(figure, {**plain(data["provenance"]), "ns3": beside})
        for ax in figure.axes:  # without data, logarithmic axes have limits that cannot be drawn
            if ax.get_xscale() == "log" and min(ax.get_xlim()) <= 0:
                ax.set_xlim(1, 10)
            if ax.get_yscale() == "log" and min(ax.get_ylim()) <= 0:
                ax.set_ylim(1, 10)
        (save_svg if only_svg else save)(figure, directory, name, PNG_DPI)
        if width := printed.width_in():
            figure.set_layout_engine("constrained")
            printed.save(figure, directory, name, width / COLUMN_IN)  # a figure as wide as a page stays so
