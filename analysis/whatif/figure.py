# SPDX-License-Identifier: MIT
"""The queue as it was and as it would have been with the same arrivals, one above the other on one time axis."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.figures import common
from analysis.figures.drawing import PNG_DPI, warm_up
from analysis.metrics import dropped

if TYPE_CHECKING:
    from analysis.raw import Columns

MAX_DROPS_DRAWN = 4000
MOST_OVER_DEEPEST = 20  # times: a buffer further above the queue is not drawn, or the queue would be a flat line


def draw(directory: Path, facts: dict[str, Any], panels: list[tuple[str, int | None, Columns]], start_ns: int) -> None:
    """Writes queue.png and queue.svg. `panels`: (what it is, its buffer in packets, its queue)."""
    from analysis.whatif import CAVEAT

    warm_up()
    figure, axes = common.new_figure(common.plain(facts), 5.4, len(panels), sharex=True, sharey=True)
    end = facts["end_s"]
    deepest = max((int(queue["depth_packets"].max(initial=0)) for _, _, queue in panels), default=0)
    for ax, (text, buffer, queue) in zip(axes, panels, strict=True):
        common.shade_warmup(ax, facts)
        times = (queue["enqueue_mono_ns"] - start_ns) / 1e9
        ax.plot(*common.envelope(times, queue["depth_packets"], 0, end), color=common.BLUE, linewidth=0.6)
        lost = times[dropped(queue)]
        lost = np.unique((lost * MAX_DROPS_DRAWN / end).astype(np.int64)) * end / MAX_DROPS_DRAWN
        top = buffer or 0
        ax.plot(lost, np.full(len(lost), top), "x", color=common.RED, markersize=3, markeredgewidth=0.6, clip_on=False)
        if buffer and buffer <= MOST_OVER_DEEPEST * max(deepest, 1):
            common.level(ax, buffer, "buffer")
        ax.set_title(common.plain(text), loc="left", fontsize=9)
        ax.set_ylabel("queue (packets)")
        ax.set_ylim(bottom=0)
    axes[-1].set_xlim(0, max(end, 1e-9))
    axes[-1].set_xlabel("time since traffic started (s); grey: warm-up, not measured; crosses: drops")
    figure.supxlabel(CAVEAT, fontsize=8, color="#B00000", x=0.01, ha="left", wrap=True)
    figure.savefig(directory / "queue.png", dpi=PNG_DPI, metadata={"Software": "bufferscope"})
    figure.savefig(directory / "queue.svg", dpi=PNG_DPI, metadata={"Date": None, "Creator": "bufferscope"})
