# SPDX-License-Identifier: MIT
"""Figure 14: the best buffer where loss is exponential."""

from analysis.papers.prasad2007.best_buffer_figure import figure

FIGURE = figure(
    "figure_14",
    "1000/500/10",
    "EX",
    {"S": "0, below 10", "L": "0, below 10"},
    "throughput against the buffer for a capacity ratio of 10 (1,000 inputs, 500 users, 100 Mb/s, "
    "60 ms): models with the fitted loss and delay, and measured means. Models end at the cutoff of the delay.",
)
