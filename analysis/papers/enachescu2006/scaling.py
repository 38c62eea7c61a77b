# SPDX-License-Identifier: MIT
"""Section IV-A: utilization as a function of the largest window if the link is C = N W / (2 RTT) or 2 N W / RTT."""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.figures.common import Data
from analysis.papers import look
from analysis.papers.enachescu2006 import model, panel
from analysis.papers.enachescu2006.rules import CONSTANT, SHADES, by_rule
from analysis.papers.facts import Fact, exactly
from analysis.papers.paper import PaperFigure
from analysis.papers.stored_runs import StoredRun, StoredRuns

CAPTION = (
    "utilization of 40 paced flows against their largest window W. Left: a peak load of 2 (congested); right: a peak "
    "load of 0.5 (over-provisioned). Dashed: the TCP equation with M/D/1/B."
)
STEM = "scaling"
CONGESTED, OVER = "C = N W / (2 RTT)", "C = 2 N W / RTT"


def prepare(runs: StoredRuns) -> Data:
    """For each link and rule: estimates by W."""
    selected = runs.select(STEM, needs=("window_packets",))
    panels: dict[str, Any] = {}
    for name in (CONGESTED, OVER):
        of = [run for run in selected if (model.peak_load(run) > 1) == (name == CONGESTED)]
        panels[name] = by_rule(of, _used)
    return {"provenance": runs.provenance(), "panels": panels}


def _used(run: StoredRun) -> float:
    window, load = run["window_packets"], model.peak_load(run)
    return model.used_with_equal(1, window / load, run["buffer_packets"], window)


def draw(data: Data) -> look.Figure:
    """A panel for each link."""
    figure, axes = look.new_figure(look.PAGE_IN, 2.5, 1, 2, sharey=True)
    for ax, (link, rules) in zip(axes[0], data["panels"].items(), strict=True):
        ax.set_title(link, loc="left", pad=3)
        curves = _curves(rules)
        if not panel.draw(ax, curves, "largest window W (packets)"):
            continue
        panel.draw_ns3(ax, curves, _curves(data.get("ns3", {}).get("panels", {}).get(link, {})))
        for name, of in rules.items():
            panel.model_line(ax, list(of["equal"].items()), None, SHADES[name][0], model.EQUAL)
    look.legend(axes[0, 0], loc="lower left")
    return figure


def _curves(rules: Data) -> list[panel.Curve]:
    return [panel.Curve(name, *SHADES[name], of["points"]) for name, of in rules.items()]


def facts(data: Data) -> list[Fact]:
    """The exponent of W with a constant buffer, and u at each window by each rule."""
    rows = []
    for link, rules in data["panels"].items():
        for name, of in rules.items():
            for window, point in of["points"].items():
                rows.append(Fact(f"{link}, {name}, W = {window}: u", "", of["equal"][window], point, ""))
        measured, theory = rules[CONSTANT]["points"], rules[CONSTANT]["equal"]
        if len(measured) > 2:
            slope = _exponent({window: point.value for window, point in measured.items()})
            printed = "u tends to 0" if link == OVER else ""
            what = f"{link}, {CONSTANT}: exponent of W (−2/(B + 3) = −0.25 for large W without a cap)"
            rows.insert(
                0, Fact(what, printed, _exponent(theory), exactly(slope), "", headline=link == OVER, over_points=True)
            )
    return rows


def _exponent(used: dict[int, float]) -> float:
    """The exponent p of u ~ W^p, by least squares of the logarithms."""
    return float(np.polyfit(np.log(list(used)), np.log(list(used.values())), 1)[0])


FIGURE = PaperFigure("scaling", CAPTION, (STEM,), prepare, draw, facts)
