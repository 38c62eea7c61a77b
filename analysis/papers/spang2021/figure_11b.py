# SPDX-License-Identifier: MIT
"""Figure 11b: almost fairness of 16 flows against the buffer."""

from __future__ import annotations

from functools import partial

from analysis.figures.common import Data
from analysis.papers import look
from analysis.papers.facts import Fact
from analysis.papers.paper import PaperFigure
from analysis.papers.spang2021 import fairness
from analysis.papers.stored_runs import StoredRuns

CAPTION = "distance of the windows of 16 flows from the fair share (Delta-almost fairness) against the buffer."
SWEEPS = ("fairness-buffers", "published")
# 5.6: "For Cubic, Reno, and Scalable, Delta is about 4. For BBR, it is about 10. Delta does not depend on the buffer
# size"; "Delta^-1 slowly decreases with buffer size, and approaches 0.5".
PAPER, PAPER_BBR = "about 4, whatever B", "about 10, whatever B"


def prepare(runs: StoredRuns) -> Data:
    """Delta and percentiles of windows for each algorithm, by buffer."""
    curve = partial(fairness.curve, by="buffer_packets")
    curves = runs.by_algorithm(SWEEPS[0], curve, needs=fairness.NEEDS)
    return {
        "curves": curves,
        "ends": fairness.as_notebook(runs, SWEEPS[-1], "buffer_packets"),
        "provenance": runs.provenance(),
    }


def draw(data: Data) -> look.Figure:
    """One panel."""
    figure, ax = look.new_panel(look.PAGE_IN * 0.62, 2.7)
    fairness.draw(ax, data["curves"], "buffer (packets), 16 flows", log_x=False, ends=data["ends"])
    return figure


def facts(data: Data) -> list[Fact]:
    """Delta and percentiles of windows for each algorithm and buffer."""
    paper = {cc: PAPER_BBR if cc == "bbr" else PAPER for cc in data["curves"]}
    rows = fairness.facts(data["curves"], "B = {} packets", paper)
    return rows + fairness.facts_as_notebook(data["ends"], "B = {} packets, mean over all n")


FIGURE = PaperFigure("figure_11b", CAPTION, SWEEPS, prepare, draw, facts)
