# SPDX-License-Identifier: MIT
"""Draws the distributions of queue depth in real and in virtual time: one panel for each spec, with both clocks. Every
run is a thin line, so that the noise between runs of the same clock is visible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from analysis.figures import common, drawing
from analysis.figures.common import BLUE, RED

COLORS = {"real": RED, "virtual": BLUE}
COLUMNS = 2


def draw(panels: Sequence[tuple[str, Mapping[str, Sequence[np.ndarray]]]], path: Path) -> None:
    """`panels`: titles, and for each clock its runs' distributions: shares of packets at depth 0, 1, 2, ..."""
    drawing.warm_up()
    from matplotlib.figure import Figure

    rows = -(-len(panels) // COLUMNS)
    figure = Figure(figsize=(10, 2.9 * rows), layout="constrained")
    axes = figure.subplots(rows, COLUMNS, squeeze=False).flat
    for ax, (title, runs) in zip(axes, panels, strict=False):
        common.tidy(ax)
        ax.set_title(title, fontsize=9, loc="left")
        for clock, color in COLORS.items():
            for number, depth in enumerate(runs.get(clock, ())):
                label = f"{clock} time, {len(runs[clock])} runs" if number == 0 else None
                ax.step(np.arange(len(depth)), np.cumsum(depth), where="post", color=color, linewidth=0.9, alpha=0.7,
                        label=label)  # fmt: skip
            if not runs.get(clock):
                ax.plot([], [], color=color, label=f"{clock} time: no valid run")
        ax.set_ylim(0, 1.02)
        ax.set_xlabel("queue depth found on arrival (packets)")
        ax.set_ylabel("share of packets at this depth or less")
        ax.legend(loc="upper left", frameon=False, fontsize=8)
    for ax in list(axes)[len(panels) :]:
        ax.set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None, "Creator": "bufferscope"})
