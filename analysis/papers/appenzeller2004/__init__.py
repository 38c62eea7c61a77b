# SPDX-License-Identifier: MIT
"""Appenzeller, Keslassy, McKeown 2004: buffers for many long flows, for short flows, and for both."""

from pathlib import Path

from analysis.papers import clocks
from analysis.papers.appenzeller2004 import section_3
from analysis.papers.paper import Paper, figures_of

PAPER = Paper(
    key="appenzeller2004",
    title="Sizing Router Buffers",
    citation="Appenzeller, Keslassy, McKeown: Sizing Router Buffers. SIGCOMM 2004",
    specs=Path(__file__).resolve().parents[3] / "experiments/specs/appenzeller2004",
    figures=(
        *figures_of(__name__, __file__),
        section_3.FIGURE,
        clocks.figure(("one-flow", "short-queue", "gsr")),
    ),
    telling=("figure_11",),
)
