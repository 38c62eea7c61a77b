# SPDX-License-Identifier: MIT
"""Very small buffers: paced flows, slow access links, and the bounds for Poisson packets."""

from pathlib import Path

from analysis.papers import clocks
from analysis.papers.enachescu2006 import (
    gaps,
    kinds,
    largest_window,
    overpopulated,
    poisson,
    theorem_2,
    utilization,
    windows_over_time,
)
from analysis.papers.paper import Paper

PAPER = Paper(
    key="enachescu2006",
    title="Routers with Very Small Buffers",
    citation=(
        "Enachescu, Ganjali, Goel, McKeown, Roughgarden: Routers with Very Small Buffers. Infocom 2006; its shorter "
        "version is Part III of: Update on Buffer Sizing, CCR 2005"
    ),
    specs=Path(__file__).resolve().parents[3] / "experiments/specs/enachescu2006",
    figures=(
        utilization.FIGURE_1, windows_over_time.FIGURE_2, utilization.FIGURE_3, utilization.FIGURE_4,
        utilization.FIGURE_5A, utilization.FIGURE_5B, largest_window.FIGURE_6, poisson.THEOREM_1, poisson.LEMMA_2,
        theorem_2.FIGURE, overpopulated.FIGURE, largest_window.SCALING, gaps.FIGURE, kinds.HOSTS, kinds.TODAY,
        clocks.figure(("paced-flows",)),
    ),
    telling=("figure_01", "figure_03"),
)  # fmt: skip
