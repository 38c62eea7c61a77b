# SPDX-License-Identifier: MIT
"""Figure 4: utilization of paced Reno against the buffer, for 20 to 200 flows."""

from __future__ import annotations

from analysis.figures.common import Data
from analysis.papers import look
from analysis.papers.enachescu2006 import model, panel
from analysis.papers.facts import Fact
from analysis.papers.paper import PaperFigure
from analysis.papers.series import differences, grouped, series
from analysis.papers.stored_runs import StoredRuns

CAPTION = (
    "utilization of paced Reno against the buffer, 20 to 200 flows on 100 Mb/s, windows of 32 packets at most. Dashed: "
    "the TCP equation with M/D/1/B."
)
STEM = "paced-flows"
WINDOW = 32
PRINTED = {20: "about 0.5", 40: "0.8 to 0.9", 100: "not below 0.8", 200: "not below 0.8"}
FACTS_AT = (10, 15)  # packets of buffer
FEW, MANY = 40, (100, 200)
SIGN_UP_TO, SIGN_FROM = 12, 15  # packets of buffer: in the paper more flows raise u up to 12, and lower u from 15 on


def prepare(runs: StoredRuns) -> Data:
    """Estimates by flows and buffer."""
    selected = runs.select(STEM, needs=("window_packets",), pacing="exact")
    curves = {n: series(of, "buffer_packets", "utilization_mean") for n, of in grouped(selected, "flows").items()}
    return {
        "provenance": runs.provenance(),
        "curves": curves,
        "more": {n: differences(selected, "flows", n, FEW, "buffer_packets", "utilization_mean") for n in MANY},
        "bdp": model.bdp(selected[0]) if selected else None,
    }


def draw(data: Data) -> look.Figure:
    """One panel, buffers logarithmic."""
    figure, ax = look.new_panel(look.PAGE_IN * 0.72, 3.0)
    curves = _curves(data)
    if not panel.draw(ax, curves, "buffer B (packets)"):
        return figure
    panel.draw_ns3(ax, curves, _curves(data.get("ns3", {"curves": {}})))
    for n, curve in zip(data["curves"], curves, strict=True):
        points = [(b, model.used_with_equal(n, data["bdp"], b, WINDOW)) for b in curve.points]
        panel.model_line(ax, points, None, curve.shade, model.EQUAL)
    ax.legend(loc="lower right", frameon=False)
    return figure


def _curves(data: Data) -> list[panel.Curve]:
    return panel.numbered({f"N = {n}": of for n, of in data["curves"].items()})


def facts(data: Data) -> list[Fact]:
    """u with 10 and 15 packets beside M/D/1/B, and u of 100 and 200 flows minus u of 40."""
    rows = []
    for n, points in data["curves"].items():
        for buffer in FACTS_AT:
            if buffer in points:
                predicted = model.used_with_equal(n, data["bdp"], buffer, WINDOW)
                said = PRINTED.get(n, "") if buffer == FACTS_AT[0] else "0.75 or more" if n > 20 else ""
                what = f"N = {n}, B = {buffer}: u"
                rows.append(Fact(what, said, predicted, points[buffer], "", headline=n == 100))
    for n, points in data["more"].items():
        for buffer, difference in points.items():
            said = "more" if buffer <= SIGN_UP_TO else "less" if SIGN_FROM <= buffer <= 100 else ""
            rows.append(Fact(f"u of {n} flows minus u of {FEW} flows, B = {buffer}", said, None, difference, ""))
    return rows


FIGURE = PaperFigure("figure_04", CAPTION, (STEM,), prepare, draw, facts)
