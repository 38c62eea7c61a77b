# SPDX-License-Identifier: MIT
"""Shared by all figures: colours, axes, thinning by pixel column, and the title line with the run's parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from analysis.figures import canvas
from analysis.measure import group_results
from analysis.measure.metrics import UTILIZATION_WINDOW_RTTS
from analysis.wording.formats import count, number, si
from analysis.wording.link_text import changes_text, rate_text
from analysis.wording.traffic_text import traffic_text
from lib import units
from lib.frames import ETHERNET_BYTES
from model.experiment import Experiment
from model.groups import OPEN_LOOP, PROGRAM

if TYPE_CHECKING:  # figures annotate with common.Figure, ...: matplotlib is loaded only where it draws
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis
    from matplotlib.figure import Figure

    from analysis.judge.analyse import Analysis
    from analysis.read.flows import Flow as Flow
    from analysis.read.load import Run

COLUMNS = 1200  # pixel columns of the widest axes at report width
MAX_DROPS_DRAWN = 4000
# Okabe and Ito's palette with its light colours darkened. Against the background, lines have a contrast of at least 3
# and text of at least 4.5 (WCAG 2.1 AA). This holds on a white page, and on a dark page, where style.css inverts
# figures. tests/test_colors.py checks both pages.
BLUE, ORANGE, GREEN, RED = "#0072B2", "#B87400", "#00805D", "#D55E00"
PURPLE, SKY, OLIVE, BROWN = "#CC79A7", "#3A95CC", "#8C7A00", "#7A5230"
BLACK, GREY, LABEL_RED = "#000000", "#6A6A6A", "#B84A00"
SHADE = "#F2F2F2"  # background of a part that is not measured, or not needed
DISTINCT = (BLUE, ORANGE, GREEN, PURPLE, BROWN, RED, BLACK, OLIVE)
LINES = (*DISTINCT, SKY, GREY)
TEXTS = (BLUE, GREEN, BLACK, GREY, LABEL_RED, BROWN, "#B00000")

Data = dict[str, Any]


def run_facts(a: Analysis) -> Data:
    """Facts of the run for every figure: line of parameters, verdict, time span in s since traffic started."""
    spec = a.run.experiment
    buffer = spec.buffer_packets
    text = (
        f"{traffic_text(spec)}, {rate_text(spec)}, RTT {si(spec.rtt_ns / 1e9, 's')}"
        f"{changes_text(spec)}, buffer {count(buffer, 'packet')} ({number(buffer / spec.bdp_packets, 3)} BDP), "
        f"{spec.queue_rule}"
    )
    return {
        "text": text,
        "valid": not a.reasons,
        "bdp": spec.bdp_packets,
        "unit": unit_of(spec),
        "buffer": buffer,
        "flows": sum(entry.is_tcp for entry in a.run.traffic) or sum(group.flows for group in spec.long),
        "open_loop": spec.traffic == OPEN_LOOP,
        "rules": spec.traffic not in (OPEN_LOOP, PROGRAM) and not spec.no_theory,  # the rules are for long flows
        **rate_facts(a),
        "windows": spec.traffic != OPEN_LOOP and bool(not spec.program or len(a.windows.mono_ns)),
        "warmup_s": (a.window.start_ns - a.window.traffic_start_ns) / 1e9,
        "end_s": (a.window.end_ns - a.window.traffic_start_ns) / 1e9,
        **({"changes_s": changes_s} if (changes_s := _changes_s(spec)) else {}),
    }


def _changes_s(spec: Experiment) -> list[float]:
    """START and STOP of all groups, in s since traffic started."""
    return sorted({ns / 1e9 for group in spec.flow_groups for ns in group.times_ns.values()})


def rate_facts(a: Analysis) -> Data:
    """`rate`, only of a rate that changes: from which second on which rate in Mb/s, and which BDP in packets held."""
    rate, spec = a.run.rate, a.run.experiment
    if rate.schedule is None:
        return {}
    times_ns, bps = rate.curve(a.window.traffic_start_ns, a.window.end_ns, UTILIZATION_WINDOW_RTTS * spec.rtt_ns)
    packet_bits = 8 * (spec.mtu_bytes if rate.schedule.opportunities else spec.wire_bytes)
    return {"rate": (seconds(a, times_ns), bps / 1e6, bps * spec.rtt_ns / 1e9 / packet_bits)}


class AxisUnit(NamedTuple):
    """A unit of the queue's depth: its name, and its size in packets."""

    name: str
    packets: float

    def text(self, packets: float) -> str:
        return f"{packets / self.packets:.3g} {self.name}" if self.packets != 1 else f"{packets:.0f}"


PACKETS = AxisUnit("packets", 1)


def unit_of(spec: Experiment) -> AxisUnit:
    """The unit in which the user gave the buffer: BDP, kB, ms or packets."""
    try:
        given = units.parse(str(spec.buffer_given), ("bdp", "packets", "bytes", "time"))
    except ValueError:  # an imported run has none
        return PACKETS
    return {
        "packets": PACKETS,
        "bdp": AxisUnit("BDP", spec.bdp_packets),
        "bytes": AxisUnit("kB", 1000 / (spec.mtu_bytes + ETHERNET_BYTES)),
        "time": AxisUnit("ms", spec.bdp_bps / (8e3 * spec.wire_bytes)),
    }[given.dimension]


def flow_classes(run: Run) -> dict[int, str]:
    """Id of each flow of traffic.json -> its class."""
    return {entry.id: name for entry, name in zip(run.traffic, group_results.flow_classes(run), strict=True)}


def seconds(a: Analysis, mono_ns: np.ndarray) -> np.ndarray:
    """CLOCK_MONOTONIC ns as s since traffic started."""
    return (mono_ns - a.window.traffic_start_ns) / 1e9


def buffer_shown(facts: Data, deepest: float) -> int | None:
    """The buffer in packets if the figure has room for it: a practically unlimited buffer would flatten the queue."""
    return None if facts["open_loop"] and facts["buffer"] > 4 * max(deepest, 1) else facts["buffer"]


# Thinning -------------------------------------------------------------------------------------------------------------


class Envelope:
    """Minimum and maximum in each of `columns` equal spans of [start, end], of values that come slab by slab, by time.

    No extreme is lost, a span has at most two points, and spans without a value are skipped. Up to 2 x `columns`
    values are kept as they are.
    """

    def __init__(self, start: float, end: float, columns: int = COLUMNS) -> None:
        self._ends, self._edges = (start, end), start + (end - start) * np.arange(columns) / columns
        self._few, self._count = np.empty((2, 0)), 0
        self._low, self._high = np.full(columns, np.inf), np.full(columns, -np.inf)

    def add(self, times: np.ndarray, values: np.ndarray) -> None:
        """More values, not before those that came."""
        inside = slice(*np.searchsorted(times, self._ends))
        times, values = times[inside], values[inside]
        if self._count <= 2 * len(self._edges):
            few = np.array([times, values], dtype=np.float64)
            times, values = self._few = np.concatenate((self._few, few), axis=1)
        self._count += inside.stop - inside.start
        if self._count <= 2 * len(self._edges) or not len(times):
            return
        first = np.searchsorted(times, self._edges)
        filled = np.diff(first, append=len(times)) > 0
        for extreme, of in ((self._low, np.minimum), (self._high, np.maximum)):
            extreme[filled] = of(extreme[filled], of.reduceat(values, first[filled]))

    def line(self) -> np.ndarray:
        """A polyline (2 x points: t, value)."""
        if self._count <= 2 * len(self._edges):
            return self._few
        filled = self._low != np.inf  # also if a value is not a number
        low, high = self._low[filled], self._high[filled]
        start, end = self._ends
        line = np.empty((2, 2 * len(low)))
        line[0] = np.repeat(self._edges[filled] + (end - start) / (2 * len(self._edges)), 2)
        line[1, 0::4], line[1, 1::4] = low[0::2], high[0::2]  # up in one column, down in the next: no diagonal strokes
        line[1, 2::4], line[1, 3::4] = high[1::2], low[1::2]
        return line


def envelope(times: np.ndarray, values: np.ndarray, start: float, end: float, columns: int = COLUMNS) -> np.ndarray:
    """The line of an Envelope of these values."""
    result = Envelope(start, end, columns)
    result.add(times, values)
    return result.line()


def thin_drops(times_s: np.ndarray, end_s: float) -> np.ndarray:
    """Times of drops in [0, `end_s`], each once, rounded down to MAX_DROPS_DRAWN steps of the interval."""
    if end_s <= 0:
        return times_s[:0]
    inside = times_s[(times_s >= 0) & (times_s <= end_s)]
    return np.unique((inside * MAX_DROPS_DRAWN / end_s).astype(np.int64)) * end_s / MAX_DROPS_DRAWN


def plain(data: Any) -> Any:
    """The data with every text escaped. matplotlib takes text between two dollar signs for a formula, and raises
    ValueError if the text is no valid formula.
    """
    if isinstance(data, str):
        return data.replace("$", r"\$")
    if isinstance(data, dict):
        return {plain(key): plain(value) for key, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(plain, data))
    return type(data)(map(plain, data)) if isinstance(data, (list, tuple)) else data


# Drawing --------------------------------------------------------------------------------------------------------------


def new_figure(facts: Data, height_in: float, rows: int = 1, **grid: Any) -> tuple[Figure, list[Axes]]:
    """A figure with `rows` axes above each other, and the line of parameters at the top."""
    figure = canvas.new(facts, height_in)
    axes = figure.subplots(rows, squeeze=False, **grid)[:, 0]
    for ax in axes:
        tidy(ax)
    label(figure, facts)
    return figure, list(axes)


def label(figure: Figure, facts: Data) -> None:
    """Writes the run's parameters above the figure, with a red warning if the run is not valid."""
    text, look = facts["text"], {"color": GREY}
    if not facts["valid"]:
        text, look = f"NOT VALID (see report)   {text}", {"color": "#B00000", "weight": "bold"}
    figure.suptitle(canvas.title(figure, text, not facts["valid"]), fontsize=9, x=0.01, ha="left", **look)


def tidy(ax: Axes) -> None:
    """Removes the box and adds a faint horizontal grid."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#EBEBEB", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.margins(x=0)


TEXT_HEIGHT_POINTS = 10  # of a line of 8 points


def level(
    ax: Axes, y: float, text: str, color: str = BLACK, style: str = "--", size: float = 8, va: str = "center"
) -> None:
    """A horizontal line with its meaning written at the right end."""
    ax.axhline(y, color=color, linewidth=0.9, linestyle=style)
    canvas.note(ax, y, text, color, size, va)


def two_levels(ax: Axes, low: tuple[float, str, str], high: tuple[float, str, str]) -> None:
    """Two lines by `level` (y, text, colour) on an axis with limits; texts that would overlap move apart."""
    bottom, top = ax.get_ylim()
    apart_points = (high[0] - low[0]) / (top - bottom) * ax.get_window_extent().height * 72 / ax.figure.dpi
    close = apart_points < TEXT_HEIGHT_POINTS
    level(ax, *low, va="top" if close else "center")
    level(ax, *high, va="bottom" if close else "center")


def log_axis(axis: XAxis | YAxis, subs: Sequence[float] = (1.0, 2.0, 5.0)) -> None:
    """Ticks at 1, 2 and 5 times powers of ten, written in full, for a logarithmic axis of few decades. `subs` are other
    multiples.
    """
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def in_unit(axis: XAxis | YAxis, facts: Data) -> None:
    """Ticks in the user's unit on an axis in packets whose limits are set."""
    from matplotlib.ticker import MaxNLocator

    size = facts["unit"].packets
    low, high = (end / size for end in axis.get_view_interval())
    ticks = [tick for tick in MaxNLocator(6).tick_values(low, high) if low <= tick <= high]
    axis.set_ticks([tick * size for tick in ticks], [f"{tick:.6g}" for tick in ticks])


def beside(ax: Axes, x: float, height: float, text: str, color: str = BLACK) -> None:
    """Text beside x at a height (share of the axes), on the side where there is room."""
    low, high = ax.get_xlim()
    is_left = x < (low + high) / 2
    ax.annotate(
        text, (x, height), xycoords=("data", "axes fraction"), xytext=(5 if is_left else -5, 0),
        textcoords="offset points", ha="left" if is_left else "right", va="center", fontsize=8, color=color,
    )  # fmt: skip


def shade_warmup(ax: Axes, facts: Data) -> None:
    """Shades the warm-up, which is not measured, and marks the changes of the traffic."""
    if facts["warmup_s"] > 0:
        ax.axvspan(0, facts["warmup_s"], color=SHADE, linewidth=0)
    mark_changes(ax, facts)


def mark_changes(ax: Axes, facts: Data) -> None:
    """A dotted line where a group begins or ends."""
    for change_s in facts.get("changes_s", ()):
        ax.axvline(change_s, color=GREY, linewidth=0.8, linestyle=":")


def say(ax: Axes, text: str) -> None:
    """Writes the reason for missing data into empty axes."""
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", color=GREY)


def flow_colors(ccs: list[str]) -> list[Any]:
    """A colour per flow: distinct for few flows; for many flows by algorithm, or along one scale if all flows have the
    same algorithm.
    """
    import matplotlib

    kinds = list(dict.fromkeys(ccs))
    if len(ccs) <= len(DISTINCT):
        return list(DISTINCT[: len(ccs)])
    if len(kinds) > 1:
        return [DISTINCT[kinds.index(cc) % len(DISTINCT)] for cc in ccs]
    scale = matplotlib.colormaps["viridis"]
    return [scale(0.9 * i / (len(ccs) - 1)) for i in range(len(ccs))]


def flow_legend(ax: Axes, ccs: list[str], ids: list[int], colors: list[Any]) -> None:
    """Legend of the colours of flow_colors."""
    from matplotlib.lines import Line2D

    kinds = list(dict.fromkeys(ccs))
    if len(ccs) <= len(DISTINCT):
        entries = [(f"flow {i} {cc}", color) for i, cc, color in zip(ids, ccs, colors, strict=True)]
    elif len(kinds) > 1:
        entries = [(f"{ccs.count(kind)} {kind}", colors[ccs.index(kind)]) for kind in kinds]
    else:
        entries = [(f"flow {ids[0]}", colors[0]), (f"to flow {ids[-1]}", colors[-1])]
    if len(entries) > 1:
        canvas.legend(ax, "beside", handles=[Line2D([], [], color=color, label=text) for text, color in entries])
