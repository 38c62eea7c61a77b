# SPDX-License-Identifier: MIT
"""Figure 6: distributions of the queue's depth with other algorithms than Reno."""

from __future__ import annotations

import textwrap
from functools import partial

from analysis.figures import algorithms
from analysis.figures.common import Data
from analysis.papers import look
from analysis.papers.facts import Fact, absent
from analysis.papers.paper import PaperFigure
from analysis.papers.spang2021 import depths, notebook
from analysis.papers.stored_runs import StoredRuns

CAPTION = (
    "distributions of the queue's depth for more and more flows of algorithms other than Reno, B = 0.8 BDP. Shaded, as "
    "in the paper: more than 2 BDP/sqrt(n) below full."
)
SWEEPS = ("others-depth",)
TIMES = notebook.SHADED
COLUMN = 16  # characters that fit into a column
# The paper's caption: "2BDP/sqrt(n), which tends to overestimate the required buffer"
PAPER = "2 BDP/√n tends to overestimate it"


def prepare(runs: StoredRuns) -> Data:
    """One panel for each algorithm; for an algorithm without runs, the reason."""
    others = [cc for cc in runs.paper.algorithms if cc != "reno"]
    panels = runs.by_algorithm(
        SWEEPS[0], partial(depths.panel, times=TIMES, beside=runs.beside), ccs=others, needs=depths.NEEDS
    )
    return {"panels": panels, "provenance": runs.provenance()}


def draw(data: Data) -> look.Figure:
    """Panels side by side."""
    figure, axes = look.new_figure(look.PAGE_IN, 2.9, 1, len(data["panels"]))
    for ax, (cc, panel) in zip(axes[0], data["panels"].items(), strict=True):
        ax.set_title(algorithms.name(cc), color=algorithms.color(cc), loc="left", pad=3)
        if "absent" in panel:
            look.absent(ax, text=textwrap.fill(panel["absent"], COLUMN))
            ax.set_xticks([])
            ax.set_yticks([])
            continue
        depths.draw(ax, panel, algorithms.color(cc))
        ax.set_xlabel("depth (packets)")
    axes[0, 0].set_ylabel("flows")
    depths.legend(figure, TIMES, [panel for panel in data["panels"].values() if "absent" not in panel])
    return figure


def facts(data: Data) -> list[Fact]:
    """For every algorithm and number of flows."""
    rows = []
    for cc, panel in data["panels"].items():
        if "absent" in panel:
            rows.append(absent(panel["absent"]))
            continue
        rows += depths.facts(panel, f"{algorithms.name(cc)}, B = {panel['buffer'] / panel['bdp']:.2g} BDP", PAPER)
    return rows


FIGURE = PaperFigure("figure_06", CAPTION, SWEEPS, prepare, draw, facts)
