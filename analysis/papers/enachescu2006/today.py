# SPDX-License-Identifier: MIT
"""Utilization with today's Linux senders, in the axes of Figure 4: pacing, TSO, BBR, no cap of windows."""

from __future__ import annotations

from analysis.figures import algorithms
from analysis.figures.common import GREY, Data, level
from analysis.papers import brackets, look
from analysis.papers.enachescu2006 import panel
from analysis.papers.facts import Fact
from analysis.papers.paper import PaperFigure
from analysis.papers.series import series
from analysis.papers.stored_runs import StoredRun, StoredRuns

CAPTION = (
    "utilization against the buffer with senders as Linux 6.12 has them: 40 flows on 100 Mb/s, 90 to 110 ms, without a "
    "cap of windows, SACK and RACK on, delayed ACKs. TSO: the sender's NIC of 10 Gb/s cuts segments of up to 64 kB."
)
STEM = "today"
ENOUGH = 0.8
PACINGS = {"linux": "Linux's pacing", "exact": "even pacing"}


def kind(run: StoredRun) -> str:
    """Algorithm, pacing and offloads in words."""
    words = [algorithms.name(run["cc"]), PACINGS.get(run["pacing"] or "", ""), "TSO" if run["nic_rate_bps"] else ""]
    return ", ".join(word for word in words if word)


def prepare(runs: StoredRuns) -> Data:
    """Estimates by kind and buffer, and the least buffer of each kind."""
    selected = runs.select(STEM)
    kinds: dict[str, list[StoredRun]] = {}
    for run in selected:
        kinds.setdefault(kind(run), []).append(run)
    return {
        "provenance": runs.provenance(),
        "curves": {name: series(of, "buffer_packets", "utilization_mean") for name, of in kinds.items()},
        "brackets": {name: brackets.of_utilization(of, ENOUGH) for name, of in kinds.items()},
    }


def draw(data: Data) -> look.Figure:
    """One panel, buffers logarithmic."""
    figure, axes = look.new_figure(look.PAGE_IN, 3.2)
    ax = axes[0, 0]
    curves = panel.numbered(data["curves"])
    if panel.draw(ax, curves, "buffer B (packets)"):
        level(ax, ENOUGH, "", GREY, ":", look.LABEL_POINTS)
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure


def facts(data: Data) -> list[Fact]:
    """The least buffer of each kind for 80 %, and u with up to 20 packets."""
    rows = []
    for name, edges in data["brackets"].items():
        what = f"{name}: least buffer for u of {ENOUGH:g} or more"
        rows.append(Fact(what, "", None, edges.interval(), "packets", none=edges.open_text(), headline=True))
    for name, points in data["curves"].items():
        rows += [Fact(f"{name}, B = {buffer}: u", "", None, of, "") for buffer, of in points.items() if buffer <= 20]
    return rows


FIGURE = PaperFigure("today", CAPTION, (STEM,), prepare, draw, facts)
