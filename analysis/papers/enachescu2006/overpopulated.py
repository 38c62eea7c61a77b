# SPDX-License-Identifier: MIT
"""Lemmas 3 to 5: a packet is dropped only if an interval that ends with this packet is overpopulated. An overpopulated
interval holds more packets than its slots and the buffer together. Each lemma is about one range of interval lengths.
"""

from __future__ import annotations

import math

import numpy as np

from analysis.figures.common import BLUE, GREEN, GREY, RED, Data
from analysis.papers import look
from analysis.papers.enachescu2006 import rounds
from analysis.papers.facts import Fact, exactly
from analysis.papers.packet_trace import PacketTrace
from analysis.papers.paper import PaperFigure
from analysis.papers.stored_runs import StoredRun, StoredRuns

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


def of_run(run: StoredRun) -> Data:
    """The shares of one run."""
    return {
        "slots": rounds.slots(run),
        "packets": rounds.packets(run),
        "shares": run.measure("overpopulated shares", dict[int, float], _shares),
    }


def _shares(run: StoredRun) -> dict[int, float]:
    trace = PacketTrace(run)
    rows = trace.arrivals(trace.start_ns, trace.end_ns)
    mine = trace.queue["flow"][rows] >= 0
    arrived = trace.queue["enqueue_mono_ns"][rows][mine]
    return shares(arrived, trace.packet_ns, EXCESS)


def prepare(runs: StoredRuns) -> Data:
    """Each run's shares, by S."""
    of_runs = [of_run(run) for run in runs.select(STEM, traffic="open-loop")]
    return {"provenance": runs.provenance(), "runs": sorted(of_runs, key=lambda each: each["slots"])}


def draw(data: Data) -> look.Figure:
    """One panel, both axes logarithmic."""
    figure, ax = look.new_panel(look.PAGE_IN * 0.72, 2.8)
    if not data["runs"]:
        return look.absent(ax)
    look.log_axis(ax.xaxis)
    ax.set_yscale("log")
    for each, shade in zip(data["runs"], SHADES, strict=False):
        positive = {length: share for length, share in each["shares"].items() if share > 0}
        ax.plot(list(positive), list(positive.values()), "o-", color=shade, linewidth=0.7, markersize=3,
                label=f"S = {each['slots']:g}")  # fmt: skip
    widest = data["runs"][-1]
    for place in (math.log(widest["packets"]), widest["slots"] * widest["packets"]):
        ax.axvline(place, color=GREY, linewidth=0.7, linestyle="--")
    ax.set_xlabel("length l of the interval (slots)")
    ax.set_ylabel("share of packets")
    ax.legend(loc="lower center", bbox_to_anchor=(0.6, 0), frameon=False)
    return figure


def facts(data: Data) -> list[Fact]:
    """The largest share in each lemma's range of lengths."""
    rows = []
    for each in data["runs"]:
        short, long = math.log(each["packets"]), each["slots"] * each["packets"]
        ranges = {
            "l ≤ ln W (Lemma 3)": [share for length, share in each["shares"].items() if length <= short],
            "ln W < l < S W (Lemma 4)": [share for length, share in each["shares"].items() if short < length < long],
            "l ≥ S W (Lemma 5)": [share for length, share in each["shares"].items() if length >= long],
        }
        name = f"S = {each['slots']:g}"
        for what, of in ranges.items():
            if of:
                rows.append(Fact(f"{name}, {what}: largest share of overpopulated intervals, B = {EXCESS}", "", None,
                                 exactly(max(of)), ""))  # fmt: skip
    return rows


FIGURE = PaperFigure("lemma_3", CAPTION, (STEM,), prepare, draw, facts)
