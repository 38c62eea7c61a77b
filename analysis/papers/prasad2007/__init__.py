# SPDX-License-Identifier: MIT
"""Users that fetch and think: the buffer with the fastest transfers, by the output/input capacity ratio."""

from pathlib import Path

from analysis.papers.paper import Paper, figures_of
from analysis.papers.prasad2007 import ratios

PAPER = Paper(
    key="prasad2007",
    title="Router Buffer Sizing Revisited: The Role of the Output/Input Capacity Ratio",
    citation=(
        "Prasad, Dovrolis, Thottan: Router Buffer Sizing Revisited: The Role of the Output/Input Capacity Ratio. "
        "CoNEXT 2007"
    ),
    specs=Path(__file__).resolve().parents[3] / "experiments/specs/prasad2007",
    figures=(*figures_of(__name__, __file__), ratios.FIGURE),
    telling=("figure_05", "ratios"),
)
