# SPDX-License-Identifier: MIT
"""Users that fetch and think: the buffer with the fastest transfers, by the output/input capacity ratio."""

from pathlib import Path

from analysis.papers.paper import Paper
from analysis.papers.prasad2007 import best_buffer, heavy_load, loss, sizes, table_1, testbed, topology, windows

PAPER = Paper(
    key="prasad2007",
    title="Router Buffer Sizing Revisited: The Role of the Output/Input Capacity Ratio",
    citation=(
        "Prasad, Dovrolis, Thottan: Router Buffer Sizing Revisited: The Role of the Output/Input Capacity Ratio. "
        "CoNEXT 2007"
    ),
    specs=Path(__file__).resolve().parents[3] / "experiments/specs/prasad2007",
    figures=(
        topology.FIGURE_1, testbed.FIGURE_2, windows.FIGURE_3, testbed.FIGURE_4, testbed.FIGURE_5, sizes.FIGURE_6,
        sizes.FIGURE_7, heavy_load.FIGURE_8, topology.FIGURE_9, loss.FIGURE_10, loss.FIGURE_11, loss.FIGURE_12,
        best_buffer.FIGURE_13, best_buffer.FIGURE_14, table_1.TABLE_1, loss.RATIOS,
    ),
    telling=("figure_05", "ratios"),
)  # fmt: skip
