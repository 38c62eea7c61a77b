# SPDX-License-Identifier: MIT
"""Lemmas 3 to 5: a packet is dropped only if an interval that ends with this packet is overpopulated. An overpopulated
interval holds more packets than its slots and the buffer together. Each lemma is about one range of interval lengths.
"""

from __future__ import annotations

import math

import numpy as np

from analysis.figures.common import BLUE, GREEN, GREY, RED, Data
from analysis.papers import look
from analysis.papers.enachescu2006 import model
from analysis.papers.facts import Fact, exactly
from analysis.papers.packet_trace import PacketTrace
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns

CAPTION = (
    "Lemmas 3 to 5: share of packets that find the last l slots overpopulated: l + B or more other packets arrived in "
    "them. 50 periodic flows, W = 32, a load of 0.8, B = 5; a flow's packets S slots apart. "
    "Dashed: l = ln W and, for even spacing, l = S W. Lemma 3 is about l up to the first line, Lemma 4 between the "
    "lines, Lemma 5 beyond the second."
)
STEM = "overpopulated"
EXCESS = 5  # B; open-loop arrivals do not depend on the runs' own buffer
SHADES = (RED, GREEN, BLUE)
LENGTHS = tuple(sorted({round(1.5**step) for step in range(1, 22)}))  # slots, up to 4,988


def shares(arrived_ns: np.ndarray, slot_ns: float, buffer_packets: int) -> dict[int, float]:
    """For each length l: the share of packets with l + B or more other packets in the l slots before them."""
    at = np.arange(len(arrived_ns))
    share_by_slots = {}
    for slots in LENGTHS:
        others = at - np.searchsorted(arrived_ns, arrived_ns - slots * slot_ns, side="left")
        whole = arrived_ns >= arrived_ns[0] + slots * slot_ns  # the interval is in the recording
        if whole.any():
            share_by_slots[slots] = float((others[whole] >= slots + buffer_packets).mean())
    return share_by_slots


def prepare(runs: PaperRuns) -> Data:
    """Each run's shares, by S; the largest share in each lemma's range of lengths."""
    of_runs = [
        (model.slots(run), model.round_packets(run), run.measure("overpopulated shares", dict[int, float], _shares))
        for run in runs.select(STEM, traffic="open-loop")
    ]
    of_runs.sort(key=lambda of_run: of_run[0])
    rows = []
    for slots, packets, of in of_runs:
        short, long = math.log(packets), slots * packets
        for lemma, inside in (
            ("l ≤ ln W (Lemma 3)", [share for length, share in of.items() if length <= short]),
            ("ln W < l < S W (Lemma 4)", [share for length, share in of.items() if short < length < long]),
            ("l ≥ S W (Lemma 5)", [share for length, share in of.items() if length >= long]),
        ):
            if inside:
                what = f"S = {slots:g}, {lemma}: largest share of overpopulated intervals, B = {EXCESS}"
                rows.append(Fact(what, "", None, exactly(max(inside)), ""))
    return {"runs": of_runs, "facts": rows}


def _shares(run: PaperRun) -> dict[int, float]:
    trace = PacketTrace(run)
    rows = trace.arrivals(trace.start_ns, trace.end_ns)
    mine = trace.queue["flow"][rows] >= 0
    arrived = trace.queue["enqueue_mono_ns"][rows][mine]
    return shares(arrived, trace.packet_ns, EXCESS)


def draw(data: Data) -> look.Figure:
    """One panel, both axes logarithmic."""
    figure, ax = look.new_panel(look.PAGE_IN * 0.72, 2.8)
    if not data["runs"]:
        return look.absent(ax)
    look.log_axis(ax.xaxis)
    ax.set_yscale("log")
    for (slots, _, of), shade in zip(data["runs"], SHADES, strict=False):
        positive = {length: share for length, share in of.items() if share > 0}
        ax.plot(list(positive), list(positive.values()), "o-", color=shade, linewidth=0.7, markersize=3,
                label=f"S = {slots:g}")  # fmt: skip
    slots, packets, _ = data["runs"][-1]
    for place in (math.log(packets), slots * packets):
        ax.axvline(place, color=GREY, linewidth=0.7, linestyle="--")
    ax.set_xlabel("length l of the interval (slots)")
    ax.set_ylabel("share of packets")
    ax.legend(loc="lower center", bbox_to_anchor=(0.6, 0), frameon=False)
    return figure


FIGURE = PaperFigure("lemma_3", CAPTION, (STEM,), prepare, draw)
