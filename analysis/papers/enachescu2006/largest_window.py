# SPDX-License-Identifier: MIT
"""Utilization of paced Reno against the largest window W, with a constant buffer and with one of 5 log10 W packets,
rounded up: Figure 6, and section IV-A for two links in proportion to N W.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from analysis.figures.common import BLUE, ORANGE, Data
from analysis.papers import curves, look
from analysis.papers.curves import Curve, Panel, Shape
from analysis.papers.enachescu2006 import model
from analysis.papers.facts import Fact, each, exactly
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.series import grouped, series
from analysis.theory import tiny_buffers

CONSTANT, LOGARITHMIC = "B = 5", "B = 5 log₁₀ W"
RULES: dict[str, tuple[Callable[[int], int], str, str]] = {  # the buffer as a function of W, shade, marker
    CONSTANT: (lambda window: 5, ORANGE, "o"),
    LOGARITHMIC: (lambda window: math.ceil(tiny_buffers.log_window_buffer(window) - 1e-9), BLUE, "s"),
}


def by_rule(runs: list[PaperRun], predicted: Callable[[PaperRun], float]) -> Panel:
    """Estimates of u by W, and the prediction for the same buffers, for each rule."""
    of_rules = {}
    for name, (buffer, shade, marker) in RULES.items():
        of_rule = [run for run in runs if run["buffer_packets"] == buffer(run["window_packets"])]
        theory = {run["window_packets"]: predicted(run) for run in of_rule}
        of_rules[name] = Curve(series(of_rule, "window_packets", model.USED), shade, marker, "-", theory)
    return Panel(of_rules)


# Figure 6 -------------------------------------------------------------------------------------------------------------

CAPTION_6 = (
    "utilization of paced Reno against the largest window W, with 5 packets of buffer and with 5 log₁₀ W, at a peak "
    "load of 0.52, 90 to 110 ms: 10 flows, as in the paper, and 100. Ten evenly paced flows never queue more than 10 "
    "packets: with B of 10 or more they lose none, whatever W. Dashed: the TCP equation with M/D/1/B."
)
FLOWS_OF_PAPER = 10
PRINTED = {CONSTANT: "drops significantly", LOGARITHMIC: "about 0.5"}  # for the largest window


def _by_flows(runs: PaperRuns) -> Data:
    """u at each window by each rule; the paper has numbers for the smallest and the largest window."""
    panels, rows = {}, []
    selected = runs.select("window", needs=("window_packets",), pacing="exact")
    for n, of in grouped(selected, "flows").items():
        panels[f"{n} flows"] = panel = by_rule(of, _predicted)
        for name, curve in panel.curves.items():
            printed: dict[float, str] = {}
            last = None
            if n == FLOWS_OF_PAPER and curve.points:
                first, last = min(curve.points), max(curve.points)
                printed = {first: "about 0.5", last: PRINTED[name]}
            what = f"{n} flows, {name}, W = {{}}: u"
            rows += each(curve.points, what, printed.get, curve.theory.get, headline={last: True}.get)
    return {"panels": panels, "facts": rows}


def _predicted(run: PaperRun) -> float:
    return model.used_with_equal(run["flows"], model.bdp(run), run["buffer_packets"], run["window_packets"])


FIGURE_6 = curves.figure(
    "figure_06", CAPTION_6, ("window",), _by_flows,
    Shape(model.WINDOW_AXIS, size_in=(look.PAGE_IN, 2.5), y={"bottom": 0, "top": 0.65}, legend={"loc": "lower left"}),
)  # fmt: skip

# Section IV-A ---------------------------------------------------------------------------------------------------------

CAPTION = (
    "utilization of 40 paced flows against their largest window W. Left: a peak load of 2 (congested); right: a peak "
    "load of 0.5 (over-provisioned). Dashed: the TCP equation with M/D/1/B."
)
CONGESTED, OVER = "C = N W / (2 RTT)", "C = 2 N W / RTT"


def _by_link(runs: PaperRuns) -> Data:
    """The exponent of W with a constant buffer, and u at each window by each rule."""
    selected = runs.select("scaling", needs=("window_packets",))
    panels: dict[str, Panel] = {}
    rows: list[Fact] = []
    for link in (CONGESTED, OVER):
        of_link = [run for run in selected if (model.peak_load(run) > 1) == (link == CONGESTED)]
        panels[link] = panel = by_rule(of_link, _used)
        for name, curve in panel.curves.items():
            rows += each(curve.points, f"{link}, {name}, W = {{}}: u", predicted=curve.theory.get)
        constant = panel.curves[CONSTANT]
        if len(constant.points) > 2:
            slope = _exponent({window: point.value for window, point in constant.points.items()})
            printed, theory = "u tends to 0" if link == OVER else "", _exponent(constant.theory)
            what = f"{link}, {CONSTANT}: exponent of W (−2/(B + 3) = −0.25 for large W without a cap)"
            rows.insert(0, Fact(what, printed, theory, exactly(slope), "", headline=link == OVER, over_points=True))
    return {"panels": panels, "facts": rows}


def _used(run: PaperRun) -> float:
    window, load = run["window_packets"], model.peak_load(run)
    return model.used_with_equal(1, window / load, run["buffer_packets"], window)


def _exponent(used: Mapping[float, float]) -> float:
    """The exponent p of u ~ W^p, by least squares of the logarithms."""
    return float(np.polyfit(np.log(list(used)), np.log(list(used.values())), 1)[0])


SCALING = curves.figure(
    "scaling", CAPTION, ("scaling",), _by_link,
    Shape(model.WINDOW_AXIS, size_in=(look.PAGE_IN, 2.5), legend={"loc": "lower left"}),
)  # fmt: skip
