# SPDX-License-Identifier: MIT
"""Figure 3: utilization against the number of flows; the link's rate is in proportion to that number."""

from __future__ import annotations

from analysis.figures.common import Data
from analysis.papers import look
from analysis.papers.enachescu2006 import model, panel
from analysis.papers.enachescu2006.senders import ACCESS, NAMES, PACED, RENO, sender
from analysis.papers.facts import Fact, exactly
from analysis.papers.paper import PaperFigure
from analysis.papers.series import differences, series
from analysis.papers.stored_runs import StoredRuns

CAPTION = (
    "utilization against the number of flows on a link of 3.2 Mb/s a flow: a peak load of 0.8; 10 packets of buffer, "
    "windows of 32 at most. Lines: the TCP equation with M/M/1/B (dotted) and M/D/1/B (dashed)."
)
STEM = "flows"
BUFFER, WINDOW, PACKETS_A_FLOW = 10, 32, 40.0  # packets; the last is the BDP of a flow's share of the link
PRINTED_CARRIED = {PACED: "more than 0.85", RENO: "about 0.25"}  # the paper's theta
PRINTED = {PACED: "about 0.70", RENO: "about 0.20", ACCESS: "very close to paced"}
PEAK_LOAD = 0.8
MANY = 30  # least N for the prediction, for theta, and for the distance of access links from pacing


def prepare(runs: StoredRuns) -> Data:
    """Estimates by sender and number of flows."""
    selected = runs.select(STEM, needs=("window_packets",))
    curves = {
        name: series((run for run in selected if sender(run) == name), "flows", "utilization_mean")
        for name in (PACED, ACCESS, RENO)
    }
    carried = {
        name: series((run for run in selected if sender(run) == name), "flows", model.effective_utilization)
        for name in PRINTED_CARRIED
    }
    return {"provenance": runs.provenance(), "curves": curves, "carried": carried,
            "apart": differences(selected, sender, ACCESS, PACED, "flows", "utilization_mean")}  # fmt: skip


def draw(data: Data) -> look.Figure:
    """One panel, numbers of flows logarithmic."""
    figure, ax = look.new_panel(look.PAGE_IN * 0.72, 2.8)
    curves = panel.by_sender(data["curves"])
    if not panel.draw(ax, curves, "flows N"):
        return figure
    panel.draw_ns3(ax, curves, panel.by_sender(data.get("ns3", {}).get("curves", {})))
    flows = sorted({n for curve in curves for n in curve.points})
    for name, used in model.MODELS.items():
        height = used(1, PACKETS_A_FLOW, BUFFER, WINDOW)
        panel.model_line(ax, [(flows[0], height), (flows[-1], height)], name, name=name)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure


def facts(data: Data) -> list[Fact]:
    """u and theta of each sender by number of flows; the largest distance of access links from pacing."""
    rows = []
    predicted = model.used_with_equal(1, PACKETS_A_FLOW, BUFFER, WINDOW)
    for name, points in data["curves"].items():
        for n, estimate in points.items():
            what = f"{NAMES[name]}, N = {n}: u"
            # Evenly paced flows queue at most one packet each, so no packet is lost if N <= B.
            theory = None if name != PACED else predicted if n >= MANY else PEAK_LOAD if n <= BUFFER else None
            rows.append(Fact(what, PRINTED[name], theory, estimate, "", headline=n == 100))
    for name, points in data["carried"].items():
        for n, estimate in points.items():
            if n >= MANY:
                what = f"{NAMES[name]}, N = {n}: share of the peak load, θ"
                rows.append(Fact(what, PRINTED_CARRIED[name], None, estimate, ""))
    apart = [abs(point.value) for n, point in data["apart"].items() if n >= MANY]
    if apart:
        what = f"largest distance of access links from pacing, N of {MANY} or more"
        rows.append(Fact(what, "very close", 0.0, exactly(max(apart)), "", over_points=True))
    return rows


FIGURE = PaperFigure("figure_03", CAPTION, (STEM,), prepare, draw, facts)
