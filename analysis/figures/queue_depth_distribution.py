# SPDX-License-Identifier: MIT
"""Distribution of the queue depth at arrivals in the measurement window.

After Spang et al.'s Figures 4 and 6: by the square root of n rule the queue never gets as low as the shaded part of the
buffer, so this part is not needed.

An imported run without postcards has a histogram instead: depths at departure, over the whole run.
"""

from __future__ import annotations

import numpy as np

from analysis.arithmetic.counted import Counted
from analysis.figures import common
from analysis.figures.common import BLACK, BLUE, GREY, LABEL_RED, ORANGE, Data

MAX_BINS = 200


def prepare(a: common.Analysis) -> Data:
    """Packets in each bin of depths, percentiles and theory. Bin b holds depths b * width to (b + 1) * width - 1."""
    from analysis.measure import open_loop
    from analysis.measure.metrics import cards_in

    if a.run.depths is None:
        depth = Counted.of(cards["depth_packets"] for cards in cards_in(a.queue, a.window, "depth_packets"))
    else:  # an imported histogram of the whole run
        depth = Counted()
        depth.merge(*a.run.depths)
    values, occurred = depth.values, depth.counts
    width = int(values.max(initial=0)) // MAX_BINS + 1
    counts = np.bincount(values // width, weights=occurred, minlength=1)
    expected = open_loop.model(a.run.experiment)
    packets = int(occurred.sum())
    percentiles = list(depth.percentiles(p01=1, p50=50, p99=99).values()) if packets else None
    return {
        "facts": common.run_facts(a), "counts": counts, "width": width, "packets": packets, "percentiles": percentiles,
        "empty": int(occurred[values == 0].sum()),
        "theory": None if expected is None else (expected.name, _per_bin(expected.depth, width, len(counts))),
    }  # fmt: skip


def _per_bin(depth: np.ndarray, width: int, bins: int) -> np.ndarray:
    """Probability of each bin, without depths beyond the last bin."""
    padded = np.zeros(bins * width)
    padded[: len(depth)] = depth[: bins * width]
    return padded.reshape(bins, width).sum(axis=1)


def draw(data: Data) -> common.Figure:
    """The share of packets in each bin of depths."""
    facts, counts, width = data["facts"], data["counts"], data["width"]
    figure, (ax,) = common.new_figure(facts, 3.6)
    deepest = len(counts) * width
    buffer = common.buffer_shown(facts, deepest)
    ax.set_xlim(-0.5, max(buffer or 0, deepest) * 1.04 + 1)
    ax.set_xlabel(f"queue depth that a packet found on arrival ({facts['unit'].name})")
    ax.set_ylabel("share of packets (%)")
    if not data["packets"]:
        common.say(ax, "no packets in the measurement window")
        return figure
    share = counts * 100 / data["packets"]
    ax.stairs(share, np.arange(len(counts) + 1) * width - 0.5, fill=True, color=BLUE, alpha=0.85)
    ax.set_ylim(0, share.max() * 1.18)
    if data["theory"]:
        name, expected = data["theory"]
        middle = (np.arange(len(counts)) + 0.5) * width - 0.5
        ax.plot(middle, expected * 100, "o", color=ORANGE, markersize=3, label=f"{name} in theory")
        ax.set_ylim(0, max(share.max(), expected.max() * 100) * 1.18)
        ax.legend(loc="center right", frameon=False, fontsize=8)
    needed = facts["bdp"] / max(facts["flows"], 1) ** 0.5
    unused = facts["buffer"] - needed
    if unused > 0 and facts["rules"]:
        ax.axvspan(-0.5, unused, color=common.SHADE, linewidth=0, zorder=0)
        ax.text(unused / 2, 0.66, "not needed by BDP/√n", transform=ax.get_xaxis_transform(), ha="center", va="top",
                fontsize=8, color=GREY)  # fmt: skip
    unit = facts["unit"]
    lines = [(buffer, f"buffer {unit.text(buffer)}", BLACK, 0.95)] if buffer else []
    lines += [
        (value, f"{name} {unit.text(value)}", LABEL_RED, height)  # heights differ, so labels cannot overlap
        for name, value, height in zip(("p1", "median"), data["percentiles"], (0.86, 0.77), strict=False)
    ]
    for x, text, color, height in lines:
        ax.axvline(x, color=color, linewidth=0.9, linestyle="--")
        common.beside(ax, x, height, text, color)
    common.in_unit(ax.xaxis, facts)
    empty = data["empty"] / data["packets"]
    ax.set_title(f"{empty:.2%} of packets found the queue empty", fontsize=9, loc="left")
    return figure
