# SPDX-License-Identifier: MIT
"""Figure 13: the best buffer where loss is a power law."""

from analysis.papers.prasad2007.best_buffer_figure import figure

FIGURE = figure(
    "figure_13",
    "20/100/0.1",
    "PL",
    {"S": "about 100", "L": "about 400"},
    "throughput against the buffer for a capacity ratio of 0.1 (20 inputs, 100 users, 50 Mb/s, 60 ms): models with the "
    "fitted loss and delay, and measured means. Models end at the cutoff of the delay.",
)
