# SPDX-License-Identifier: MIT
"""Lemma 2: Poisson packets of one size are dropped with a probability of rho^B at most."""

from __future__ import annotations

from analysis.figures.common import BLACK, BLUE, GREY, Data
from analysis.papers import look
from analysis.papers.facts import Fact
from analysis.papers.paper import PaperFigure
from analysis.papers.series import loss, series
from analysis.papers.stored_runs import StoredRuns
from analysis.theory import queues, tiny_buffers

CAPTION = (
    "dropped share of Poisson packets of one size at a load of 0.75, against the buffer. Lines: the lemma's bound ρ^B, "
    "and M/D/1/B."
)
STEM = "drops"
LOAD = 0.75


def prepare(runs: StoredRuns) -> Data:
    """The dropped share by buffer."""
    return {
        "points": series(runs.select(STEM, traffic="open-loop"), "buffer_packets", loss),
        "provenance": runs.provenance(),
    }


def draw(data: Data) -> look.Figure:
    """One panel, shares logarithmic."""
    figure, ax = look.new_panel(look.COLUMN_IN, 2.6)
    points = data["points"]
    if not points:
        return look.absent(ax)
    ax.set_yscale("log")
    buffers = list(points)
    ax.plot(buffers, [tiny_buffers.drop_bound(LOAD, b) for b in buffers], "--", color=GREY, label="bound ρ^B")
    ax.plot(buffers, [queues.md1_loss(LOAD, b) for b in buffers], color=BLACK, linewidth=0.7, label="M/D/1/B")
    look.interval_bars(ax, buffers, points.values(), BLUE, label="measured")
    ax.set_xlabel("buffer B (packets)")
    ax.set_ylabel("dropped share")
    ax.legend(loc="lower left", frameon=False)
    return figure


def facts(data: Data) -> list[Fact]:
    """The dropped share at each buffer: the bound is in the paper's column, M/D/1/B is the prediction."""
    rows = []
    for buffer, of in data["points"].items():
        bound = f"below {tiny_buffers.drop_bound(LOAD, buffer):.3g}"
        rows.append(Fact(f"B = {buffer}: dropped share", bound, queues.md1_loss(LOAD, buffer), of, ""))
    return rows


FIGURE = PaperFigure("lemma_2", CAPTION, (STEM,), prepare, draw, facts)
