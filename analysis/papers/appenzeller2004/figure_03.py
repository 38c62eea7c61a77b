# SPDX-License-Identifier: MIT
"""Figure 3: one loss of one flow. In the paper the sender pauses for (W_max / 2) / C. Linux always uses proportional
rate reduction (RFC 6937), which keeps sending at half the rate.

t0 is the drop, t1 the retransmission, t2 the moment when the window has halved.
"""

from __future__ import annotations

from statistics import fmean

import numpy as np

from analysis.figures.common import BLACK, RED, Data
from analysis.papers import look
from analysis.papers.appenzeller2004 import sawteeth, two_panels
from analysis.papers.appenzeller2004.profiles import NAMES, PROFILES
from analysis.papers.facts import Fact, absent, exactly
from analysis.papers.packet_trace import PacketTrace
from analysis.papers.paper import PaperFigure
from analysis.papers.stored_runs import StoredRuns

CAPTION = (
    "the RTTs around one loss, B = BDP: the packet is dropped at t0 and sent again at t1, and the window is half at "
    "t2. In the paper the sender is silent from t1 for (W_max / 2) / C = B / C. Linux's proportional rate reduction "
    "lets one packet go for two acknowledged instead, and the queue takes 2 B / C to empty."
)
BUFFER = 142
BEFORE_RTTS, AFTER_RTTS = 0.5, 3.5  # drawn time around the drop, in longest RTTs
HALF_AND_A_BIT = 0.51  # of the window at the drop: when recovery ends, the window is half of it to within two packets


def prepare(runs: StoredRuns) -> Data:
    """The first loss of each sender, and the times of every loss."""
    senders = {profile: _sender(runs, profile) for profile in PROFILES}
    return {"provenance": runs.provenance(), "senders": senders, "buffer": BUFFER}


def _sender(runs: StoredRuns, profile: str) -> Data:
    trace = sawteeth.trace_of(runs, BUFFER, profile)
    losses = [] if trace is None else [_loss(trace, start, end) for start, _, end in trace.losses()]
    known = [loss for loss in losses if loss]
    if trace is None or not known:
        return {"absent": f"{NAMES[profile]}: no valid run with a loss"}
    drop = known[0]["drop_ns"]
    start_ns = drop - round(BEFORE_RTTS * trace.longest_rtt_ns)
    end_ns = drop + round(AFTER_RTTS * trace.longest_rtt_ns)
    return {
        "losses": known,
        "curves": sawteeth.curves(trace, start_ns, end_ns),
        "shift_s": (start_ns - drop) / 1e9,
        "end_s": (end_ns - drop) / 1e9,
        "bdp": trace.bdp,
        "packet_s": trace.packet_ns / 1e9,
        "full_rtt_s": trace.longest_rtt_ns / 1e9,
    }


def _loss(trace: PacketTrace, drop: int, end: int) -> Data | None:
    flow = trace.flows[0]["id"]
    times, window = trace.window(flow)
    again, _ = trace.retransmissions(drop, end)
    before, _ = trace.fall(flow, drop, end)
    after = slice(*np.searchsorted(times, (drop, end)))
    halved = times[after][window[after] <= before * HALF_AND_A_BIT]
    if not len(again) or not len(halved):
        return None
    came = trace.queue["enqueue_mono_ns"][trace.arrivals(int(again[0]), int(halved[0]))]
    return {
        "drop_ns": drop, "t1_s": (int(again[0]) - drop) / 1e9, "t2_s": (int(halved[0]) - drop) / 1e9,
        "silent_s": float(np.diff(came).max(initial=0)) / 1e9,
    }  # fmt: skip


def draw(data: Data) -> look.Figure:
    """Window above, queue beneath; 0 is the drop of each sender's first loss."""
    figure, upper, lower, sender = two_panels.draw(data, look.COLUMN_IN, {"loc": "lower left"})
    if sender is None:
        return figure
    first = sender["losses"][0]
    for ax in (upper, lower):
        for at, text in ((0.0, "t0"), (first["t1_s"], "t1"), (first["t2_s"], "t2")):
            ax.axvline(at, color=RED if not at else BLACK, linewidth=0.6, linestyle=":")
            if ax is upper:
                look.note(ax, text, (at, 1.02), (2, 4), xycoords=("data", "axes fraction"))
    lower.set_xlim(sender["shift_s"], sender["end_s"])
    lower.set_xlabel("time since the drop (s)")
    return figure


def facts(data: Data) -> list[Fact]:
    """Means over the losses of a run, which are nearly equal."""
    rows = []
    for profile, sender in data["senders"].items():
        if "absent" in sender:
            rows.append(absent(sender["absent"]))
            continue
        who, losses = NAMES[profile], sender["losses"]
        drained_s = 2 * data["buffer"] * sender["packet_s"]
        rows += [
            Fact(
                f"{who}: from t0 to t1", "one RTT with a full queue", sender["full_rtt_s"],
                exactly(fmean(loss["t1_s"] for loss in losses)), "s",
            ),
            Fact(
                f"{who}: from t1 to t2", "a pause of B / C = 0.142 s", drained_s,
                exactly(fmean(loss["t2_s"] - loss["t1_s"] for loss in losses)), "s",
                "no pause: with PRR a packet leaves for every two acknowledged, so the reduction takes twice as long",
                headline=True,
            ),
            Fact(
                f"{who}: longest silence between t1 and t2", "0.142 s", 2 * sender["packet_s"],
                exactly(fmean(loss["silent_s"] for loss in losses)), "s",
            ),
        ]  # fmt: skip
    return rows


FIGURE = PaperFigure("figure_03", CAPTION, (sawteeth.STEM,), prepare, draw, facts)
