# SPDX-License-Identifier: MIT
"""Utilization over time: sliding windows of 10 base RTTs and, behind them, of one base RTT.

Ticks at the bottom are loss events. If a single flow's algorithm has a prediction (Spang et al., 3.5), a line shows
the predicted minimum after a loss.
"""

from __future__ import annotations

import numpy as np

from analysis.figures import canvas, common
from analysis.figures.common import BLUE, GREEN, GREY, RED, SKY, Data
from analysis.read.columns import slabs

STEPS_PER_RTT = 4
WRONG_RATE_PERCENT = 105  # exceeded only if the rate is wrong, as in an imported run that does not state it
MIN_ROOM_PERCENT = 8  # least span of the axis below 100 %: a smaller span would magnify noise


def prepare(a: common.Analysis) -> Data:
    """Both curves, thinned; mean, percentile and prediction; the times of loss events."""
    from analysis.measure.metrics import UTILIZATION_WINDOW_RTTS, sliding_starts
    from analysis.theory import single_flow

    rtt_ns, spec = a.run.experiment.rtt_ns, a.run.experiment
    curves = {}
    for name, rtts, step in (("long", UTILIZATION_WINDOW_RTTS, rtt_ns), ("short", 1, rtt_ns // STEPS_PER_RTT)):
        width = rtts * rtt_ns
        starts = sliding_starts(a.window, width, step) if a.window.length_ns >= width else np.empty(0, dtype=np.int64)
        facts = common.run_facts(a)
        curve = common.Envelope(facts["warmup_s"], facts["end_s"] + 1e-9)
        for part in slabs(len(starts)):
            curve.add(common.seconds(a, starts[part] + width // 2), a.link.utilization(starts[part], width) * 100)
        curves[name] = curve.line()
    predicted = None
    if len(a.run.traffic) == 1 and not a.run.traffic[0].program and not spec.no_theory:
        bdp = single_flow.bdp_packets(spec.rate_bps, rtt_ns, spec.wire_bytes)
        predicted = single_flow.min_utilization(a.run.traffic[0].cc or "", spec.buffer_packets, bdp)
    return {
        "facts": common.run_facts(a),
        **curves,
        "mean": a.utilization["mean"],
        "p01": a.utilization["p01"],
        "window_s": a.utilization["window_s"],
        "predicted": predicted,
        "losses": common.seconds(a, np.array([event.start_ns for event in a.events], dtype=np.int64)),
    }


def draw(data: Data) -> common.Figure:
    """Utilization in percent, on an axis that starts just below the least value."""
    facts = data["facts"]
    figure, (ax,) = common.new_figure(facts, 3.4)
    ax.set_xlabel("time since traffic started (s)")
    ax.set_ylabel("utilization (%)")
    ax.set_xlim(facts["warmup_s"], max(facts["end_s"], facts["warmup_s"] + 1e-9))
    common.mark_changes(ax, facts)
    if not data["long"].size:
        common.say(ax, "the measurement window is shorter than 10 RTTs")
        return figure
    least = np.nanmin(data["short"][1])  # an outage has no utilization
    if data["predicted"] is not None:
        least = min(least, data["predicted"] * 100)
    most = float(np.nanmax(data["long"][1]))
    top = most if most > WRONG_RATE_PERCENT else 100.0
    room = max(top - least, MIN_ROOM_PERCENT)
    bottom = max(top - 1.14 * room, 0)
    ax.set_ylim(bottom, top + 0.08 * room)
    ax.ticklabel_format(axis="y", useOffset=False)
    ax.plot(
        *data["short"], color=SKY, linewidth=0.5, label="windows of one RTT", rasterized=data["short"].shape[1] > 3000
    )
    ax.plot(*data["long"], color=BLUE, linewidth=1.1, label="windows of 10 RTTs")
    if len(data["losses"]):
        height = np.full(len(data["losses"]), bottom + 0.035 * room)
        ax.plot(data["losses"], height, "|", color=RED, markersize=6, markeredgewidth=0.8, label="loss events")
    canvas.legend(ax, columns=3)
    levels = [
        (data["mean"], "mean", GREY),
        (data["p01"], "p1 of 10 RTTs", BLUE),
        (data["predicted"], "predicted\nafter a loss", GREEN),
    ]
    taken: list[float] = []
    for value, text, color in levels:
        if value is None:
            continue
        y = value * 100
        while any(abs(y - other) < 0.085 * room * (1.9 if "\n" in text else 1) for other in taken):
            y -= 0.02 * room  # move a label that would overlap
        taken.append(y)
        ax.axhline(value * 100, color=color, linewidth=0.8, linestyle="--")
        canvas.note(ax, y, f"{text} {value:.2%}", color)
    return figure
