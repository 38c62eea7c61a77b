# SPDX-License-Identifier: MIT
"""Shared by figures of sweeps: the choice of parameters for the horizontal axis, lines and panels; and the drawing of a
measure: every repetition as a dot, the mean of the repetitions with its Student's t interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from analysis.arithmetic.statistics import Interval, mean_interval
from analysis.figures import algorithms, canvas
from analysis.figures.common import DISTINCT, GREY, Data, tidy
from analysis.wording.formats import si
from runs.stored_sweep import rank

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from runs.stored_sweep import Row, Stored

ALONG = ("buf", "flows", "rate", "rtt", "load", "ecn_threshold", "mtu")  # in a tie, the first is the horizontal axis
TITLES = {
    "cc": "congestion control", "flows": "flows", "buf": "buffer (packets)", "rate": "rate of the link",
    "rtt": "base RTT", "mtu": "MTU (bytes)", "ecn_threshold": "ECN threshold (packets)", "load": "load",
}  # fmt: skip
MOST_LINES, MOST_PANELS = 8, 6  # limits of legibility
LOG_FROM = 6.0  # an axis is logarithmic if its largest value is this many times its smallest
MARKERS = "os^Dvp<>"
PHONE_ROW = 0.8  # height of a row on a phone / its height on a page
PHONE_LABELS = 2.5  # on a phone, tick labels are thinned as for this many panels side by side on a page
DODGE = 0.012  # shift between lines, as a share of the axis, so that intervals do not hide each other


class PanelLayout(NamedTuple):
    """`x` is the parameter of the horizontal axis. Each combination of values of the parameters `lines` is a line, and
    each combination of values of the parameters `panels` is a panel.
    """

    x: str
    lines: tuple[str, ...]
    panels: tuple[str, ...]


class SweepFigure(NamedTuple):
    """`prepare(sweep)` returns plain data, or None if the sweep has nothing to draw; `draw(data)` returns the picture;
    `caption` explains it.
    """

    caption: str
    prepare: Callable[[Stored], Data | None]
    draw: Callable[[Data], Figure]


class PlottedMeasure(NamedTuple):
    """A quantity of a run, and its vertical axis."""

    title: str
    of: Callable[[Row], float | None]  # None: not measured
    level: float | None = None  # where a dashed line is drawn
    most: float | None = None  # largest possible value
    least_span: float = 0.0  # least span of the axis: a smaller span would magnify noise
    from_zero: bool = False  # the axis begins at 0


def layout(parameters: dict[str, list[Any]]) -> PanelLayout:
    """The horizontal axis has the numeric parameter with most values, the first of ALONG in a tie; without a numeric
    parameter, the algorithms. All other parameters are taken in this order: algorithms, then those with fewest values.
    The first makes lines. The next make lines as long as there are at most MOST_LINES lines. The rest make panels.
    """
    numeric = [key for key, values in parameters.items() if all(isinstance(v, (int, float)) for v in values)]
    wanted = sorted(numeric, key=lambda key: (-len(parameters[key]), ALONG.index(key) if key in ALONG else len(ALONG)))
    x = wanted[0] if wanted else "cc"
    rest = sorted((key for key in parameters if key != x), key=lambda key: (key != "cc", len(parameters[key])))
    lines: list[str] = []
    panels: list[str] = []
    count = 1
    for key in rest:
        count *= len(parameters[key])
        (lines if count <= MOST_LINES and not panels else panels).append(key)
    return PanelLayout(x, tuple(lines or rest[:1]), tuple(key for key in rest if key not in (lines or rest[:1])))


def with_unit(key: str, value: Any) -> str | None:
    """A rate (bit/s) or an RTT (ns) with an SI prefix; None for other parameters."""
    return si(value, "b/s") if key == "rate" else si(value / 1e9, "s") if key == "rtt" else None


def words(key: str, value: Any) -> str:
    """A parameter's value in words."""
    if value is None:
        return f"no {key}"
    if key == "cc":
        return algorithms.name(str(value))
    if key == "flows":
        return f"{value} flow{'' if value == 1 else 's'}"
    if key == "buf":
        return f"buffer {value}"
    if amount := with_unit(key, value):
        return f"RTT {amount}" if key == "rtt" else amount
    return str(value) if isinstance(value, str) and key in ("mode", "traffic", "clock", "target") else f"{key} {value}"


def grouped(sweep: Stored, measures: Sequence[PlottedMeasure]) -> Data:
    """Values of the valid repetitions by panel, line and value along the axis, one list per measure. Only the first
    MOST_PANELS panels are kept; the others are counted.
    """
    plan = layout(sweep.parameters)
    panels: dict[str, dict[str, dict[Any, list[list[float]]]]] = {}
    lines: dict[str, Any] = {}
    for row in sorted(sweep.valid, key=lambda row: [rank(sweep.value(row, key)) for key in plan.lines + plan.panels]):
        panel = ", ".join(words(key, sweep.value(row, key)) for key in plan.panels)
        line = ", ".join(words(key, sweep.value(row, key)) for key in plan.lines)
        lines[line] = row["cc"]
        cell = panels.setdefault(panel, {}).setdefault(line, {})
        values = cell.setdefault(sweep.value(row, plan.x), [[] for _ in measures])
        for into, measure in zip(values, measures, strict=True):
            value = measure.of(row)
            if value is not None:
                into.append(float(value))
    xs = sorted({x for panel in panels.values() for line in panel.values() for x in line}, key=rank)
    has_line_per_cc = len(set(lines.values())) == len(lines)
    return {
        "facts": facts(sweep),
        "x": plan.x,
        "xs": xs,
        "panels": dict(list(panels.items())[:MOST_PANELS]),
        "panels_left_out": max(len(panels) - MOST_PANELS, 0),
        "colors": {
            line: algorithms.COLORS[cc] if has_line_per_cc and cc in algorithms.COLORS else DISTINCT[i % len(DISTINCT)]
            for i, (line, cc) in enumerate(lines.items())
        },
        "measures": [{k: v for k, v in measure._asdict().items() if k != "of"} for measure in measures],
    }


def measured(sweep: Stored, measures: Sequence[PlottedMeasure], needed: Sequence[int] = (0,)) -> Data | None:
    """`grouped`, or None if no repetition has a value of one of the measures `needed`."""
    data = grouped(sweep, measures)
    return data if any(any_measured(data, measure) for measure in needed) else None


def any_measured(data: Data, measure: int = 0) -> bool:
    """Whether any repetition in the panels has a value of the measure."""
    return any(
        values[measure] for panel in data["panels"].values() for line in panel.values() for values in line.values()
    )


def facts(sweep: Stored) -> Data:
    """The title line of a figure of repetitions: the sweep's name, the number of valid runs, and of all others."""
    left_out = len(sweep.rows) - len(sweep.valid)
    return {
        "text": f"{sweep.name}: {len(sweep.valid)} valid runs"
        + (f"; not drawn: {left_out} that are not valid or missing" if left_out else "")
    }


# Drawing --------------------------------------------------------------------------------------------------------------


def new_figure(data: Data, rows: int, row_in: float = 2.6) -> tuple[Figure, Any]:
    """A titled figure, and its axes as an array of rows x panels. On a phone panels are below each other."""
    panels = max(len(data["panels"]), 1)
    if data["facts"].get("phone"):
        figure = canvas.new(data["facts"], 0.7 + PHONE_ROW * row_in * rows * panels)
        axes = figure.subplots(rows * panels, 1, squeeze=False, sharex=True).reshape(panels, rows).T
        for row in axes:
            for ax in row[1:]:
                ax.sharey(row[0])
    else:
        figure = canvas.new(data["facts"], 0.7 + row_in * rows)
        axes = figure.subplots(rows, panels, squeeze=False, sharex=True, sharey="row")
    for ax in axes.flat:
        tidy(ax)
    for ax, title in zip(axes[0], data["panels"], strict=False):
        ax.set_title(title, fontsize=9)
    more = f"; {data['panels_left_out']} more panels would not fit" if data["panels_left_out"] else ""
    text = data["facts"]["text"] + more
    figure.suptitle(canvas.title(figure, text), fontsize=9, color=GREY, x=0.01, ha="left")
    return figure, axes


def positions(data: Data) -> dict[Any, float]:
    """Positions of the values along the axis: each at its value if all are numbers, else at equal distances."""
    if is_numeric(data):
        return {x: float(x) for x in data["xs"]}
    return {x: float(i) for i, x in enumerate(data["xs"])}


def is_numeric(data: Data) -> bool:
    """Whether all values along the axis are numbers."""
    return all(isinstance(x, (int, float)) for x in data["xs"])


def is_log(data: Data) -> bool:
    """Whether the values span enough for a logarithmic axis."""
    return is_numeric(data) and data["xs"][0] > 0 and data["xs"][-1] >= LOG_FROM * data["xs"][0]


def shifted(data: Data, at: float, line: int, lines: int) -> float:
    """The position `at`, shifted so that lines are beside each other."""
    part = DODGE * (line - (lines - 1) / 2)
    low, high = min(positions(data).values()), max(positions(data).values())
    if is_log(data):
        return at * (high / low) ** part
    return at + part * ((high - low) or 1)


def label_x(ax: Axes, data: Data) -> None:
    """Labels the horizontal axis with a tick at each value of its parameter, as far as there is room."""
    from matplotlib.ticker import NullLocator

    where = positions(data)
    if is_log(data):
        ax.set_xscale("log")
    low, high = min(where.values()), max(where.values())
    room = 0.06
    if is_log(data):
        ax.set_xlim(low * (high / low) ** -room, high * (high / low) ** room)
    else:
        span = (high - low) or 1
        ax.set_xlim(low - room * span, high + room * span)
    ticks = thinned(list(where.items()), data)
    shown = [_tick(data["x"], x) for x, _ in ticks]
    ax.set_xticks([at for _, at in ticks], shown)
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlabel(str(TITLES.get(data["x"], data["x"])))


def thinned(places: list[tuple[Any, float]], data: Data) -> list[tuple[Any, float]]:
    """The values whose labels do not overlap."""
    import math

    scale = math.log if is_log(data) else float
    span = scale(places[-1][1]) - scale(places[0][1]) or 1
    kept: list[tuple[Any, float]] = []
    beside = PHONE_LABELS if data["facts"].get("phone") else max(len(data["panels"]), 1)
    for x, at in places:
        if not kept or scale(at) - scale(kept[-1][1]) >= 0.055 * span * beside:
            kept.append((x, at))
    return kept


def _tick(key: str, value: Any) -> str:
    if isinstance(value, str) or value is None:
        return words(key, value)
    return with_unit(key, value) or f"{value:g}"


def draw_measures(data: Data) -> Figure:
    """Draws each measure in a row: dots are repetitions, lines join their means, bars are Student's t intervals."""
    figure, axes = new_figure(data, len(data["measures"]))
    where = positions(data)
    for row, measure in enumerate(data["measures"]):
        for column, (_, lines) in enumerate(data["panels"].items()):
            ax = axes[row, column]
            for number, (line, cells) in enumerate(lines.items()):
                color = data["colors"][line]
                drawn = [
                    (shifted(data, where[x], number, len(lines)), interval, values[row])
                    for x, values in sorted(cells.items(), key=lambda cell: rank(cell[0]))
                    if (interval := mean_interval(values[row]))
                ]
                draw_line(ax, drawn, color, MARKERS[number % len(MARKERS)], line)
            if measure["level"] is not None:
                ax.axhline(measure["level"], color=GREY, linewidth=0.8, linestyle="--")
            label_x(ax, data)
            stacked = data["facts"].get("phone")
            if row < len(data["measures"]) - 1 or (stacked and column < len(data["panels"]) - 1):
                ax.set_xlabel("")
            if column == 0 or stacked:
                ax.set_ylabel(measure["title"])
        span(axes[row, 0], measure)
    legend(figure, axes, data)
    figure.align_ylabels()
    return figure


def span(ax: Axes, measure: Data) -> None:
    """Sets the vertical axis: at least `least_span` wide, and hardly beyond the measure's possible values."""
    low, high = ax.get_ylim()
    high = (
        high if measure["most"] is None else min(high, measure["most"] + 0.04 * max(high - low, measure["least_span"]))
    )
    # No measure is negative, though the interval of few repetitions may be.
    low = 0 if measure["from_zero"] else max(low, -0.04 * high)
    ax.set_ylim(min(low, high - measure["least_span"]), high)
    ax.ticklabel_format(axis="y", useOffset=False)


def draw_line(ax: Axes, points: list[tuple[float, Interval, list[float]]], color: str, marker: str, label: str) -> None:
    """Draws a line through points of (position, mean with its interval, the repetitions' values)."""
    ax.plot([x for x, _, _ in points], [y.value for _, y, _ in points], color=color, linewidth=1)
    bars = [(x, y.low, y.high) for x, y, _ in points if y.low is not None and y.high is not None]
    if bars:
        ax.vlines(*zip(*bars, strict=True), color=color, linewidth=2.2, alpha=0.55)
    dots = [(x, value) for x, _, values in points for value in values]
    if dots:
        ax.plot(*zip(*dots, strict=True), ".", color=color, markersize=3, alpha=0.6)
    ax.plot(
        [x for x, _, _ in points], [y.value for _, y, _ in points], marker,
        color=color, markersize=4.5, markerfacecolor="white", markeredgewidth=1,
    )  # fmt: skip
    ax.plot([], [], marker=marker, color=color, markersize=4.5, markerfacecolor="white", label=label)


def legend(figure: Figure, axes: Any, data: Data) -> None:
    """One legend of all lines, in the margin on the right, on a phone below; none for a single line without a name."""
    handles: dict[str, Any] = {}
    for ax in axes.flat:
        for handle, text in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(text, handle)
    handles.pop("", None)
    if handles:
        place: Any = "outside lower left" if canvas.is_phone(figure) else "outside right upper"
        figure.legend(handles.values(), handles.keys(), loc=place, frameon=False, fontsize=8, handlelength=1.4)
