# SPDX-License-Identifier: MIT
"""Figure 12: the least buffer for which short flows take at most 12.5 % longer than with an unlimited buffer; against
the length of a flow, and for flows of 14 packets against the link.
"""

from __future__ import annotations

from typing import Any

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
    "the least buffer with which the mean transfer time is at most 1.125 times the mean with an unlimited buffer, "
    "against the length of a flow (left; load 0.8, 80 Mb/s, mean RTT 100 ms), and for flows of 14 packets against rate "
    "and mean RTT (right). Lines: buffers for P(Q ≥ B) = 0.025, by second order (the paper's) and exactly; they depend "
    "on neither rate nor RTT."
)
STEM, LINKS = "short-buffer", "short-buffer-links"
LENGTH_ON_LINKS = 14  # packets
SLOWER, RISK = 1.125, 0.025
MODELS = ((2, "--", GREY, "second order"), (None, "-", BLACK, "exact"))  # order, line style, color, name
ASKED = (0.5, 1.3)  # expected share of the second-order model


def prepare(runs: StoredRuns) -> Data:
    """Relative transfer times (see _slower) by length and buffer, and by (rate in Mb/s, mean RTT in ms) and buffer."""
    groups = grouped(runs.select(STEM), short_flows.length)
    on_links = [*groups.get(LENGTH_ON_LINKS, []), *runs.select(LINKS)]
    return {
        "provenance": runs.provenance(),
        "slower": _without_empty(groups),
        "links": _without_empty(grouped(on_links, _link)),
    }


def _link(run: StoredRun) -> tuple[int, int]:
    """(printed rate in Mb/s, mean RTT in ms)."""
    spec = run.experiment
    return short_flows.printed_mbps(run), round((spec.rtt_ns + (spec.rtt_spread_ns or 0) / 2) / 1e6)


def _without_empty(groups: dict[Any, list[StoredRun]]) -> dict[Any, dict[int, float]]:
    return {key: slower for key, runs in groups.items() if (slower := _slower(runs))}


def _slower(runs: list[StoredRun]) -> dict[int, float]:
    """Mean transfer time / mean with an unlimited buffer, by buffer. Empty if no run has an unlimited buffer."""
    times = {
        buffer: mean_interval(short_flows.transfer_s(run) for run in of)
        for buffer, of in grouped(runs, "buffer_packets").items()
    }
    base = times.pop(short_flows.UNLIMITED_PACKETS, None)
    return {} if base is None else {buffer: time.value / base.value for buffer, time in times.items() if time}


def _bracket(slower: dict[int, float]) -> Bracket:
    return brackets.bracket({buffer: times <= SLOWER for buffer, times in slower.items()})


def draw(data: Data) -> look.Figure:
    """Two panels with the same y-axis."""
    figure, ((left, right),) = look.new_figure(look.PAGE_IN, 2.8, 1, 2, sharey=True)
    _lengths(left, data)
    _links(right, data["links"])
    left.set_ylim(bottom=0)
    return figure


def _lengths(ax: look.Axes, data: Data) -> None:
    lengths = list(data["slower"])
    if not lengths:
        look.absent(ax)
        return
    for order, style, shade, text in MODELS:
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
    ax.legend(loc="upper left", frameon=False)


def _links(ax: look.Axes, links: dict[tuple[int, int], dict[int, float]]) -> None:
    """One place on the x-axis for each link, by rate and RTT."""
    if not links:
        look.absent(ax)
        return
    for order, style, shade, _ in MODELS:
        ax.axhline(_model(LENGTH_ON_LINKS, order), linestyle=style, color=shade, linewidth=0.9)
    for at, slower in enumerate(links.values()):
        brackets.draw(ax, at, _bracket(slower), BLUE)
    ax.set_xticks(range(len(links)), [f"{mbps} Mb/s\n{rtt_ms} ms" for mbps, rtt_ms in links])
    ax.set_xlim(-0.6, len(links) - 0.4)
    ax.set_xlabel(f"rate and mean RTT, flows of {LENGTH_ON_LINKS} packets")


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
    for (mbps, rtt_ms), slower in data["links"].items():
        edges, model = _bracket(slower), _model(LENGTH_ON_LINKS, 2)
        what = f"{LENGTH_ON_LINKS} packets, {mbps} Mb/s, mean RTT {rtt_ms} ms: least buffer"
        rows.append(Fact(what, "the same", model, edges.interval(), "packets", "", edges.open_text()))
    if shares:
        what = (
            f"least buffer over the second-order model ({len(shares)} lengths; expected {ASKED[0]:g} to {ASKED[1]:g})"
        )
        estimate = Interval(sum(shares) / len(shares), min(shares), max(shares), len(shares))
        rows.insert(0, Fact(what, "1", 1.0, estimate, "", headline=True, over_points=True))
    return rows


FIGURE = PaperFigure("figure_12", CAPTION, (STEM, LINKS), prepare, draw, facts)
