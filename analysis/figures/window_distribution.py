# SPDX-License-Identifier: MIT
"""Packets in flight of each flow at every ACK of the measurement window, and the distribution over all flows.

After the first seed paper's Figure 7: are windows uniform, are flows fair? The dashed line is the fair share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analysis.figures import common
from analysis.figures.common import BLACK, BLUE, GREY, Data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from analysis.analyse import Analysis

PERCENTILES = (1, 25, 50, 75, 99)
MAX_BINS = 80
MAX_BARS = 1000  # of flows; more could not be told apart


def prepare(a: Analysis) -> Data:
    """Percentiles of each flow, and a histogram of all samples."""
    from analysis.metrics import rows_at_acks

    rows = rows_at_acks(a.run, a.trace, a.window)
    pooled = a.trace.in_flight[rows.rows]
    flows = [entry for entry in a.run.traffic if len(rows[entry["flow"]])]
    drawn = [flows[i] for i in common.pick_flows(len(flows), MAX_BARS)]
    samples = [a.trace.in_flight[rows[entry["flow"]]] for entry in drawn]
    deepest = int(pooled.max(initial=0))
    width = deepest // MAX_BINS + 1
    return {
        "facts": common.run_facts(a),
        "boxes": np.array([np.percentile(values, PERCENTILES) for values in samples]).reshape(-1, len(PERCENTILES)),
        "ids": [entry["id"] for entry in drawn],
        "ccs": [entry["cc"] for entry in drawn],
        "traced": len(flows),
        "counts": np.bincount(np.maximum(pooled, 0) // width, minlength=1),
        "width": width,
    }


def draw(data: Data) -> Figure:
    """Left: a bar per flow. Right: all windows together, on the same scale."""
    from matplotlib.figure import Figure

    facts, boxes = data["facts"], data["boxes"]
    figure = Figure(figsize=(10, 4.0), layout="constrained")
    common.label(figure, facts)
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3.4, 1))
    for ax in (left, right):
        common.tidy(ax)
    left.set_ylabel("packets in flight")
    some = f" (one in {data['traced'] / len(boxes):.3g} of {data['traced']})" if len(boxes) < data["traced"] else ""
    left.set_xlabel(f"flow{some}   (thin: 1st to 99th percentile, thick: middle half, dot: median)")
    right.set_xlabel("share of ACKs (%)")
    if not len(boxes):
        common.say(left, "no trace of the windows")
        return figure
    x, (low, q1, median, q3, high) = np.arange(len(boxes)), boxes.T
    colors = common.flow_colors(data["ccs"])
    thick = min(max(220 / len(boxes), 1.2), 9)
    left.vlines(x, low, high, colors=colors, linewidth=max(thick / 6, 0.6))
    left.vlines(x, q1, q3, colors=colors, linewidth=thick)
    left.scatter(x, median, s=min(thick**2, 26), color="white", edgecolors=BLACK, linewidths=0.6, zorder=3)
    left.set_xlim(-0.7, len(boxes) - 0.3)
    if len(boxes) <= 40:
        left.set_xticks(x, [str(i) for i in data["ids"]])
    kinds = list(dict.fromkeys(data["ccs"]))
    if len(kinds) > 1:
        for kind in kinds:
            of_kind = [i for i, cc in enumerate(data["ccs"]) if cc == kind]
            left.annotate(
                kind,
                (np.mean(of_kind), 1),
                xycoords=("data", "axes fraction"),
                ha="center",
                va="bottom",
                fontsize=8,
                color=GREY,
            )
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
    left.axhline(fair, color=BLACK, linewidth=0.9, linestyle="--")
    common.level(right, fair, f"(BDP + B)/n\n= {fair:.4g}")
    return figure
