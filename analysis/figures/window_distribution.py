# SPDX-License-Identifier: MIT
"""Packets in flight at every ACK of the measurement window: for each flow, and one distribution for the ACKs of all
flows together.

After Spang et al.'s Figure 7: are windows uniform, are flows fair? The dashed line is a flow's fair share with a full
buffer, (BDP + buffer) / flows.
"""

from __future__ import annotations

import numpy as np

from analysis.arithmetic.counted import Counted
from analysis.figures import bands, canvas, common
from analysis.figures.common import BLACK, BLUE, GREY, Data
from analysis.measure.flow_distribution import MANY_FLOWS

PERCENTILES = (1, 25, 50, 75, 99)
MAX_BINS = 80
MOST_PHONE_TICKS = 14


def prepare(a: common.Analysis) -> Data:
    """Percentiles of each flow, and a histogram of all samples."""
    flow, packets, counts = a.windows.counts_at_acks("of_flow_in_flight", a.window)
    bounds = [np.searchsorted(flow, (entry.number, entry.number + 1)) for entry in a.run.traffic]
    flows = [(entry, slice(*rows)) for entry, rows in zip(a.run.traffic, bounds, strict=True) if rows[0] < rows[1]]
    classes = common.flow_classes(a.run)
    boxes = []
    for _, rows in flows:
        of_flow = Counted()
        of_flow.merge(packets[rows], counts[rows])
        boxes.append([of_flow.percentile(percent) for percent in PERCENTILES])
    width = int(packets.max(initial=0)) // MAX_BINS + 1
    return {
        "facts": common.run_facts(a),
        "boxes": np.array(boxes, dtype=np.float64).reshape(-1, len(PERCENTILES)),
        "ids": [entry.id for entry, _ in flows],
        "ccs": [classes[entry.id] for entry, _ in flows],
        "counts": np.bincount(np.maximum(packets, 0) // width, counts, minlength=1).astype(np.int64),
        "width": width,
    }


def draw(data: Data) -> common.Figure:
    """Left: a bar per flow, or bands of many flows. Right: all windows together, on the same scale."""
    facts, boxes = data["facts"], data["boxes"]
    figure, left, right = canvas.pair(facts, 4.0, (3.4, 1), sharey=True)
    common.label(figure, facts)
    for ax in (left, right):
        common.tidy(ax)
    left.set_ylabel("packets in flight")
    left.set_xlabel("flow   (thin: 1st to 99th percentile, thick: middle half, dot: median)")
    right.set_xlabel("share of ACKs (%)")
    if not len(boxes):
        common.say(left, "no trace of the windows")
        return figure
    if len(boxes) > MANY_FLOWS:
        _draw_ranks(left, data)
    else:
        _draw_bars(left, data)
    fair = (facts["bdp"] + facts["buffer"]) / max(facts["flows"], 1)
    left.set_ylim(0, max(boxes.max(), fair) * 1.1)
    share = data["counts"] * 100 / data["counts"].sum()
    right.stairs(
        share,
        np.arange(len(share) + 1) * data["width"] - 0.5,
        fill=True,
        orientation="horizontal",
        color=BLUE,
        alpha=0.85,
    )
    right.set_xlim(0, share.max() * 1.05)
    if "rate" not in facts:  # with a rate that changes there is no one BDP
        left.axhline(fair, color=BLACK, linewidth=0.9, linestyle="--")
        common.level(right, fair, f"(BDP + B)/n\n= {fair:.4g}")
    return figure


def _draw_bars(ax: common.Axes, data: Data) -> None:
    """A bar per flow."""
    boxes = data["boxes"]
    x, (low, q1, median, q3, high) = np.arange(len(boxes)), boxes.T
    colors = common.flow_colors(data["ccs"])
    thick = min(max(220 / len(boxes), 1.2), 9)
    ax.vlines(x, low, high, colors=colors, linewidth=max(thick / 6, 0.6))
    ax.vlines(x, q1, q3, colors=colors, linewidth=thick)
    ax.scatter(x, median, s=min(thick**2, 26), color="white", edgecolors=BLACK, linewidths=0.6, zorder=3)
    ax.set_xlim(-0.7, len(boxes) - 0.3)
    if len(boxes) <= 40:
        every = -(-len(boxes) // MOST_PHONE_TICKS) if canvas.is_phone(ax.figure) else 1
        ax.set_xticks(x[::every], [str(i) for i in data["ids"][::every]])
    kinds = list(dict.fromkeys(data["ccs"]))
    for kind in kinds if len(kinds) > 1 else ():
        _name(ax, kind, float(np.mean([i for i, cc in enumerate(data["ccs"]) if cc == kind])))


def _draw_ranks(ax: common.Axes, data: Data) -> None:
    """Many flows side by side as bands, each algorithm's flows in the order of their median windows."""
    boxes, ccs = data["boxes"], np.array(data["ccs"])
    kinds, first = list(dict.fromkeys(data["ccs"])), 0
    for number, kind in enumerate(kinds):
        low, q1, median, q3, high = boxes[ccs == kind][np.lexsort(boxes[ccs == kind].T[[0, 1, 3, 4, 2]])].T
        x, color = first + np.arange(len(median) + 1), bands.color_of(number)
        for lower, upper, opacity in ((low, high, 0.2), (q1, q3, 0.45)):
            from_y, to_y = np.append(lower, lower[-1:]), np.append(upper, upper[-1:])
            ax.fill_between(x, from_y, to_y, color=color, alpha=opacity, linewidth=0, step="post", rasterized=True)
        ax.step(x, np.append(median, median[-1:]), where="post", color=color, linewidth=1.2)
        if len(kinds) > 1:
            _name(ax, kind, first + len(median) / 2)
        first += len(median)
    ax.set_xlim(0, first)
    ax.set_xlabel("flows by median window   (light: 1st to 99th percentile, dark: middle half, line: median)")


def _name(ax: common.Axes, kind: str, x: float) -> None:
    """Writes an algorithm's name above its flows."""
    ax.annotate(kind, (x, 1), xycoords=("data", "axes fraction"), ha="center", va="bottom", fontsize=8, color=GREY)
