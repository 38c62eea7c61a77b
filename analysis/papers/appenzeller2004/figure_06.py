# SPDX-License-Identifier: MIT
"""Figure 6: one flow with more than a BDP."""

from analysis.papers.appenzeller2004.sawtooth_figure import figure

CAPTION = "one flow with B = 180 packets, 1.27 BDP: the queue never empties, and every packet waits longer."
PRINTED = {"least queue depth": "never empty", "utilization": "full"}

FIGURE = figure("figure_06", 180, CAPTION, PRINTED)
