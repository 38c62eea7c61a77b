# SPDX-License-Identifier: MIT
"""The queue of the run above the queue of the what-if, on one time axis."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.figures import common
from analysis.figures.drawing import PNG_DPI, warm_up
from analysis.read.columns import parts
from analysis.read.postcards import dropped

if TYPE_CHECKING:
    from analysis.read.columns import Columns

MOST_OVER_DEEPEST = 20  # a buffer beyond this multiple of the greatest depth is not drawn: it would flatten the curve


def draw(directory: Path, facts: dict[str, Any], panels: list[tuple[str, int | None, Columns]], start_ns: int) -> None:
    """Writes queue.png and queue.svg. `panels`: (title, buffer in packets or None, postcards) of each queue."""
    from analysis.whatif import CAVEAT

    warm_up()
    figure, axes = common.new_figure(common.plain(facts), 5.4, len(panels), sharex=True, sharey=True)
    end = facts["end_s"]
    drawn = [_drawn(queue, start_ns, end) for _, _, queue in panels]
    deepest = max(depth for _, _, depth in drawn)
    for ax, (text, buffer, _), (line, lost, _) in zip(axes, panels, drawn, strict=True):
        common.shade_warmup(ax, facts)
        ax.plot(*line, color=common.BLUE, linewidth=0.6)
        top = buffer if buffer and buffer <= MOST_OVER_DEEPEST * max(deepest, 1) else deepest
        if len(lost):  # the layout counts an empty line that is not clipped, too
            at = np.full(len(lost), top)
            ax.plot(lost, at, "x", color=common.RED, markersize=3, markeredgewidth=0.6, clip_on=False)
        if buffer == top:
            common.level(ax, top, f"buffer {facts['unit'].text(top)}")
        ax.set_title(common.plain(text), loc="left", fontsize=9)
        ax.set_ylabel(f"queue ({facts['unit'].name})")
    axes[0].set_ylim(bottom=0)
    for ax in axes:  # the limits are shared, so they are known only now
        common.in_unit(ax.yaxis, facts)
    axes[-1].set_xlim(0, max(end, 1e-9))
    axes[-1].set_xlabel("time since traffic started (s); grey: warm-up, not measured; crosses: drops")
    figure.supxlabel(CAVEAT, fontsize=8, color="#B00000", x=0.01, ha="left", wrap=True)
    figure.savefig(directory / "queue.png", dpi=PNG_DPI, metadata={"Software": "bufferscope"})
    figure.savefig(directory / "queue.svg", dpi=PNG_DPI, metadata={"Date": None, "Creator": "bufferscope"})


def _drawn(queue: Columns, start_ns: int, end_s: float) -> tuple[np.ndarray, np.ndarray, int]:
    """The line of a queue's depth, the thinned times of its drops, and its greatest depth."""
    depth, drops, deepest = common.Envelope(0, end_s), [np.empty(0)], 0
    for cards in parts(queue, "enqueue_mono_ns", "depth_packets", "flags"):
        times = (cards["enqueue_mono_ns"] - start_ns) / 1e9
        depth.add(times, cards["depth_packets"])
        drops.append(common.thin_drops(times[dropped(cards)], end_s))
        deepest = max(deepest, int(cards["depth_packets"].max()))
    return depth.line(), np.unique(np.concatenate(drops)), deepest
