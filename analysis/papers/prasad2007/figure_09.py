# SPDX-License-Identifier: MIT
"""Figure 9: the topology of the simulations."""

from analysis.papers.prasad2007.topology_figure import figure

FIGURE = figure(
    "figure_09",
    "input-links",
    "server",
    "the simulations' topology, with the values of the row 1000/500/10 of Table 1. Each transfer draws its server. "
    "Think times of this run are long, so that the queue is often empty.",
)
