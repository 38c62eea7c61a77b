# SPDX-License-Identifier: MIT
"""Figure 1: utilization against the buffer, Reno and paced Reno."""

from __future__ import annotations

from analysis.figures.common import BLACK, GREY, Data, level
from analysis.papers import brackets, look
from analysis.papers.enachescu2006 import model, panel
from analysis.papers.enachescu2006.senders import NAMES, PACED, RENO, sender
from analysis.papers.facts import Fact
from analysis.papers.paper import PaperFigure
from analysis.papers.series import Series, differences, grouped, series
from analysis.papers.stored_runs import StoredRun, StoredRuns

CAPTION = (
    "utilization against the buffer, 40 flows with windows of 32 packets at most on 100 Mb/s, 90 to 110 ms. Lines: the "
    "TCP equation with the losses of M/M/1/B (dotted) and of M/D/1/B (dashed)."
)
STEM = "buffer"
FLOWS, WINDOW = 40, 32
BDP = 1250
ENOUGH = 0.8  # the level at which the paper compares buffers
MODEL_BUFFERS = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 30, 40, 60, 100, 200, 400, 1250)


def prepare(runs: StoredRuns) -> Data:
    """Estimates by sender and buffer, for 40 flows and for fewer."""
    selected = runs.select(STEM, needs=("window_packets",))
    by_flows = grouped(selected, "flows")
    most = by_flows.get(FLOWS, [])
    fewer = {flows: _by_sender(of) for flows, of in by_flows.items() if flows != FLOWS}
    loads = {flows: model.peak_load(of[0]) for flows, of in by_flows.items()}
    return {
        "provenance": runs.provenance(),
        "curves": _by_sender(most),
        "brackets": {
            name: brackets.of_utilization((run for run in most if sender(run) == name), ENOUGH)
            for name in (RENO, PACED)
        },
        "fewer": fewer,
        "loads": loads,
        "bdp": model.bdp(most[0]) if most else None,
        "apart": differences(most, sender, PACED, RENO, "buffer_packets", "utilization_mean"),
    }


def _by_sender(runs: list[StoredRun]) -> dict[str, Series]:
    return {
        name: series((run for run in runs if sender(run) == name), "buffer_packets", "utilization_mean")
        for name in (RENO, PACED)
    }


def draw(data: Data) -> look.Figure:
    """One panel, buffers logarithmic."""
    figure, ax = look.new_panel(look.PAGE_IN * 0.72, 3.0)
    curves = panel.by_sender(data["curves"])
    if not panel.draw(ax, curves, "buffer B (packets)"):
        return figure
    panel.draw_ns3(ax, curves, panel.by_sender(data.get("ns3", {}).get("curves", {})))
    for name, used in model.MODELS.items():
        points = [(buffer, used(FLOWS, data["bdp"], buffer, WINDOW)) for buffer in MODEL_BUFFERS]
        panel.model_line(ax, points, name, name=name)
    level(ax, ENOUGH, "", GREY, ":", look.LABEL_POINTS)
    ax.axvline(data["bdp"], color=BLACK, linewidth=0.6)
    look.note(ax, "BDP", (data["bdp"], 0.05), (-22, 0))
    ax.legend(loc="lower right", bbox_to_anchor=(0.93, 0.08), frameon=False)
    return figure


def facts(data: Data) -> list[Fact]:
    """u with 10 packets of buffer, the least buffers for 80 %, and the difference between both senders with a BDP; then
    fewer flows.
    """
    rows = []
    bdp, paced, reno = data["bdp"], data["curves"][PACED], data["curves"][RENO]
    if bdp is None:
        return []
    if 10 in paced:
        equal = model.used_with_equal(FLOWS, bdp, 10, WINDOW)
        rows.append(Fact("paced Reno, B = 10: u", "more than 0.8", equal, paced[10], "", headline=True))
    if 10 in reno:
        rows.append(Fact("Reno, B = 10: u", "", None, reno[10], ""))
    for name, printed in ((RENO, "about 100"), (PACED, "about 10")):
        edges = data["brackets"][name]
        what = f"{NAMES[name]}: least buffer for u of {ENOUGH:g} or more"
        rows.append(
            Fact(what, printed, None, edges.interval(), "packets", none=edges.open_text(), headline=name == RENO)
        )
    if BDP in data["apart"]:
        what = f"u of paced Reno minus u of Reno, B = {BDP} (a BDP)"
        rows.append(Fact(what, "no difference", 0.0, data["apart"][BDP], ""))
    for flows, by_sender in data["fewer"].items():
        for name, points in by_sender.items():
            for buffer, estimate in points.items():
                what = f"{NAMES[name]}, N = {flows}, B = {buffer}: u"
                offered = min(data["loads"][flows], 1.0) if buffer >= BDP else None
                rows.append(Fact(what, "", offered, estimate, ""))
    return rows


FIGURE = PaperFigure("figure_01", CAPTION, (STEM,), prepare, draw, facts)
