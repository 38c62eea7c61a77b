# SPDX-License-Identifier: MIT
"""Theorem 1: with B = log_{1/rho}(W^2 / (2 (1 - theta))) packets, Poisson senders carry at least a share theta of the
peak load.
"""

from __future__ import annotations

from analysis.figures.common import BLACK, GREY, Data
from analysis.papers import look
from analysis.papers.enachescu2006 import model, panel
from analysis.papers.enachescu2006.senders import NAMES, PACED, POISSON, sender
from analysis.papers.facts import Fact
from analysis.papers.paper import PaperFigure
from analysis.papers.series import series
from analysis.papers.stored_runs import StoredRuns
from analysis.theory import tiny_buffers

CAPTION = (
    "the share of the peak load that 50 flows carry, against the buffer; windows of 64 packets at most, a peak load of "
    "0.5. Lines: the theorem's bound, in which a loss costs W²/2 packets, and the same bound with W²/8, the cost of "
    "halving the window."
)
STEM, FULL_SCALE = "theorem-1", "ten-gigabit"
LOAD, WINDOW, EXAMPLE = 0.5, 64, 15
HALVING = 4.0  # (W^2 / 2) / (W^2 / 8)


def bound(buffer: float, cheaper: float = 1.0) -> float:
    """theta by Theorem 1; `cheaper` divides the packets that a loss costs."""
    return 1 - tiny_buffers.drop_bound(LOAD, buffer) * WINDOW**2 / 2 / cheaper


def prepare(runs: StoredRuns) -> Data:
    """theta by sender and buffer, and at 10 Gb/s."""
    selected, full = (runs.select(stem, needs=("window_packets",)) for stem in (STEM, FULL_SCALE))
    curves = {
        name: series((run for run in selected if sender(run) == name), "buffer_packets", model.effective_utilization)
        for name in (POISSON, PACED)
    }
    at_scale = [
        (NAMES[sender(run)], run["flows"], run["rate_bps"] / 1e9, run["buffer_packets"], of)
        for run in full
        if (of := series([run], "flows", model.effective_utilization))
    ]
    return {"provenance": runs.provenance(), "curves": curves, "at_scale": at_scale}


def draw(data: Data) -> look.Figure:
    """One panel."""
    figure, ax = look.new_panel(look.PAGE_IN * 0.72, 2.8)
    curves = panel.by_sender(data["curves"])
    if not panel.draw(ax, curves, "buffer B (packets)", log=False):
        return figure
    ax.set_ylabel("share of the peak load θ")
    buffers = [step / 10 for step in range(30, 205)]
    for cheaper, shade, text in ((1.0, BLACK, "Theorem 1"), (HALVING, GREY, "halving costs W²/8")):
        line = [(buffer, bound(buffer, cheaper)) for buffer in buffers]
        panel.model_line(ax, [point for point in line if point[1] >= 0], text, shade)
    ax.legend(loc="lower right", frameon=False)
    return figure


def facts(data: Data) -> list[Fact]:
    """theta at each buffer beside the lower bound; then at full scale."""
    rows = []
    for name, points in data["curves"].items():
        for buffer, estimate in points.items():
            least = max(bound(buffer), 0.0)
            said = "0.9 or more" if buffer == EXAMPLE else ""
            what = f"{NAMES[name]}, B = {buffer}: θ (the prediction is a lower bound)"
            rows.append(Fact(what, said, least or None, estimate, "", headline=buffer == EXAMPLE))
    for name, flows, gbps, buffer, of in data["at_scale"]:
        what = f"{name}, {flows} flows at {gbps:g} Gb/s, B = {buffer}: θ"
        bdp = 12_500 * gbps
        rules = f"the rules ask for {bdp:,.0f} and {bdp / flows**0.5:,.0f} packets"
        rows.append(Fact(f"{what} ({rules})", "0.9 or more", bound(buffer), next(iter(of.values())), ""))
    return rows


FIGURE = PaperFigure("theorem_1", CAPTION, (STEM, FULL_SCALE), prepare, draw, facts)
