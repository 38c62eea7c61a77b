# SPDX-License-Identifier: MIT
"""Figure 15, a table: utilization of a router's OC3 link by its buffer, from the model, from ns-2, from the router, and
from our runs.
"""

from __future__ import annotations

from typing import NamedTuple

from analysis.arithmetic.statistics import Interval, mean_interval
from analysis.figures.common import BLACK, GREY, Data
from analysis.papers import look
from analysis.papers.appenzeller2004.terms import COLORS, FIFO_PACKETS, LINUX, NAMES, PAPER, PROFILES
from analysis.papers.facts import Fact, exactly
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRuns
from analysis.theory import gaussian

CAPTION = (
    "utilization of an OC3 link (BDP 1291 packets) for n flows with 1/2, 1, 2 and 3 times BDP/√n. The router had 43 "
    "packets more in an output FIFO. Lines: our runs with the 43 packets (solid) and without them (dotted); bars: 95 "
    "% intervals."
)
STEM = "gsr"
BDP_PACKETS, MULTIPLES = 1291, ("1/2", "1", "2", "3")


class Printed(NamedTuple):
    """The rows of the paper's table for one number of flows: buffers in packets, utilizations in %."""

    buffers: tuple[int, ...]
    model: tuple[float, ...]
    ns2: tuple[float, ...]
    router: tuple[float, ...]


PRINTED = {
    100: Printed((64, 129, 258, 387), (96.9, 99.9, 100, 100), (94.7, 99.3, 99.9, 99.8), (94.9, 98.1, 99.8, 99.7)),
    200: Printed((46, 91, 182, 273), (98.8, 99.9, 100, 100), (97.0, 99.2, 99.8, 100), (98.6, 99.7, 99.8, 99.8)),
    300: Printed((37, 74, 148, 222), (99.5, 100, 100, 100), (98.6, 99.3, 99.9, 100), (99.6, 99.8, 99.8, 100)),
    400: Printed((32, 64, 128, 192), (99.7, 100, 100, 100), (99.2, 99.8, 100, 100), (99.5, 100, 100, 99.9)),
}


def prepare(runs: PaperRuns) -> Data:
    """Utilizations in % by (sender, flows, buffer): the largest and the root mean square distance from the router's
    column; then each buffer beside equation (6).
    """
    measured: dict[tuple[str, int, int], Interval] = {}
    rows = []
    for profile, who in NAMES.items():
        apart = []
        for flows, printed in PRINTED.items():
            for extra in (0, FIFO_PACKETS):
                for packets, percent in zip(printed.buffers, printed.router, strict=True):
                    buffer = packets + extra
                    selected = runs.select(STEM, profile=profile, flows=flows, buffer_packets=buffer)
                    estimate = mean_interval(run["utilization_mean"] for run in selected)
                    if estimate is not None:
                        measured[profile, flows, buffer] = point = estimate.scaled(100)
                        apart += [abs(point.value - percent)] if extra else []
        if apart:
            what = f"{who}, with the FIFO: largest distance from the router ({len(apart)} of 16 cells)"
            rows.append(Fact(what, "", 0.0, exactly(max(apart)), "points", headline=True, over_points=True))
            squares = (sum(each**2 for each in apart) / len(apart)) ** 0.5
            what = f"{who}, with the FIFO: root mean square distance from the router"
            rows.append(Fact(what, "", 0.0, exactly(squares), "points", over_points=True))
    for (profile, flows, buffer), point in sorted(measured.items()):
        model = 100 * gaussian.utilization(BDP_PACKETS, buffer, flows)
        rows.append(Fact(f"{NAMES[profile]}, n = {flows}, B = {buffer} packets", "", model, point, "%"))
    return {"measured": measured, "facts": rows}


def draw(data: Data) -> look.Figure:
    """A panel for each number of flows."""
    figure, axes = look.new_figure(look.PAGE_IN, 2.5, 1, len(PRINTED), sharey=True)
    measured = data["measured"]
    for ax, (flows, printed) in zip(axes[0], PRINTED.items(), strict=True):
        at = range(len(MULTIPLES))
        ax.set_title(f"n = {flows}")
        ax.set_xticks(list(at), MULTIPLES)
        ax.plot(at, printed.router, "s", color=BLACK, markerfacecolor="none", label="router (paper)")
        ax.plot(at, printed.ns2, "x", color=GREY, label="ns-2 (paper)")
        for profile in PROFILES:
            for extra, style in ((FIFO_PACKETS, "-"), (0, ":")):
                points = _row(measured, profile, flows, extra)
                values, label = [point.value for point in points.values()], NAMES[profile] if extra else None
                ax.plot(list(points), values, style, color=COLORS[profile], label=label)
                if extra and profile == PAPER:
                    of_ns3 = _row(look.of_ns3(data, "measured"), profile, flows, extra)
                    look.ns3_points(ax, of_ns3, of_ns3.values(), COLORS[profile])
                if extra:
                    look.interval_bars(ax, points, points.values(), COLORS[profile])
    axes[0, 0].set_ylabel("utilization (%)")
    axes[0, 0].set_ylim(90, 100.3)
    for ax in axes[0]:
        ax.set_xlabel("buffer (BDP/√n)")
    axes[0, -1].legend(loc="lower right", frameon=False)
    return figure


def _row(measured: dict[tuple[str, int, int], Interval], profile: str, flows: int, extra: int) -> dict[int, Interval]:
    """The measured points by their place in the row of the table, with `extra` packets of buffer."""
    points = {at: measured.get((profile, flows, packets + extra)) for at, packets in enumerate(PRINTED[flows].buffers)}
    return {at: point for at, point in points.items() if point}


def table(data: Data) -> str:
    """The paper's table with our columns: with the FIFO's 43 packets and, in brackets, without them."""
    ns3 = look.of_ns3(data, "measured")
    title, rule = (" ns-3 |", "---|") if ns3 else ("", "")
    lines = [
        f"| n | buffer (BDP/√n) | packets | model | ns-2 | router | {NAMES[PAPER]} | {NAMES[LINUX]} |{title}",
        "|---|---|---|---|---|---|---|---|" + rule,
    ]
    for flows, printed in PRINTED.items():
        for multiple, packets, *percents in zip(MULTIPLES, *printed, strict=True):
            cells = [_cell(data["measured"], profile, flows, packets) for profile in PROFILES]
            cells += [_cell(ns3, PAPER, flows, packets)] if ns3 else []
            lines.append(f"| {flows} | {multiple} | {packets} | " + " | ".join([*map(str, percents), *cells]) + " |")
    return "\n".join(lines) + "\n\nIn brackets: without the 43 packets of the FIFO."


def _cell(measured: dict[tuple[str, int, int], Interval], profile: str, flows: int, packets: int) -> str:
    with_fifo = measured.get((profile, flows, packets + FIFO_PACKETS))
    without = measured.get((profile, flows, packets))
    texts = ["–" if point is None else f"{point.value:.1f}" for point in (with_fifo, without)]
    return f"{texts[0]} ({texts[1]})"


FIGURE_15 = PaperFigure("figure_15", CAPTION, (STEM,), prepare, draw, table=table)
