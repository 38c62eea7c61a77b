# SPDX-License-Identifier: MIT
"""Figure 11a: how far from the fair share windows are (Delta-almost fairness) against the number of flows, B = BDP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.figures.common import Data
from analysis.papers import look as common
from analysis.papers.series import ALGORITHMS, IS_ONE_BDP
from analysis.papers.spang2021 import fairness

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from analysis.papers.look import Fact
    from analysis.papers.stored_runs import Runs

SWEEPS = ("reno-depth", "fairness-flows")  # Reno's are those of Figure 4
PAPER = "Δ and 1/Δ slowly increase with n"


def prepare(runs: Runs) -> Data:
    """By number of flows."""
    found, absent = {}, {}
    for cc in ALGORITHMS:
        stem = SWEEPS[0] if cc == "reno" else SWEEPS[1]
        found[cc] = runs.select(stem, IS_ONE_BDP, needs=fairness.NEEDS, cc=cc)
        if not found[cc]:
            absent[cc] = common.absence(runs, stem, cc)
    return {"curves": fairness.curves(found, absent, "flows"), "provenance": runs.provenance()}


def draw(data: Data) -> Figure:
    """One axes."""
    figure, axes = common.new_figure(common.PAGE_IN * 0.62, 2.7)
    fairness.draw(axes[0, 0], data["curves"], "flows n", log_x=True)
    common.footer(figure, data["provenance"])
    return figure


def facts(data: Data) -> list[Fact]:
    """For each algorithm and number of flows."""
    return fairness.facts(data["curves"], "n = {}", dict.fromkeys(ALGORITHMS, PAPER))
