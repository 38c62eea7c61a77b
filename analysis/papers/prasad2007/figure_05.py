# SPDX-License-Identifier: MIT
"""Figure 5: throughput against the buffer where users fill the link."""

from analysis.papers.prasad2007.throughput_figure import figure

FIGURE = figure(
    "figure_05",
    (300,),
    "median throughput of small and large transfers against the buffer; the link is full. Crosses: full scale, "
    "buffers divided by ten.",
)
