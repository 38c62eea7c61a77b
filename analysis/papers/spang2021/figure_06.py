# SPDX-License-Identifier: MIT
"""Figure 6: distributions of the queue's depth for more and more flows of other algorithms than Reno, B = 0.8 BDP. The
region below 2 BDP/sqrt(n) under a full buffer is shaded, as the paper shades it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.figures.common import Data
from analysis.papers import look as common
from analysis.papers.series import ALGORITHMS
from analysis.papers.spang2021 import depths

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from analysis.papers.look import Fact
    from analysis.papers.stored_runs import Runs

SWEEPS = ("others-depth",)
RULE = 2.0
SHOWN = tuple(cc for cc in ALGORITHMS if cc != "reno")
# Caption: "2BDP/sqrt(n), which tends to overestimate the required buffer"
PAPER = "2 BDP/√n tends to overestimate it"


def prepare(runs: Runs) -> Data:
    """One panel for each algorithm; of those without runs, why."""
    panels = {}
    for cc in SHOWN:
        found = runs.select(SWEEPS[0], needs=depths.NEEDS, cc=cc)
        panels[cc] = depths.panel(found, RULE) if found else {"absent": common.absence(runs, SWEEPS[0], cc)}
    return {"panels": panels, "provenance": runs.provenance()}


def draw(data: Data) -> Figure:
    """Panels side by side."""
    figure, axes = common.new_figure(common.PAGE_IN, 2.9, 1, len(SHOWN))
    for ax, (cc, panel) in zip(axes[0], data["panels"].items(), strict=True):
        ax.set_title(common.name(cc), color=common.color(cc), loc="left", pad=3)
        if "absent" in panel:
            common.absent(ax, panel["absent"].replace(", ", ",\n"))
            ax.set_xticks([])
            ax.set_yticks([])
            continue
        depths.draw(ax, panel, common.color(cc))
    axes[0, 0].set_ylabel("flows")
    depths.legend(figure, RULE)
    common.footer(figure, data["provenance"])
    return figure


def facts(data: Data) -> list[Fact]:
    """For every algorithm and number of flows."""
    rows = []
    for cc, panel in data["panels"].items():
        if "absent" in panel:
            rows.append(common.Fact(panel["absent"].replace("\n", " "), "", None, None, ""))
            continue
        rows += depths.facts(panel, f"{common.name(cc)}, B = {panel['buffer'] / panel['bdp']:.2g} BDP", PAPER)
    return rows
