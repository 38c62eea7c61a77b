# SPDX-License-Identifier: MIT
"""Utilization with today's Linux senders, in the axes of Figure 4: pacing, TSO, BBR, no cap of windows."""

from __future__ import annotations

from functools import partial

from analysis.figures import algorithms
from analysis.papers.enachescu2006 import kinds
from analysis.papers.paper import PaperFigure
from analysis.papers.stored_runs import StoredRun

CAPTION = (
    "utilization against the buffer with senders as Linux 6.12 has them: 40 flows on 100 Mb/s, 90 to 110 ms, without a "
    "cap of windows, SACK and RACK on, delayed ACKs. TSO: the sender's NIC of 10 Gb/s cuts segments of up to 64 kB."
)
STEM = "today"
PACINGS = {"linux": "Linux's pacing", "exact": "even pacing", "fq": "fq"}


def kind(run: StoredRun) -> str:
    """Algorithm, pacing and offloads in words."""
    words = [algorithms.name(run["cc"]), PACINGS.get(run["pacing"] or "", ""), "TSO" if run["nic_rate_bps"] else ""]
    return ", ".join(word for word in words if word)


FIGURE = PaperFigure(
    "today",
    CAPTION,
    (STEM,),
    partial(kinds.prepare, stem=STEM, kind=kind),
    kinds.draw,
    partial(kinds.facts, printed={}, most_packets=20, headline=True),
)
