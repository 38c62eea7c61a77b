# SPDX-License-Identifier: MIT
"""Short flows, load 0.8: their mean queue against their length (Figure 10), the least buffer for which they take at
most 12.5 % longer than with an unlimited buffer (Figure 12), and the tail of their queue on the OC3 link (Figure 16).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from analysis.arithmetic.statistics import Interval, mean_interval
from analysis.figures.common import BLACK, BLUE, GREEN, GREY, ORANGE, Data
from analysis.papers import crossing, curves, look
from analysis.papers.appenzeller2004 import terms
from analysis.papers.appenzeller2004.terms import FIFO_PACKETS, LOAD, length, printed_mbps
from analysis.papers.crossing import Crossing
from analysis.papers.curves import WIDE, Curve, Line, Panel, Shape
from analysis.papers.facts import Fact, each, exactly
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.series import grouped, mean_rtt_ns, pooled, series
from analysis.theory import short_flows as theory


def spread(values: list[float]) -> Interval:
    """The mean, the least and the largest of some values."""
    return Interval(sum(values) / len(values), min(values), max(values), len(values))


# Figure 10 ------------------------------------------------------------------------------------------------------------

CAPTION_10 = (
    "the mean queue over time of short TCP flows, and of UDP bursts at Poisson times, against the length of a flow; "
    "load 0.8. Lines: M[X]/D/1 with all packets of a burst at once, and the paper's formula."
)
STEM_10, BURSTS = "short-queue", "burst-queue"
RATE_COLORS = {40: GREEN, 80: BLUE, 200: ORANGE}  # Mb/s
SLOWER = (0.75, 1.0)  # expected share of the model: ACK-clocked bursts arrive at twice the link's rate, not at once
WITHIN_ERRORS = 3.0  # standard errors: largest accepted distance of UDP bursts from the model
WHY_SLOWER = "ACKs let the packets of a burst go at twice the link's rate, not all at once"


def _model(packets: int) -> float:
    return theory.mean_depth(LOAD, theory.slow_start_bursts(packets))


def _printed(packets: int) -> float:
    return theory.mean_queue(LOAD, theory.slow_start_bursts(packets))


def _queues(runs: PaperRuns) -> Data:
    """TCP's mean queue by rate and length as a share of the model's; the mean queue of UDP bursts in one run of each
    length, and its distance from the model in standard errors.
    """
    of_bursts = {packets: terms.burst_queue(of[0]) for packets, of in grouped(runs.select(BURSTS), length).items()}
    tcp, first, rows = {}, [], []
    shares: list[float] = []
    for mbps, of in grouped(runs.select(STEM_10), printed_mbps).items():
        if points := series(of, length, terms.tcp_queue):
            tcp[f"TCP, {mbps} Mb/s"] = Curve(points, RATE_COLORS.get(mbps, BLUE))
            shares += [point.value / _model(packets) for packets, point in points.items()]
            what = f"TCP flows of {{}} packets, {mbps} Mb/s: mean queue"
            rows += each(points, what, lambda packets: f"{_printed(packets):.3g} by its formula", _model, "packets")
    if shares:
        what = f"TCP: least and largest share of M[X]/D/1 (expected {SLOWER[0]:g} to {SLOWER[1]:g})"
        measured = spread(shares)
        first.append(Fact(what, "", None, measured, "of the model", WHY_SLOWER, headline=True, over_points=True))
    known = {at: (depth, error) for at, (depth, error) in of_bursts.items() if depth is not None and error}
    if known:
        largest = max(abs(depth - _model(packets)) / error for packets, (depth, error) in known.items())
        what = f"UDP bursts: largest distance from M[X]/D/1 ({len(known)} lengths; asked {WITHIN_ERRORS:g} at most)"
        first.append(Fact(what, "", 0.0, exactly(largest), "standard errors", headline=True, over_points=True))
    within = {at: Interval(depth, depth - 2 * error, depth + 2 * error, 1) for at, (depth, error) in known.items()}
    first += each(within, "UDP bursts of flows of {} packets: mean queue", "", _model, "packets")
    lengths = sorted({*of_bursts, *(packets for curve in tcp.values() for packets in curve.points)})
    drawn = {packets: depth for packets, (depth, _) in of_bursts.items() if depth is not None}
    lines = [
        Line(lengths, [_model(packets) for packets in lengths], "M[X]/D/1", "-", BLACK, 0.8, behind=True),
        Line(lengths, [_printed(packets) for packets in lengths], "as printed", "--", GREY, 0.8, behind=True),
        Line(list(drawn), list(drawn.values()), "UDP bursts", "+", behind=True, more={"markersize": 6}),
    ]
    return {"panels": {"": Panel(tcp, lines)}, "facts": first + rows}


FIGURE_10 = curves.figure(
    "figure_10", CAPTION_10, (STEM_10, BURSTS), _queues,
    Shape("packets of a flow", "mean queue over time (packets)", (WIDE, 3.0), log="", margin=0,
          x={"left": 0}, y={"bottom": 0}, legend={"loc": "upper left"}),
)  # fmt: skip

# Figure 12 ------------------------------------------------------------------------------------------------------------

CAPTION_12 = (
    "the least buffer with which the mean transfer time is at most 1.125 times the mean with an unlimited buffer, "
    "against the length of a flow (left; load 0.8, 80 Mb/s, mean RTT 100 ms), and for flows of 14 packets against rate "
    "and mean RTT (right). Lines: buffers for P(Q ≥ B) = 0.025, by second order (the paper's) and exactly; they depend "
    "on neither rate nor RTT."
)
STEM_12, LINKS = "short-buffer", "short-buffer-links"
LENGTH_ON_LINKS = 14  # packets
SLOWER_BY, RISK = 1.125, 0.025
MODELS = ((2, "--", GREY, "second order"), (None, "-", BLACK, "exact"))  # order, line style, color, name
ASKED = (0.5, 1.3)  # expected share of the second-order model


def _least(runs: PaperRuns) -> Data:
    """Least buffers by length, and by (rate in Mb/s, mean RTT in ms), beside the second-order model."""
    groups = grouped(runs.select(STEM_12), length)
    on_links = [*groups.get(LENGTH_ON_LINKS, []), *runs.select(LINKS)]
    lengths, links = _each_least(groups), _each_least(grouped(on_links, _link))
    rows = [
        of.fact(f"{packets} packets: least buffer", "", _buffer_for_tail(packets, 2)) for packets, of in lengths.items()
    ]
    shares = [row.measured.value / row.predicted for row in rows if row.measured and row.predicted]
    if shares:
        expected = f"expected {ASKED[0]:g} to {ASKED[1]:g}"
        what = f"least buffer over the second-order model ({len(shares)} lengths; {expected})"
        rows.insert(0, Fact(what, "1", 1.0, spread(shares), "", headline=True, over_points=True))
    for (mbps, rtt_ms), of in links.items():
        what = f"{LENGTH_ON_LINKS} packets, {mbps} Mb/s, mean RTT {rtt_ms} ms: least buffer"
        rows.append(of.fact(what, "the same", _buffer_for_tail(LENGTH_ON_LINKS, 2)))
    return {"lengths": lengths, "links": links, "facts": rows}


def _link(run: PaperRun) -> tuple[int, int]:
    """(printed rate in Mb/s, mean RTT in ms)."""
    return printed_mbps(run), round(mean_rtt_ns(run) / 1e6)


def _each_least(groups: dict[Any, list[PaperRun]]) -> dict[Any, Crossing]:
    """From the mean transfer times relative to those with an unlimited buffer. Without groups that lack this buffer."""
    least = {}
    for key, runs in groups.items():
        times = series(runs, "buffer_packets", terms.transfer_s)
        base = times.pop(terms.UNLIMITED_PACKETS, None)
        if base and times:
            slower = {buffer: time.value / base.value for buffer, time in times.items()}
            least[key] = crossing.crossing({buffer: share <= SLOWER_BY for buffer, share in slower.items()})
    return least


@cache
def _buffer_for_tail(packets: int, order: int | None) -> float:
    return theory.buffer_for_tail(LOAD, theory.slow_start_bursts(packets), RISK, order=order)


def _draw_least(data: Data) -> look.Figure:
    """Two panels with the same y-axis. On the right each link has a place on the x-axis."""
    figure, ((left, right),) = look.new_figure(look.PAGE_IN, 2.8, 1, 2, sharey=True)
    lengths, links = data["lengths"], data["links"]
    for ax, of in ((left, lengths), (right, links)):
        if not of:
            look.absent(ax)
    for order, style, shade, text in MODELS:
        values = [_buffer_for_tail(packets, order) for packets in lengths]
        left.plot(list(lengths), values, style, color=shade, linewidth=0.9, label=text)
        if links:
            right.axhline(_buffer_for_tail(LENGTH_ON_LINKS, order), linestyle=style, color=shade, linewidth=0.9)
    for packets, of in lengths.items():
        crossing.draw(left, packets, of, BLUE)
    for packets, of in look.of_ns3(data, "lengths").items():
        crossing.draw_ns3(left, packets, of, BLUE)
    if lengths:
        left.plot([], [], "o", color=BLUE, label="measured")
        left.set_xlabel("packets of a flow")
        left.set_ylabel("least buffer (packets)")
        left.set_xlim(0, 1.05 * max(lengths))
        left.legend(loc="upper left", frameon=False)
    for at, of in enumerate(links.values()):
        crossing.draw(right, at, of, BLUE)
    if links:
        right.set_xticks(range(len(links)), [f"{mbps} Mb/s\n{rtt_ms} ms" for mbps, rtt_ms in links])
        right.set_xlim(-0.6, len(links) - 0.4)
        right.set_xlabel(f"rate and mean RTT, flows of {LENGTH_ON_LINKS} packets")
    left.set_ylim(bottom=0)
    return figure


FIGURE_12 = PaperFigure("figure_12", CAPTION_12, (STEM_12, LINKS), _least, _draw_least)

# Figure 16 ------------------------------------------------------------------------------------------------------------

CAPTION_16 = (
    "P(Q ≥ b) over time of short flows on an OC3 link, load 0.8. Dashed: the model, exactly and by second order. "
    "Dotted: UDP bursts in place of the flows' windows. Pale: the queue without the 43 packets of the output FIFO, as "
    "the router reports it."
)
STEM_16 = "card"
SHADES = {14: BLUE, 62: ORANGE}
SLOPE_BETWEEN = (0.1, 0.001)  # probabilities between which the slope is measured
LEAST_DRAWN = SLOPE_BETWEEN[1] / 3


def _tails(runs: PaperRuns) -> Data:
    """The tail for each length of a flow, pooled over runs; the slope of runs beside the exact and the second-order
    decay; the same for UDP bursts.
    """
    flows, bursts = (grouped(runs.select(stem), length) for stem in (STEM_16, BURSTS))
    kinds = {"packets a flow": flows, "packets, UDP bursts": {at: of for at, of in bursts.items() if at in flows}}
    rows = []
    for unit, by_length in kinds.items():
        for packets, of in by_length.items():
            bursts_of_flow = theory.slow_start_bursts(packets)
            exact, second = (theory.decay(LOAD, bursts_of_flow, order=order) for order in (None, 2))
            what = f"{packets} {unit}: slope of ln P(Q ≥ b) (second order {second:.4f})"
            measured = mean_interval(_slope(*_tail([run])) for run in of)
            rows.append(Fact(what, "", exact, measured, "1/packet", headline=by_length is flows))
            if measured is not None:
                share = exactly(measured.value / exact)
                rows.append(Fact(f"{packets} {unit}: slope over the exact one", "", 1.0, share, ""))
    tails = [{packets: _tail(of) for packets, of in by_length.items()} for by_length in kinds.values()]
    return {"flows": tails[0], "bursts": tails[1], "facts": rows}


def _tail(runs: list[PaperRun]) -> tuple[np.ndarray, np.ndarray]:
    """(b, P(Q >= b)) over time."""
    depths, ns = pooled(runs, "depth_over_time_packets")
    return depths, ns[::-1].cumsum()[::-1] / ns.sum()


def _slope(depths: np.ndarray, tail: np.ndarray) -> float | None:
    """The decay of ln P(Q >= b), 1/packets, by least squares between the probabilities of SLOPE_BETWEEN. None if the
    tail lies between them at fewer than three depths, or if it ends above the lower one.
    """
    high, low = SLOPE_BETWEEN
    inside = (tail <= high) & (tail >= low)
    if inside.sum() < 3 or tail.min() > low:
        return None
    return float(-np.polyfit(depths[inside], np.log(tail[inside]), 1)[0])


def _draw_tails(data: Data) -> look.Figure:
    """One panel, probabilities logarithmic."""
    figure, ax = look.new_panel(look.COLUMN_IN, 2.8)
    if not data["flows"]:
        return look.absent(ax)
    ax.set_yscale("log")
    for packets, (depths, tail) in data["flows"].items():
        shade, drawn = SHADES.get(packets, BLUE), [(depths, tail)]
        ax.step(depths, tail, where="post", color=shade, label=f"{packets} packets a flow")
        ax.step(np.maximum(depths - FIFO_PACKETS, 0), tail, where="post", color=shade, alpha=0.35, linewidth=0.7)
        if packets in data["bursts"]:
            drawn.append(data["bursts"][packets])
            ax.step(*drawn[1], ":", where="post", color=shade, linewidth=0.9)
        bursts = theory.slow_start_bursts(packets)
        b = np.linspace(0, max(depths[tail >= LEAST_DRAWN].max() for depths, tail in drawn), 100)
        for order, tint in ((None, BLACK), (2, GREY)):
            values = [theory.tail(LOAD, bursts, x, order=order) for x in b]
            ax.plot(b, values, "--", color=tint, linewidth=0.7)
    ax.set_ylim(LEAST_DRAWN, 1.1)
    ax.set_xlim(left=0)
    ax.set_xlabel("b (packets)")
    ax.set_ylabel("P(Q ≥ b)")
    ax.legend(loc="upper right", frameon=False)
    return figure


FIGURE_16 = PaperFigure("figure_16", CAPTION_16, (STEM_16, BURSTS), _tails, _draw_tails)
