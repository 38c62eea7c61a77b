# SPDX-License-Identifier: MIT
"""Figure 4: distributions of the queue's depth with Reno and three buffers."""

from __future__ import annotations

from analysis.figures import algorithms
from analysis.figures.common import Data
from analysis.papers import look
from analysis.papers.facts import Fact
from analysis.papers.paper import PaperFigure
from analysis.papers.series import bdp, grouped
from analysis.papers.spang2021 import depths, notebook
from analysis.papers.stored_runs import StoredRuns

CAPTION = (
    "distributions of the queue's depth for more and more Reno flows and three buffers. The square root of n rule "
    "says that the queue falls at most BDP/sqrt(n) below full. Shaded, as in the paper's notebook: more than twice as "
    "far below full."
)
SWEEPS = ("reno-depth",)
TIMES = notebook.SHADED  # x BDP/sqrt(n): every version of the notebook shades this; the paper says BDP/sqrt(n)
# The paper's caption: "As the number of flows increases, the queue stays close to its maximum value ... they are a good
# estimate"
PAPER = "BDP/√n is a good estimate"


def prepare(runs: StoredRuns) -> Data:
    """One panel for each buffer, the largest first."""
    by_buffer = grouped(runs.select(SWEEPS[0], needs=depths.NEEDS, cc="reno"), "buffer_packets")
    panels = [
        depths.panel(same_buffer, TIMES, runs.beside) for _, same_buffer in sorted(by_buffer.items(), reverse=True)
    ]
    over = [by_buffer[panel["buffer"]][0]["buffer_packets"] / bdp(by_buffer[panel["buffer"]][0]) for panel in panels]
    return {"panels": panels, "over": over, "provenance": runs.provenance()}


def draw(data: Data) -> look.Figure:
    """Panels side by side, the largest buffer on the left."""
    panels = data["panels"]
    figure, axes = look.new_figure(look.PAGE_IN, 2.9, 1, max(len(panels), 1), sharey=len(panels) > 1)
    if not panels:
        look.absent(axes[0, 0])
    for ax, panel, over in zip(axes[0], panels, data["over"], strict=False):
        depths.draw(ax, panel, algorithms.color("reno"))
        ax.set_title(f"B = {over:.2g} BDP ({panel['buffer']} packets)", loc="left", pad=3)
    axes[0, 0].set_ylabel("Reno flows")
    if panels:
        depths.legend(figure, TIMES, panels)
    return figure


def facts(data: Data) -> list[Fact]:
    """For every buffer and number of flows."""
    rows = []
    for panel, over in zip(data["panels"], data["over"], strict=True):
        rows += depths.facts(panel, f"B = {over:.2g} BDP", PAPER)
    return rows


FIGURE = PaperFigure("figure_04", CAPTION, SWEEPS, prepare, draw, facts)
