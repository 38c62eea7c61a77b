# SPDX-License-Identifier: MIT
"""Figure 4: one flow with B = BDP."""

from analysis.papers.appenzeller2004.sawtooth_figure import figure

CAPTION = (
    "one flow with B = BDP (142 packets, 1000 packets/s): the queue just empties after a loss, and the link stays "
    "busy. Dashed: the fluid model of equations (9) and (10), delayed by the longest RTT, the time until the sender "
    "learns of a loss."
)
PRINTED = {"period": "1.5 B²/C", "least queue depth": "just empties", "utilization": "the link is always busy"}

FIGURE = figure("figure_04", 142, CAPTION, PRINTED)
