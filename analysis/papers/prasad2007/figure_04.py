# SPDX-License-Identifier: MIT
"""Figure 4: throughput against the buffer where users do not fill the link."""

from analysis.papers.prasad2007.throughput_figure import figure

FIGURE = figure(
    "figure_04",
    (100, 120),
    "median throughput of small and large transfers against the buffer, with fewer users than fill the link. "
    "Crosses: full scale, buffers divided by ten.",
)
