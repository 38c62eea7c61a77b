# SPDX-License-Identifier: MIT
"""Figure 15, a table: utilization of a router's OC3 link by its buffer, from the model, from ns-2, from the router, and
from our runs.
"""

from __future__ import annotations

from typing import NamedTuple

from analysis.figures.common import BLACK, GREY, Data
from analysis.papers import look
from analysis.papers.appenzeller2004 import oc3
from analysis.papers.appenzeller2004.profiles import COLORS, LINUX, NAMES, PAPER, PROFILES
from analysis.papers.facts import Fact
from analysis.papers.paper import PaperFigure
from analysis.papers.stored_runs import StoredRuns
from analysis.statistics import Interval, mean_interval
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


def prepare(runs: StoredRuns) -> Data:
    """Utilizations in % by (sender, flows, buffer)."""
    measured: dict[tuple[str, int, int], Interval] = {}
    for profile in PROFILES:
        for flows, printed in PRINTED.items():
            for buffer in (*printed.buffers, *(packets + oc3.FIFO_PACKETS for packets in printed.buffers)):
                selected = runs.select(STEM, profile=profile, flows=flows, buffer_packets=buffer)
                estimate = mean_interval(_percent(run["utilization_mean"]) for run in selected)
                if estimate is not None:
                    measured[profile, flows, buffer] = estimate
    return {"provenance": runs.provenance(), "measured": measured}


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


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
            for extra, style in ((oc3.FIFO_PACKETS, "-"), (0, ":")):
                points = [measured.get((profile, flows, packets + extra)) for packets in printed.buffers]
                kept = [(x, point) for x, point in zip(at, points, strict=True) if point]
                label = NAMES[profile] if extra else None
                ax.plot(
                    [x for x, _ in kept], [point.value for _, point in kept], style, color=COLORS[profile], label=label
                )
                if extra and profile == PAPER:
                    ns3 = _of_ns3(data)
                    of_ns3 = [ns3.get((profile, flows, packets + extra)) for packets in printed.buffers]
                    both = [(x, point) for x, point in zip(at, of_ns3, strict=True) if point]
                    look.ns3_points(ax, [x for x, _ in both], [point for _, point in both], COLORS[profile])
                if extra:
                    look.interval_bars(ax, [x for x, _ in kept], [point for _, point in kept], COLORS[profile])
    axes[0, 0].set_ylabel("utilization (%)")
    axes[0, 0].set_ylim(90, 100.3)
    for ax in axes[0]:
        ax.set_xlabel("buffer (BDP/√n)")
    axes[0, -1].legend(loc="lower right", frameon=False)
    return figure


def _of_ns3(data: Data) -> dict[tuple[str, int, int], Interval]:
    measured: dict[tuple[str, int, int], Interval] = data.get("ns3", {}).get("measured", {})
    return measured


def facts(data: Data) -> list[Fact]:
    """The largest and the root mean square distance from the router's column; then each buffer beside equation (6)."""
    rows, measured = [], data["measured"]
    for profile in PROFILES:
        apart = [
            abs(point.value - percent)
            for flows, printed in PRINTED.items()
            for packets, percent in zip(printed.buffers, printed.router, strict=True)
            if (point := measured.get((profile, flows, packets + oc3.FIFO_PACKETS)))
        ]
        if apart:
            what = f"{NAMES[profile]}, with the FIFO: largest distance from the router ({len(apart)} of 16 cells)"
            largest = Interval(max(apart), None, None, 1)
            rows.append(Fact(what, "", 0.0, largest, "points", headline=True, over_points=True))
            squares = (sum(each**2 for each in apart) / len(apart)) ** 0.5
            what = f"{NAMES[profile]}, with the FIFO: root mean square distance from the router"
            mean = Interval(squares, None, None, 1)
            rows.append(Fact(what, "", 0.0, mean, "points", over_points=True))
    for (profile, flows, buffer), point in sorted(measured.items()):
        model = 100 * gaussian.utilization(BDP_PACKETS, buffer, flows)
        rows.append(Fact(f"{NAMES[profile]}, n = {flows}, B = {buffer} packets", "", model, point, "%"))
    return rows


def table(data: Data) -> str:
    """The paper's table with our columns: with the FIFO's 43 packets and, in brackets, without them."""
    ns3 = _of_ns3(data)
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
    with_fifo = measured.get((profile, flows, packets + oc3.FIFO_PACKETS))
    without = measured.get((profile, flows, packets))
    texts = ["–" if point is None else f"{point.value:.1f}" for point in (with_fifo, without)]
    return f"{texts[0]} ({texts[1]})"


FIGURE = PaperFigure("figure_15", CAPTION, (STEM,), prepare, draw, facts, table)
