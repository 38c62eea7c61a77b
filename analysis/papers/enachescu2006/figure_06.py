# SPDX-License-Identifier: MIT
"""Figure 6: utilization against the largest window, with a constant buffer and with one of 5 log10 W packets."""

from __future__ import annotations

from analysis.figures.common import Data
from analysis.papers import look
from analysis.papers.enachescu2006 import model, panel
from analysis.papers.enachescu2006.rules import CONSTANT, LOGARITHMIC, SHADES, by_rule
from analysis.papers.facts import Fact
from analysis.papers.paper import PaperFigure
from analysis.papers.series import grouped
from analysis.papers.stored_runs import StoredRun, StoredRuns

CAPTION = (
    "utilization of paced Reno against the largest window W, with 5 packets of buffer and with 5 log₁₀ W, at a peak "
    "load of 0.52, 90 to 110 ms: 10 flows, as in the paper, and 100. Ten evenly paced flows never queue more than 10 "
    "packets: with B of 10 or more they lose none, whatever W. Dashed: the TCP equation with M/D/1/B."
)
STEM = "window"
PRINTED = {CONSTANT: "drops significantly", LOGARITHMIC: "about 0.5"}


def prepare(runs: StoredRuns) -> Data:
    """For each number of flows: estimates for both rules by W, and the predictions for the same buffers."""
    panels: dict[int, Data] = {}
    for flows, same in grouped(runs.select(STEM, needs=("window_packets",), pacing="exact"), "flows").items():
        panels[flows] = by_rule(same, _predicted)
    return {"provenance": runs.provenance(), "panels": panels}


def _predicted(run: StoredRun) -> float:
    return model.used_with_equal(run["flows"], model.bdp(run), run["buffer_packets"], run["window_packets"])


def draw(data: Data) -> look.Figure:
    """A panel for each number of flows."""
    panels = data["panels"]
    figure, axes = look.new_figure(look.PAGE_IN, 2.5, 1, max(len(panels), 1), sharey=True)
    if not panels:
        return look.absent(axes[0, 0])
    for ax, (flows, rules) in zip(axes[0], panels.items(), strict=True):
        ax.set_title(f"{flows} flows", loc="left", pad=3)
        curves = _curves(rules)
        panel.draw(ax, curves, "largest window W (packets)")
        panel.draw_ns3(ax, curves, _curves(data.get("ns3", {}).get("panels", {}).get(flows, {})))
        for name, of in rules.items():
            panel.model_line(ax, list(of["equal"].items()), None, SHADES[name][0], model.EQUAL)
        ax.set_ylim(0, 0.65)
    look.legend(axes[0, 0], loc="lower left")
    return figure


def _curves(rules: Data) -> list[panel.Curve]:
    return [panel.Curve(name, *SHADES[name], of["points"]) for name, of in rules.items()]


def facts(data: Data) -> list[Fact]:
    """u at each window by each rule; the paper has numbers for the smallest and the largest window."""
    rows = []
    for flows, rules in data["panels"].items():
        for name, of in rules.items():
            theory = of["equal"]
            for window, point in of["points"].items():
                last = window == max(of["points"])
                what = f"{flows} flows, {name}, W = {window}: u"
                said = PRINTED[name] if last else "about 0.5" if window == min(of["points"]) else ""
                said = said if flows == 10 else ""  # the paper's number of flows
                rows.append(Fact(what, said, theory[window], point, "", headline=last and flows == 10))
    return rows


FIGURE = PaperFigure("figure_06", CAPTION, (STEM,), prepare, draw, facts)
