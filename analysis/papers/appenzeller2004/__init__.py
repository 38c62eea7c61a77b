# SPDX-License-Identifier: MIT
"""Appenzeller, Keslassy, McKeown 2004: buffers for many long flows, for short flows, and for both."""

from pathlib import Path

from analysis.papers import clocks
from analysis.papers.appenzeller2004 import (
    aggregate,
    least_buffers,
    one_flow,
    router,
    sawteeth,
    short_flows,
    two_flows,
)  # fmt: skip
from analysis.papers.paper import Paper

PAPER = Paper(
    key="appenzeller2004",
    title="Sizing Router Buffers",
    citation="Appenzeller, Keslassy, McKeown: Sizing Router Buffers. SIGCOMM 2004",
    specs=Path(__file__).resolve().parents[3] / "experiments/specs/appenzeller2004",
    figures=(
        one_flow.FIGURE_1, one_flow.FIGURE_2, one_flow.FIGURE_3, sawteeth.FIGURE_4, sawteeth.FIGURE_5,
        sawteeth.FIGURE_6, two_flows.FIGURE_7, aggregate.FIGURE_8, aggregate.FIGURE_9, short_flows.FIGURE_10,
        least_buffers.FIGURE_11, short_flows.FIGURE_12, least_buffers.FIGURE_13, least_buffers.FIGURE_14,
        router.FIGURE_15, short_flows.FIGURE_16, aggregate.SECTION_3, clocks.figure(("one-flow", "short-queue", "gsr")),
    ),
    telling=("figure_11",),
)  # fmt: skip
