# SPDX-License-Identifier: MIT
"""Window above, queue beneath, a curve for each sender."""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.figures.common import GREY, Data, level
from analysis.papers import look
from analysis.papers.appenzeller2004.profiles import COLORS, NAMES

HEIGHT_IN = 3.4


def draw(
    data: Data, width_in: float, legend: dict[str, Any], **grid: Any
) -> tuple[look.Figure, look.Axes, look.Axes, Data | None]:
    """The figure, its two panels, and the first measured sender (None if there is none). A sender's `shift_s`
    moves its curves in time.
    """
    figure, axes = look.new_figure(width_in, HEIGHT_IN, 2, sharex=True, **grid)
    upper, lower = axes[:, 0]
    present, missing = look.split(data["senders"])
    if not present:
        look.absent(upper, lower, text="\n".join(missing))
        return figure, upper, lower, None
    for profile, sender in present.items():
        for ax, what in ((upper, "window"), (lower, "queue")):
            curve = getattr(sender["curves"], what)
            times_s = np.add(curve.time_s, sender.get("shift_s", 0.0))
            ax.plot(times_s, curve.packets, color=COLORS[profile], label=NAMES[profile])
    first = next(iter(present.values()))
    buffer = data["buffer"]
    level(upper, first["bdp"], "BDP", GREY, ":", look.LABEL_POINTS)
    level(lower, buffer, f"B = {buffer}", GREY, ":", look.LABEL_POINTS)
    upper.set_ylim(0, (first["bdp"] + buffer) * 1.15)
    lower.set_ylim(0, buffer * 1.25)
    upper.set_ylabel("window\n(packets in flight)")
    lower.set_ylabel("queue depth\n(packets)")
    upper.legend(frameon=False, **legend)
    figure.align_ylabels()
    return figure, upper, lower, first
