# SPDX-License-Identifier: MIT
"""Figure 2: windows over time of three of 500 flows, Reno and paced Reno, with 10 packets of buffer."""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.figures.common import Data
from analysis.papers import look
from analysis.papers.enachescu2006 import model
from analysis.papers.enachescu2006.model import LOOKS, PACED, RENO, sender
from analysis.papers.facts import Fact, exactly
from analysis.papers.packet_trace import PacketTrace
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.theory import tiny_buffers

CAPTION = (
    "packets in flight of three of 500 flows over time, windows of 32 packets at most, 1.5 Gb/s, 10 packets of buffer."
)
STEM = "windows"
SHOWN, SPAN_S = 3, 10.0
PRINTED = {RENO: "rarely reaches 32", PACED: "32 most of the time"}


def prepare(runs: PaperRuns) -> Data:
    """For each sender's first repetition: the windows of SHOWN flows in steps; over all flows, the share of time at the
    largest window, and the mean window beside the TCP equation's.
    """
    senders = {sender(run): run.measure("windows over time", Data, _windows) for run in runs.select(STEM, repetition=1)}
    rows = []
    for name, of in senders.items():
        what, mean = f"{name}: time with {of['largest']} packets in flight", exactly(of["mean"])
        rows.append(Fact(what, PRINTED.get(name, ""), None, exactly(of["at_largest"]), "of all", headline=True))
        what = f"{name}: mean packets in flight"
        if name == PACED:
            rows.append(Fact(f"{what}, beside the TCP equation with M/M/1/B", "", of["exponential"], mean, "packets"))
            rows.append(Fact(f"{what}, beside the TCP equation with M/D/1/B", "", of["equal"], mean, "packets"))
        else:
            rows.append(Fact(what, "", None, mean, "packets"))
        rows.append(Fact(f"{name}: u", "", None, exactly(of["used"]), ""))
    return {"senders": senders, "facts": rows}


def _windows(run: PaperRun) -> Data:
    trace = PacketTrace(run)
    records, largest = trace.records, run["window_packets"]
    known = np.flatnonzero(
        (records["in_flight_packets"] >= 0) & (records["flow"] >= 0) & (records["mono_ns"] < trace.end_ns)
    )
    order = known[np.lexsort((records["mono_ns"][known], records["flow"][known]))]
    flow, window = records["flow"][order], records["in_flight_packets"][order]
    start = np.clip(records["mono_ns"][order], trace.start_ns, trace.end_ns)
    end = np.append(start[1:], trace.end_ns)
    end[np.flatnonzero(np.diff(flow))] = trace.end_ns  # a flow's last window lasts to the end
    held = end - start
    shown: list[Any] = []
    for number in np.unique(flow)[:SHOWN]:
        mine = (flow == number) & (held > 0) & (start < trace.start_ns + SPAN_S * 1e9)
        shown.append(((start[mine] - trace.start_ns) / 1e9, window[mine]))
    share = model.bdp(run) / run["flows"]  # packets in flight of a flow that uses an equal part of the link
    return {
        "shown": shown, "largest": largest, "flows": run["flows"],
        "at_largest": float(held[window >= largest].sum() / held.sum()),
        "mean": float((held * window).sum() / held.sum()),
        "exponential": share * tiny_buffers.tcp_mm1b_load(share, run["buffer_packets"], largest),
        "equal": share * tiny_buffers.tcp_md1b_load(share, run["buffer_packets"], largest),
        "used": run["utilization_mean"],
    }  # fmt: skip


def draw(data: Data) -> look.Figure:
    """A panel for each sender."""
    figure, axes = look.new_figure(look.PAGE_IN, 2.4, 1, 2, sharey=True)
    for ax, name in zip(axes[0], (RENO, PACED), strict=True):
        ax.set_title(name, loc="left", pad=3)
        of = data["senders"].get(name)
        if of is None:
            look.absent(ax)
            continue
        for (times, windows), alpha in zip(of["shown"], (1.0, 0.6, 0.35), strict=False):
            ax.step(times, windows, where="post", color=LOOKS[name][0], linewidth=0.6, alpha=alpha)
        look.level(ax, of["largest"], f"W = {of['largest']}")
        ax.set_ylim(0, of["largest"] * 1.25)
        ax.set_xlabel("time (s)")
    axes[0, 0].set_ylabel("packets in flight")
    return figure


FIGURE_2 = PaperFigure("figure_02", CAPTION, (STEM,), prepare, draw)
