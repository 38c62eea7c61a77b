# SPDX-License-Identifier: MIT
"""Figure 5: one flow with less than a BDP."""

from analysis.papers.appenzeller2004.sawtooth_figure import figure

CAPTION = (
    "one flow with B = 100 packets, 0.7 BDP: the window falls below the BDP, so the queue is empty and the link idle "
    "for a while after each loss."
)
PRINTED = {"empty": "empty for some time", "utilization": "below 100 %"}

FIGURE = figure("figure_05", 100, CAPTION, PRINTED)
