# SPDX-License-Identifier: MIT
"""The rate of a captured link over time, at scales from 1 ms to 1 s, and the connections that were open."""

from __future__ import annotations

import numpy as np

from analysis.figures import canvas, common
from analysis.figures.common import BLUE, GREEN, GREY, LABEL_RED, ORANGE, Data

COLORS = ("#BFD9EA", BLUE, ORANGE, LABEL_RED)


def prepare(a: common.Analysis) -> Data:
    """Rates in Mb/s (a polyline for each scale), and connections over time in s since the capture began."""
    from analysis.measure.captured_link import SCALES_S, at_a_time, at_scale, load

    step_ns, sizes, _ = load(a.run.directory)
    rates = []
    for scale_s in SCALES_S:
        window = at_scale(sizes, step_ns, scale_s)
        if window is not None:
            times = (np.arange(len(window)) + 0.5) * scale_s
            line = common.envelope(times, 8e-6 * window / scale_s, 0, len(window) * scale_s)
            rates.append((f"{1000 * scale_s:g} ms" if scale_s < 1 else f"{scale_s:g} s", line))
    times, open_, effective = at_a_time(a.run.directory)
    every = max(len(times) // common.COLUMNS, 1)
    return {
        "facts": common.run_facts(a), "rates": rates, "mbps": a.run.experiment.rate_bps / 1e6,
        "flows": (times[::every], open_[::every], effective[::every]),
    }  # fmt: skip


def draw(data: Data) -> common.Figure:
    figure, (above, below) = common.new_figure(data["facts"], 5.0, 2, sharex=True, height_ratios=(3, 2))
    for (label, line), color in zip(data["rates"], COLORS, strict=False):
        above.plot(*line, color=color, linewidth=0.6 if color == COLORS[0] else 1.0, label=label)
    above.set_ylim(bottom=0)
    above.set_ylabel("forward (Mb/s)")
    common.level(above, data["mbps"], f"RATE {data['mbps']:g}")
    canvas.legend(above, columns=4)
    times, open_, effective = data["flows"]
    below.plot(times, open_, color=GREY, linewidth=0.9, label="open connections with data")
    below.plot(times, effective, color=GREEN, linewidth=0.9, label="effective number")
    below.set_ylim(bottom=0)
    below.set_ylabel("connections")
    below.set_xlabel("time since the capture began (s)")
    canvas.legend(below, columns=2)
    return figure
