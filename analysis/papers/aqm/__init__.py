# SPDX-License-Identifier: MIT
"""Queues compared: tail drop, the AQMs of the shelf and Linux's own, under the scenarios of RFC 7928 that one
bottleneck can show; and the least tail-drop buffer of BBRv3 beside Cubic.
"""

from pathlib import Path

from analysis.papers.aqm import delays, shares
from analysis.papers.paper import Paper

PAPER = Paper(
    key="aqm",
    title="Which queue to configure",
    citation="Kuhn, Natarajan, Khademi, Ros: Characterization Guidelines for Active Queue Management (AQM). RFC 7928",
    specs=Path(__file__).resolve().parents[3] / "experiments/specs/aqm",
    figures=(delays.LONG, delays.WITH_TRAFFIC, delays.WITH_LINKS, delays.TABLE, shares.FIGURE),
    algorithms=("reno", "cubic", "bbr", "bbr3"),
    telling=("figure_01",),
)
