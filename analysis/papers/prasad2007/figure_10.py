# SPDX-License-Identifier: MIT
"""Figure 10: loss falls as a power of the buffer if the link is slower than its inputs."""

from analysis.papers.prasad2007.loss_figure import figure

FIGURE = figure(
    "figure_10",
    "20/100/0.1",
    "PL",
    "loss against the buffer for a capacity ratio of 0.1 (20 inputs, 100 users), and for 0.8 with "
    "exponential sizes (section 6.2). Lines: both forms, fitted from 10 packets to the cutoff of the delay.",
    {"slightly-slower": 0.8},
)
