# SPDX-License-Identifier: MIT
"""Utilization with today's Linux senders, in the axes of Figure 4: pacing, TSO, BBR, and windows without a cap."""

from __future__ import annotations

from functools import partial

from analysis.figures import algorithms
from analysis.figures.common import Data
from analysis.papers.enachescu2006 import kinds, panel
from analysis.papers.paper import PaperFigure
from analysis.papers.stored_runs import StoredRun

CAPTION = (
    "utilization against the buffer with senders as Linux 6.12 has them: 40 flows on 100 Mb/s, 90 to 110 ms, "
    "uncapped windows, SACK and RACK on, delayed ACKs. TSO: the sender's NIC of 10 Gb/s cuts segments of up to 64 kB."
)
STEM = "today"
PACINGS = {"linux": "Linux's pacing", "exact": "even pacing", "fq": "fq"}


def kind(run: StoredRun) -> str:
    """Algorithm, pacing and offloads in words."""
    words = [algorithms.name(run["cc"]), PACINGS.get(run["pacing"] or "", ""), "TSO" if run["nic_rate_bps"] else ""]
    return ", ".join(word for word in words if word)


STYLES = {"linux": "--", "exact": ":", "fq": "-."}


def curves(data: Data) -> list[panel.Curve]:
    """The colour shows the algorithm, the line the pacing, the marker TSO."""
    drawn = []
    for name, points in sorted(data["curves"].items()):
        run = data["samples"][name]
        marker = "s" if run["nic_rate_bps"] else "o"
        drawn.append(
            panel.Curve(name, algorithms.color(run["cc"]), marker, points, STYLES.get(run["pacing"] or "", "-"))
        )
    return drawn


FIGURE = PaperFigure(
    "today",
    CAPTION,
    (STEM,),
    partial(kinds.prepare, stem=STEM, kind=kind),
    partial(kinds.draw, curves=curves),
    partial(kinds.facts, printed={}, most_packets=20),
)
