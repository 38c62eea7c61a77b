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

CAPTION = "how far from the fair share windows are (Delta-almost fairness) against the number of flows, B = BDP."
SWEEPS = ("reno-depth", "fairness-flows")  # Reno's are those of Figure 4
PAPER = "Δ and 1/Δ slowly increase with n"


def prepare(runs: StoredRuns) -> Data:
    """By number of flows."""
    curves: Data = {}
    for stem, ccs in zip(SWEEPS, (("reno",), runs.paper.algorithms[1:]), strict=True):
        curve = partial(fairness.curve, by="flows")
        curves |= runs.by_algorithm(stem, curve, IS_ONE_BDP, ccs=ccs, needs=fairness.NEEDS)
    return {"curves": curves, "provenance": runs.provenance()}


def draw(data: Data) -> look.Figure:
    """One axes."""
    figure, axes = look.new_figure(look.PAGE_IN * 0.62, 2.7)
    fairness.draw(axes[0, 0], data["curves"], "flows n", log_x=True)
    return figure


def facts(data: Data) -> list[Fact]:
    """For each algorithm and number of flows."""
    return fairness.facts(data["curves"], "n = {}", dict.fromkeys(data["curves"], PAPER))


FIGURE = PaperFigure("figure_11a", CAPTION, SWEEPS, prepare, draw, facts)
