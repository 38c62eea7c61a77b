# SPDX-License-Identifier: MIT
"""Very small buffers: paced flows, slow access links, and the bounds for Poisson packets."""

from pathlib import Path

from analysis.papers import clocks
from analysis.papers.enachescu2006 import drops, gaps, hosts, overpopulated, scaling, theorem_1, theorem_2, today
from analysis.papers.paper import Paper, figures_of

PAPER = Paper(
    key="enachescu2006",
    title="Routers with Very Small Buffers",
    citation=(
        "Enachescu, Ganjali, Goel, McKeown, Roughgarden: Routers with Very Small Buffers. Infocom 2006; its shorter "
        "version is Part III of: Update on Buffer Sizing, CCR 2005"
    ),
    specs=Path(__file__).resolve().parents[3] / "experiments/specs/enachescu2006",
    figures=(
        *figures_of(__name__, __file__), theorem_1.FIGURE, drops.FIGURE, theorem_2.FIGURE,
        overpopulated.FIGURE, scaling.FIGURE, gaps.FIGURE, hosts.FIGURE, today.FIGURE,
        clocks.figure(("paced-flows",)),
    ),
    telling=("figure_01", "figure_03"),
)  # fmt: skip
