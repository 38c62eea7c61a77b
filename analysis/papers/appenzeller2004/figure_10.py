# SPDX-License-Identifier: MIT
"""Figure 10: the mean queue of short flows against their length, load 0.8."""

from __future__ import annotations

from analysis.figures.common import BLACK, BLUE, GREEN, GREY, ORANGE, Data
from analysis.papers import look
from analysis.papers.appenzeller2004 import short_flows
from analysis.papers.facts import Fact
from analysis.papers.paper import PaperFigure
from analysis.papers.series import grouped, series
from analysis.papers.stored_runs import StoredRuns
from analysis.statistics import Interval
from analysis.theory import short_flows as theory

CAPTION = (
    "the mean queue over time of short TCP flows, and of UDP bursts at Poisson times, against the length of a flow; "
    "load 0.8. Lines: M[X]/D/1 with all packets of a burst at once, and the paper's formula."
)
STEM, BURSTS = "short-queue", "burst-queue"
RATE_COLORS = {40: GREEN, 80: BLUE, 200: ORANGE}  # Mb/s
SLOWER = (0.75, 1.0)  # expected share of the model: ACK-clocked bursts arrive at twice the link's rate, not at once
WITHIN_ERRORS = 3.0  # standard errors: largest accepted distance of UDP bursts from the model


def prepare(runs: StoredRuns) -> Data:
    """TCP's mean queue by rate and length; the mean queue of UDP bursts in one run of each length, with its standard
    error.
    """
    by_rate = grouped(runs.select(STEM), short_flows.printed_mbps)
    tcp = {mbps: series(of, short_flows.length, short_flows.tcp_queue) for mbps, of in by_rate.items()}
    by_length = grouped(runs.select(BURSTS), short_flows.length)
    return {
        "provenance": runs.provenance(),
        "tcp": {mbps: points for mbps, points in tcp.items() if points},
        "bursts": {length: short_flows.burst_queue(of[0]) for length, of in by_length.items()},
    }


def draw(data: Data) -> look.Figure:
    """One panel."""
    figure, ax = look.new_panel(look.PAGE_IN * 0.72, 3.0)
    lengths = sorted({length for points in (*data["tcp"].values(), data["bursts"]) for length in points})
    if not lengths:
        return look.absent(ax)
    models = [theory.slow_start_bursts(length) for length in lengths]
    exact = [theory.mean_depth(short_flows.LOAD, bursts) for bursts in models]
    ax.plot(lengths, exact, color=BLACK, linewidth=0.8, label="M[X]/D/1")
    printed = [theory.mean_queue(short_flows.LOAD, bursts) for bursts in models]
    ax.plot(lengths, printed, "--", color=GREY, linewidth=0.8, label="as printed")
    measured = [(length, depth) for length, (depth, _) in data["bursts"].items() if depth is not None]
    ax.plot([x for x, _ in measured], [y for _, y in measured], "+", color=BLACK, markersize=6, label="UDP bursts")
    for mbps, points in data["tcp"].items():
        shade = RATE_COLORS.get(mbps, BLUE)
        look.interval_bars(ax, points, points.values(), shade, label=f"TCP, {mbps} Mb/s")
    for mbps, points in data.get("ns3", {}).get("tcp", {}).items():
        look.ns3_points(ax, points, points.values(), RATE_COLORS.get(mbps, BLUE))
    ax.set_xlabel("packets of a flow")
    ax.set_ylabel("mean queue over time (packets)")
    ax.set_ylim(bottom=0)
    ax.set_xlim(left=0)
    ax.legend(loc="upper left", frameon=False)
    return figure


def facts(data: Data) -> list[Fact]:
    """The distance of UDP bursts from the model in standard errors, and TCP's mean queue as a share of the model's."""
    rows = []
    errors = []
    for length, (depth, error) in data["bursts"].items():
        model = theory.mean_depth(short_flows.LOAD, theory.slow_start_bursts(length))
        if depth is None or not error:
            continue
        errors.append(abs(depth - model) / error)
        estimate = Interval(depth, depth - 2 * error, depth + 2 * error, 1)
        rows.append(Fact(f"UDP bursts of flows of {length} packets: mean queue", "", model, estimate, "packets"))
    if errors:
        what = f"UDP bursts: largest distance from M[X]/D/1 ({len(errors)} lengths; asked {WITHIN_ERRORS:g} at most)"
        rows.insert(
            0,
            Fact(
                what, "", 0.0, Interval(max(errors), None, None, 1), "standard errors", headline=True, over_points=True
            ),
        )
    shares = []
    for mbps, points in data["tcp"].items():
        for length, point in points.items():
            model = theory.mean_depth(short_flows.LOAD, theory.slow_start_bursts(length))
            printed = theory.mean_queue(short_flows.LOAD, theory.slow_start_bursts(length))
            what = f"TCP flows of {length} packets, {mbps} Mb/s: mean queue"
            rows.append(Fact(what, f"{printed:.3g} by its formula", model, point, "packets"))
            shares.append(point.value / model)
    if shares:
        why = "ACKs let the packets of a burst go at twice the link's rate, not all at once"
        what = f"TCP: least and largest share of M[X]/D/1 (expected {SLOWER[0]:g} to {SLOWER[1]:g})"
        estimate = Interval(sum(shares) / len(shares), min(shares), max(shares), len(shares))
        rows.insert(0, Fact(what, "", None, estimate, "of the model", why, headline=True, over_points=True))
    return rows


FIGURE = PaperFigure("figure_10", CAPTION, (STEM, BURSTS), prepare, draw, facts)
