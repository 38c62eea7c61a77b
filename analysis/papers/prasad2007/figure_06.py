# SPDX-License-Identifier: MIT
"""Figure 6: throughput against size with 30 KB of buffer."""

from analysis.papers.prasad2007.size_figure import figure

FIGURE = figure(
    "figure_06",
    20,
    3,
    "mean throughput of transfers against their size, U3000, 30 KB of buffer. Lines: slow start without loss, the "
    "S-model and the L-model with the measured loss and RTTs. Hollow: farther than 25 % from both models.",
)
