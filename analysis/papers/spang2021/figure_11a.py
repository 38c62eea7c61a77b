# SPDX-License-Identifier: MIT
"""Figure 11a: almost fairness against the number of flows."""

from __future__ import annotations

from functools import partial

from analysis.figures.common import Data
from analysis.papers import look
from analysis.papers.columns import IS_ONE_BDP
from analysis.papers.facts import Fact
from analysis.papers.paper import PaperFigure
from analysis.papers.spang2021 import fairness
from analysis.papers.stored_runs import StoredRuns

CAPTION = "distance of the windows from the fair share (Delta-almost fairness) against the number of flows, B = BDP."
SWEEPS = ("reno-depth", "fairness-flows", "published")  # Reno's runs are those of Figure 4
PAPER = "Δ and 1/Δ slowly increase with n"


def prepare(runs: StoredRuns) -> Data:
    """Delta and percentiles of windows for each algorithm, by number of flows."""
    curves: Data = {}
    for stem, ccs in zip(SWEEPS[:2], (("reno",), runs.paper.algorithms[1:]), strict=True):
        curve = partial(fairness.curve, by="flows")
        curves |= runs.by_algorithm(stem, curve, IS_ONE_BDP, ccs=ccs, needs=fairness.NEEDS)
    return {"curves": curves, "ends": fairness.as_notebook(runs, SWEEPS[-1], "flows"), "provenance": runs.provenance()}


def draw(data: Data) -> look.Figure:
    """One panel."""
    figure, ax = look.new_panel(look.PAGE_IN * 0.62, 2.7)
    fairness.draw(ax, data["curves"], "flows n", log_x=True, ends=data["ends"])
    return figure


def facts(data: Data) -> list[Fact]:
    """Delta and percentiles of windows for each algorithm and number of flows."""
    rows = fairness.facts(data["curves"], "n = {}", dict.fromkeys(data["curves"], PAPER))
    return rows + fairness.facts_as_notebook(data["ends"], "n = {}, mean over buffers")


FIGURE = PaperFigure("figure_11a", CAPTION, SWEEPS, prepare, draw, facts)
