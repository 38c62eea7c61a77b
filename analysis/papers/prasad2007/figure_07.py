# SPDX-License-Identifier: MIT
"""Figure 7: throughput against size with 38 MB of buffer."""

from analysis.papers.prasad2007.size_figure import figure

FIGURE = figure(
    "figure_07",
    26564,
    2656,
    "mean throughput of transfers against their size, U3000, 38 MB of buffer. Lines: slow start without loss, the "
    "S-model and the L-model with the measured loss and RTTs. Hollow: farther than 25 % from both models.",
)
