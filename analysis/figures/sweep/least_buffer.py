# SPDX-License-Identifier: MIT
"""The intervals of a search for the least buffer, against the number of flows or another parameter of the sweep."""

from __future__ import annotations

import math

from analysis.figures import algorithms
from analysis.figures.common import DISTINCT, GREY, Data, log_axis
from analysis.figures.sweep import common

CAPTION = (
    "The least buffer that meets the search's criterion, in BDP. A bar spans the interval in which the least buffer "
    "lies: more than the lower end, at most the upper end. An arrow replaces a bound that is not known. Grey, if the "
    "axis is the number of flows n: BDP/√n."
)
ALONG = {"flows": "flows", "rtt_ns": "base RTT (ns)", "rate_bps": "rate of the link (b/s)", "mtu_bytes": "MTU (bytes)"}
OPEN = 1.35  # from the known bound to the arrow's tip, as a factor


def prepare(sweep: common.Stored) -> Data | None:
    """Bounds in BDP by algorithm (and by mode if there are several), along the column of ALONG with most values. None
    if the search has no bound.
    """
    bounded = [row for row in sweep.searched if row["low_packets"] or row["high_packets"]]
    if not bounded:
        return None
    x = max(ALONG, key=lambda column: len({row[column] for row in bounded}))
    modes = len({row["mode"] for row in bounded}) > 1
    lines: dict[str, list[tuple[float, float | None, float | None]]] = {}
    colors: dict[str, str] = {}
    for row in sorted(bounded, key=lambda row: (row["cc"] or "", row[x])):
        line = algorithms.name(row["cc"] or "") + (f", {row['mode']}" if modes else "")
        low, high = (row[name] and row[name] / row["bdp_packets"] for name in ("low_packets", "high_packets"))
        lines.setdefault(line, []).append((row[x], low, high))
        colors[line] = algorithms.COLORS.get(row["cc"], DISTINCT[len(colors) % len(DISTINCT)]) if not modes else (
            DISTINCT[(len(lines) - 1) % len(DISTINCT)])  # fmt: skip
    return {
        "facts": {"text": f"{sweep.name}: {bounded[0]['criterion']} at least {bounded[0]['least']:g}"},
        "x": x, "xs": sorted({row[x] for row in bounded}), "panels": {"": {}}, "panels_left_out": 0,
        "lines": lines, "colors": colors,
    }  # fmt: skip


def draw(data: Data) -> common.Figure:
    """One panel. Its vertical axis is logarithmic, because rules are powers of n."""
    figure, axes = common.new_figure(data, 1, 4.2)
    ax = axes[0, 0]
    log_axis(ax.yaxis)
    for number, (line, points) in enumerate(data["lines"].items()):
        color, marker = data["colors"][line], common.MARKERS[number % len(common.MARKERS)]
        middles = []
        for x, low, high in points:
            at = common.shifted(data, x, number, len(data["lines"]))
            below, above = low or high / OPEN, high or low * OPEN
            middle = math.sqrt(below * above)
            ax.plot([at, at], [below, above], color=color, linewidth=3, alpha=0.6, solid_capstyle="butt")
            if low is None or high is None:
                ax.plot(at, below if low is None else above, "v" if low is None else "^", color=color, markersize=6)
            else:
                ax.plot(at, middle, marker, color=color, markersize=4.5, markerfacecolor="white")
            middles.append((at, middle))
        ax.plot(*zip(*middles, strict=True), color=color, linewidth=0.8)
        ax.plot([], [], marker=marker, color=color, markersize=4.5, markerfacecolor="white", label=line)
    if data["x"] == "flows":
        style = "--" if len(data["xs"]) > 1 else "_"  # a line needs two points
        ax.plot(data["xs"], [1 / math.sqrt(n) for n in data["xs"]], style, color=GREY, linewidth=0.9, label="BDP/√n")
    common.label_x(ax, data)
    ax.set_xlabel(ALONG[data["x"]])
    ax.set_ylabel("least buffer (BDP)")
    common.legend(figure, axes, data)
    return figure


FIGURE = common.SweepFigure(CAPTION, prepare, draw)
