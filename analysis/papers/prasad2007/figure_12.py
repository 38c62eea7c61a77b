# SPDX-License-Identifier: MIT
"""Figure 12: loss falls exponentially with the buffer if the link is faster than its inputs."""

from analysis.papers.prasad2007.loss_figure import figure

FIGURE = figure(
    "figure_12",
    "1000/25/10",
    "EX",
    "loss against the buffer for a capacity ratio of 10 (1,000 inputs, 25 users). Lines: "
    "both forms, fitted from 10 packets to the cutoff of the delay.",
)
