# SPDX-License-Identifier: MIT
"""Poisson packets and a small buffer. Lemma 2: packets of one size are dropped with a probability of rho^B at most.
Theorem 1: with B = log_{1/rho}(W^2 / (2 (1 - theta))) packets, Poisson senders carry at least a share theta of the
peak load.
"""

from __future__ import annotations

from analysis.figures.common import BLACK, GREY, Data
from analysis.papers import curves, look
from analysis.papers.curves import Curve, Line, Panel, Shape
from analysis.papers.enachescu2006 import model
from analysis.papers.enachescu2006.model import BUFFER_AXIS, PACED, POISSON, by_sender, sender
from analysis.papers.facts import each
from analysis.papers.paper_runs import PaperRuns
from analysis.papers.series import loss, series
from analysis.theory import queues, tiny_buffers

# Lemma 2 --------------------------------------------------------------------------------------------------------------

CAPTION_OF_DROPS = (
    "dropped share of Poisson packets of one size at a load of 0.75, against the buffer. Lines: the lemma's bound ρ^B, "
    "and M/D/1/B."
)
LOAD_OF_DROPS = 0.75


def _drops(runs: PaperRuns) -> Data:
    """The dropped share at each buffer: the bound is in the paper's column, M/D/1/B is the prediction."""
    points = series(runs.select("drops", traffic="open-loop"), "buffer_packets", loss)
    exact = {buffer: queues.md1_loss(LOAD_OF_DROPS, buffer) for buffer in points}
    bound = {buffer: tiny_buffers.drop_bound(LOAD_OF_DROPS, buffer) for buffer in points}
    lines = [
        Line(list(bound), list(bound.values()), "bound ρ^B", "--", GREY, 0.9, behind=True),
        Line(list(exact), list(exact.values()), "M/D/1/B", behind=True),
    ]
    rows = each(points, "B = {}: dropped share", lambda buffer: f"below {bound[buffer]:.3g}", exact.get)
    return {"panels": {"": Panel({"measured": Curve(points)}, lines)}, "facts": rows}


LEMMA_2 = curves.figure(
    "lemma_2", CAPTION_OF_DROPS, ("drops",), _drops,
    Shape(BUFFER_AXIS, "dropped share", (look.COLUMN_IN, 2.6), log="y", y={}, margin=0, legend={"loc": "lower left"}),
)  # fmt: skip

# Theorem 1 ------------------------------------------------------------------------------------------------------------

CAPTION = (
    "the share of the peak load that 50 flows carry, against the buffer; windows of 64 packets at most, a peak load of "
    "0.5. Lines: the theorem's bound, in which a loss costs W²/2 packets, and the same bound with W²/8, the cost of "
    "halving the window."
)
STEM, FULL_SCALE = "theorem-1", "ten-gigabit"
LOAD, WINDOW, EXAMPLE = 0.5, 64, 15
HALVING = 4.0  # (W^2 / 2) / (W^2 / 8)
BUFFERS = [step / 10 for step in range(30, 205)]


def bound(buffer: float, cheaper: float = 1.0) -> float:
    """theta by Theorem 1; `cheaper` divides the packets that a loss costs."""
    return 1 - tiny_buffers.drop_bound(LOAD, buffer) * WINDOW**2 / 2 / cheaper


def _line(label: str, cheaper: float, shade: str) -> Line:
    points = {buffer: theta for buffer in BUFFERS if (theta := bound(buffer, cheaper)) >= 0}
    return Line(list(points), list(points.values()), label, shade=shade)


def _carried(runs: PaperRuns) -> Data:
    """theta by sender and buffer beside the lower bound; then at 10 Gb/s."""
    selected, full = (runs.select(stem, needs=("window_packets",)) for stem in (STEM, FULL_SCALE))
    of_senders = by_sender(selected, (POISSON, PACED), "buffer_packets", model.effective_utilization)
    rows, said = [], {EXAMPLE: "0.9 or more"}
    for name, curve in of_senders.items():
        least = {buffer: max(bound(buffer), 0.0) or None for buffer in curve.points}
        what = f"{name}, B = {{}}: θ (the prediction is a lower bound)"
        rows += each(curve.points, what, said.get, least.get, headline=said.__contains__)
    for run in full:
        gbps, flows = run["rate_bps"] / 1e9, run["flows"]
        rules = f"the rules ask for {12_500 * gbps:,.0f} and {12_500 * gbps / flows**0.5:,.0f} packets"
        what = f"{sender(run)}, {flows} flows at {gbps:g} Gb/s, B = {{}}: θ ({rules})"
        rows += each(series([run], "buffer_packets", model.effective_utilization), what, "0.9 or more", bound)
    lines = [_line("Theorem 1", 1.0, BLACK), _line("halving costs W²/8", HALVING, GREY)]
    return {"panels": {"": Panel(of_senders, lines)}, "facts": rows}


THEOREM_1 = curves.figure(
    "theorem_1", CAPTION, (STEM, FULL_SCALE), _carried,
    Shape(BUFFER_AXIS, "share of the peak load θ", log="", legend={"loc": "lower right"}),
)  # fmt: skip
