# SPDX-License-Identifier: MIT
"""Unpaced Reno of Figure 1 with one property of hosts or path changed at a time: the effect on its least buffer."""

from __future__ import annotations

from functools import partial

from analysis.amounts import si
from analysis.papers.enachescu2006 import kinds
from analysis.papers.paper import PaperFigure
from analysis.papers.stored_runs import StoredRun

CAPTION = (
    "utilization of 40 unpaced Reno flows against the buffer, as in Figure 1, with one property of the hosts or of the "
    "path changed at a time."
)
STEM = "hosts"
AS_FIGURE_1 = "as Figure 1"


def change(run: StoredRun) -> str:
    """The properties in which a run differs from Figure 1, in words; AS_FIGURE_1 if none. Raises InputError."""
    spec = run.experiment
    spread_s, rtt_s = (spec.rtt_spread_ns or 0) / 1e9, spec.rtt_ns / 1e9
    words = []
    if run["profile"] == "linux":
        words.append("TCP as Linux has it")
    else:
        words += ["delayed ACKs"] if run["acks"] == "delayed" else []
        words += ["SACK"] if run["sack"] == "on" else []
    if run["access_bps"]:
        words.append(f"behind links of {si(run['access_bps'], 'b/s')}")
    if not spread_s:
        words.append(f"RTTs of {si(rtt_s, 's')}")
    elif spread_s > 0.05:
        words.append(f"RTTs of {si(rtt_s, 's')} to {si(rtt_s + spread_s, 's')}")
    return ", ".join(words) or AS_FIGURE_1


FIGURE = PaperFigure(
    "hosts",
    CAPTION,
    (STEM,),
    partial(kinds.prepare, stem=STEM, kind=change, first=AS_FIGURE_1),
    kinds.draw,
    partial(kinds.facts, printed={AS_FIGURE_1: "about 100"}, most_packets=10),
)
