# SPDX-License-Identifier: MIT
"""Figure 1: the testbed."""

from analysis.papers.prasad2007.topology_figure import figure

FIGURE = figure(
    "figure_01",
    "windows",
    "servers",
    "the testbed at a tenth of its scale: two input links, each shared by half of the servers, before one link. Values "
    "are those of a run of Figure 3.",
)
