# SPDX-License-Identifier: MIT
"""Figure 12: the least buffer for which short flows take at most 12.5 % longer than with a buffer without a limit."""

from __future__ import annotations

from analysis.figures.common import BLACK, BLUE, GREY, Data
from analysis.papers import brackets, look
from analysis.papers.appenzeller2004 import short_flows
from analysis.papers.brackets import Bracket
from analysis.papers.facts import Fact
from analysis.papers.paper import PaperFigure
from analysis.papers.series import grouped
from analysis.papers.stored_runs import StoredRun, StoredRuns
from analysis.statistics import Interval, mean_interval
from analysis.theory import short_flows as theory

CAPTION = (
    "the least buffer with which the mean transfer time is at most 1.125 times that without a limit, against the "
    "length of a flow; load 0.8, 80 Mb/s. Lines: buffers for P(Q ≥ B) = 0.025, by second order (the paper's) and "
    "exactly."
)
STEM = "short-buffer"
SLOWER, RISK = 1.125, 0.025
ASKED = (0.5, 1.3)  # of the second-order model


def prepare(runs: StoredRuns) -> Data:
    """Brackets by length, and how much longer flows take with each buffer."""
    groups = grouped(runs.select(STEM), short_flows.length)
    slower = {length: _slower(of) for length, of in groups.items()}
    return {"provenance": runs.provenance(), "slower": {length: each for length, each in slower.items() if each}}


def _slower(runs: list[StoredRun]) -> dict[int, float]:
    """Mean transfer time over that without a limit, by buffer; empty without runs that have no limit."""
    times = {
        buffer: mean_interval(short_flows.transfer_s(run) for run in of)
        for buffer, of in grouped(runs, "buffer_packets").items()
    }
    base = times.pop(short_flows.UNLIMITED_PACKETS, None)
    return {} if base is None else {buffer: time.value / base.value for buffer, time in times.items() if time}


def _bracket(slower: dict[int, float]) -> Bracket:
    return brackets.bracket({buffer: times <= SLOWER for buffer, times in slower.items()})


def draw(data: Data) -> look.Figure:
    """One panel."""
    figure, ax = look.new_panel(look.COLUMN_IN, 2.8)
    lengths = list(data["slower"])
    if not lengths:
        return look.absent(ax)
    for order, style, shade, text in ((2, "--", GREY, "second order"), (None, "-", BLACK, "exact")):
        model = [_model(length, order) for length in lengths]
        ax.plot(lengths, model, style, color=shade, linewidth=0.9, label=text)
    for length, slower in data["slower"].items():
        brackets.draw(ax, length, _bracket(slower), BLUE)
    for length, slower in data.get("ns3", {}).get("slower", {}).items():
        brackets.draw_ns3(ax, length, _bracket(slower), BLUE)
    ax.plot([], [], "o", color=BLUE, label="measured")
    ax.set_xlabel("packets of a flow")
    ax.set_ylabel("least buffer (packets)")
    ax.set_xlim(0, 1.05 * max(lengths))
    ax.set_ylim(bottom=0)
    ax.legend(loc="upper left", frameon=False)
    return figure


def _model(length: int, order: int | None) -> float:
    return theory.buffer_for_tail(short_flows.LOAD, theory.slow_start_bursts(length), RISK, order=order)


def facts(data: Data) -> list[Fact]:
    """Least buffers beside the second-order model, and their share of it."""
    rows, shares = [], []
    for length, slower in data["slower"].items():
        edges, model = _bracket(slower), _model(length, 2)
        measured = edges.interval()
        rows.append(Fact(f"{length} packets: least buffer", "", model, measured, "packets", "", edges.open_text()))
        if measured is not None:
            shares.append(measured.value / model)
    if shares:
        what = (
            f"least buffer over the second-order model ({len(shares)} lengths; expected {ASKED[0]:g} to {ASKED[1]:g})"
        )
        estimate = Interval(sum(shares) / len(shares), min(shares), max(shares), len(shares))
        rows.insert(0, Fact(what, "1", 1.0, estimate, "", headline=True, over_points=True))
    return rows


FIGURE = PaperFigure("figure_12", CAPTION, (STEM,), prepare, draw, facts)
