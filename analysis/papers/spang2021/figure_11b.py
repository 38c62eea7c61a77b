# SPDX-License-Identifier: MIT
"""Figure 11b: how far from the fair share the windows of 16 flows are (Delta-almost fairness) against the buffer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.figures.common import Data
from analysis.papers import look as common
from analysis.papers.series import ALGORITHMS
from analysis.papers.spang2021 import fairness

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from analysis.papers.look import Fact
    from analysis.papers.stored_runs import Runs

SWEEPS = ("fairness-buffers",)
# 5.6: "For Cubic, Reno, and Scalable, Delta is about 4. For BBR, it is about 10. Delta does not depend on the buffer
# size"; "Delta^-1 slowly decreases with buffer size, and approaches 0.5".
PAPER = {cc: "about 10, whatever B" if cc == "bbr" else "about 4, whatever B" for cc in ALGORITHMS}


def prepare(runs: Runs) -> Data:
    """By buffer."""
    found = {cc: runs.select(SWEEPS[0], needs=fairness.NEEDS, cc=cc) for cc in ALGORITHMS}
    absent = {cc: common.absence(runs, SWEEPS[0], cc) for cc, those in found.items() if not those}
    return {"curves": fairness.curves(found, absent, "buffer_packets"), "provenance": runs.provenance()}


def draw(data: Data) -> Figure:
    """One axes."""
    figure, axes = common.new_figure(common.PAGE_IN * 0.62, 2.7)
    fairness.draw(axes[0, 0], data["curves"], "buffer (packets), 16 flows", log_x=False)
    common.footer(figure, data["provenance"])
    return figure


def facts(data: Data) -> list[Fact]:
    """For each algorithm and buffer."""
    return fairness.facts(data["curves"], "B = {} packets", PAPER)
