# SPDX-License-Identifier: MIT
"""The least buffer of many long flows: for three utilizations of an OC3 link, with goodput, fairness, and loss against
the window from the same runs (Figure 11, section 5.1.1); with short flows beside the long ones (Figure 13), and the
transfer times of these short flows (Figure 14).
"""

from __future__ import annotations

import numpy as np

from analysis.arithmetic.statistics import Interval, mean_interval
from analysis.figures.common import BLACK, BLUE, GREEN, GREY, ORANGE, Data
from analysis.papers import crossing, look
from analysis.papers.appenzeller2004 import terms
from analysis.papers.appenzeller2004.terms import MIX_BDP, MIX_RTT_S, MIX_STEM, OC3_PACKETS_PER_S
from analysis.papers.crossing import Kind
from analysis.papers.facts import Fact, exactly
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.series import grouped, loss, mean_window, nearest
from analysis.theory import gaussian
from analysis.theory.many_flows import sqrt_rule

# Figure 11 ------------------------------------------------------------------------------------------------------------

CAPTION_11 = (
    "the least buffer for 98, 99.5 and 99.9 % of an OC3 link, mean RTT 80 ms. A bar goes from the largest buffer that "
    "was not enough to the smallest buffer from which on all were enough. Lines: BDP/√n, twice that, and equation (6) "
    "for each level."
)
STEM = "least-buffer"
BDP = OC3_PACKETS_PER_S * 0.08
LEVELS = {0.98: ("98%", BLUE), 0.995: ("99.5%", ORANGE), 0.999: ("99.9%", GREEN)}
PRINTED = {0.98: "BDP/√n for n > 250", 0.995: "", 0.999: "2 BDP/√n for n > 250"}
ASKED = (0.98, 0.999)  # utilizations for which the paper prints a multiple of the rule
MANY = 250
COMMON_LOSS = 0.76  # loss times squared window in the paper, a constant


def _by_level(runs: PaperRuns) -> Data:
    """Least buffers by level and flows in BDP/sqrt(n); then loss times squared window, goodput and fairness of the runs
    whose buffer is nearest to BDP/sqrt(n).
    """
    groups, kinds, rows = grouped(runs.select(STEM), "flows"), [], []
    for level, look_of in LEVELS.items():
        theory = {n: gaussian.required_buffer(level, BDP, n) for n in groups}
        least = {n: crossing.of_utilization(of, level) for n, of in groups.items()}
        kinds.append(Kind(*look_of, least, theory))
        for n, of_flows in least.items():
            rule, printed = sqrt_rule(BDP, n), PRINTED[level] if n > MANY else ""
            what = f"{level:.1%} with n = {n}: least buffer"
            fact = of_flows.fact(what, printed, theory[n] / rule, "BDP/√n", rule)
            rows.append(fact._replace(headline=n == max(least) and level in ASKED))
    for n, of in groups.items():
        buffers = grouped(of, "buffer_packets")
        near = buffers[nearest(buffers, sqrt_rule(BDP, n))]
        mean, constant = (mean_interval(map(number, near)) for number in (mean_window, _loss_constant))
        goodput = mean_interval(run["goodput_bps"] / run["rate_bps"] for run in near if run["goodput_bps"])
        window = "" if mean is None else f" (mean window {mean.value:.3g})"
        who, fairness = f"n = {n}, BDP/√n", mean_interval(run["jain_index"] for run in near)
        rows.append(Fact(f"{who}{window}: loss x squared window", "0.76 (5.1.1)", COMMON_LOSS, constant, ""))
        rows.append(Fact(f"{who}: goodput over rate", "", None, goodput, ""))
        rows.append(Fact(f"{who}: fairness (Jain)", "", None, fairness, ""))
    return {"kinds": kinds, "facts": rows}


def _loss_constant(run: PaperRun) -> float | None:
    lost, window = loss(run), mean_window(run)
    return None if lost is None or window is None else lost * window**2


def _draw_by_level(data: Data) -> look.Figure:
    """BDP/sqrt(n) is a straight line."""
    figure, ax = look.new_panel(look.PAGE_IN * 0.72, 3.1)

    def rules(ax: look.Axes, flows: list[int]) -> None:
        for times, style in ((1, "--"), (2, ":")):
            rule = [times * sqrt_rule(BDP, n) for n in flows]
            ax.plot(flows, rule, style, color=BLACK, linewidth=0.9, label=f"{'2 ' * (times == 2)}BDP/√n")

    crossing.draw_by_flows(ax, data["kinds"], look.of_ns3(data, "kinds"), "flows n", 1.15, 1.03, rules)
    if any(kind.of_flows for kind in data["kinds"]):
        ax.plot([], [], color=GREY, linewidth=0.6, label="equation (6)")
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure


FIGURE_11 = PaperFigure("figure_11", CAPTION_11, (STEM,), _by_level, _draw_by_level)

# Figure 13 ------------------------------------------------------------------------------------------------------------

CAPTION_13 = (
    "the least buffer for a utilization of 95 %, against the number of long flows; with short flows of 14 packets at a "
    "load of 0.2 beside them, and without. 400 Mb/s, 80 ms."
)
LEVEL = 0.95
LARGEST = 500
ALONE = "mix-without"
KINDS = {MIX_STEM: ("with short flows", BLUE), ALONE: ("long flows alone", ORANGE)}


def _mixed(runs: PaperRuns) -> Data:
    """Least buffers in BDP/sqrt(n), and the ratio of the least buffers with short flows and without."""
    kinds, rows = [], []
    for stem, look_of in KINDS.items():
        of_flows = grouped(runs.select(stem), "flows")
        kind = Kind(*look_of, {n: crossing.of_utilization(of, LEVEL) for n, of in of_flows.items()})
        kinds.append(kind)
        for n, least in kind.of_flows.items():
            what = f"n = {n}, {kind.label}: least buffer"
            rows.append(least.fact(what, "", 1.0, "BDP/√n", sqrt_rule(MIX_BDP, n)))
    mixed, alone = ({n: of.interval() for n, of in kind.of_flows.items()} for kind in kinds)
    for n, both in mixed.items():
        without = alone.get(n)
        if both is not None and without is not None:
            what, ratio = f"n = {n}: with short flows over without", exactly(both.value / without.value)
            rows.append(Fact(what, "no more", 1.0, ratio, "", headline=n == LARGEST))
    return {"kinds": kinds, "facts": rows}


def _draw_mixed(data: Data) -> look.Figure:
    figure, ax = look.new_panel(look.COLUMN_IN, 2.8)

    def rule(ax: look.Axes, flows: list[int]) -> None:
        ax.plot(flows, [sqrt_rule(MIX_BDP, n) for n in flows], "--", color=BLACK, linewidth=0.9, label="BDP/√n")

    crossing.draw_by_flows(ax, data["kinds"], look.of_ns3(data, "kinds"), "long flows n", 1.2, 1.04**2, rule)
    look.legend(ax, loc="lower left")
    return figure


FIGURE_13 = PaperFigure("figure_13", CAPTION_13, (MIX_STEM, ALONE), _mixed, _draw_mixed)

# Figure 14 ------------------------------------------------------------------------------------------------------------

CAPTION_14 = (
    "mean transfer time of short flows of 14 packets beside n long flows, with a buffer of BDP/√n and with one of BDP: "
    "the smaller buffer makes short flows faster."
)
BUFFERS = {"BDP": ("B = BDP", ORANGE), "BDP/√n": ("B = BDP/√n", BLUE)}


def _transfers(runs: PaperRuns) -> Data:
    """Measured ratios of transfer times beside predicted ratios, in which each round trip takes the RTT plus the mean
    queueing delay; then transfer times and utilizations.
    """
    times: dict[int, dict[str, Interval | None]] = {}
    rows = []
    for n, of in grouped(runs.select(MIX_STEM), "flows").items():
        buffers = grouped(of, "buffer_packets")
        rule = sqrt_rule(MIX_BDP, n)
        small, large = nearest(buffers, rule), max(buffers)
        if large < MIX_BDP * 0.9 or small > rule * 1.2:  # no run has a buffer near the BDP, or near the rule
            continue
        same = {"BDP/√n": buffers[small], "BDP": buffers[large]}
        times[n] = {kind: mean_interval(map(terms.transfer_s, each)) for kind, each in same.items()}
        shorter, longer = times[n].values()
        if shorter and longer:
            predicted = (MIX_RTT_S + _waiting_s(buffers[small])) / (MIX_RTT_S + _waiting_s(buffers[large]))
            what, ratio = (
                f"n = {n}: transfer time with BDP/√n over that with BDP",
                exactly(shorter.value / longer.value),
            )
            rows.append(Fact(what, "shorter", predicted, ratio, "", headline=True))
        for kind, each in same.items():
            used = mean_interval(run["utilization_mean"] for run in each)
            rows.append(Fact(f"n = {n}, {kind}: transfer time", "", None, times[n][kind], "s"))
            rows.append(Fact(f"n = {n}, {kind}: utilization", "", None, used, ""))
    return {"times": times, "facts": rows}


def _waiting_s(runs: list[PaperRun]) -> float:
    """The mean queueing delay over runs."""
    packets_per_s = runs[0]["rate_bps"] / 8 / runs[0].experiment.wire_bytes
    return float(np.mean([run.value("queue_depth_packets", "time_mean") / packets_per_s for run in runs]))


def _draw_transfers(data: Data) -> look.Figure:
    """Two bars for each number of flows."""
    figure, ax = look.new_panel(look.COLUMN_IN, 2.4)
    times = data["times"]
    if not times:
        return look.absent(ax, text="no valid run with a buffer of a BDP")
    for at, (kind, (text, shade)) in enumerate(BUFFERS.items()):
        places = {n: place + 0.4 * at - 0.2 for place, n in enumerate(times)}
        values = [1e3 * of[kind].value for of in times.values()]
        ax.bar(list(places.values()), values, 0.38, color=shade, label=text)
        for n, of in look.of_ns3(data, "times").items():
            if n in times:
                look.ns3_points(ax, [places[n]], [of[kind].scaled(1e3)], BLACK)
    ax.set_xticks(range(len(times)), [str(n) for n in times])
    ax.set_xlabel("long flows n")
    ax.set_ylabel("mean transfer time (ms)")
    ax.legend(loc="lower right", framealpha=0.9)
    return figure


FIGURE_14 = PaperFigure("figure_14", CAPTION_14, (MIX_STEM,), _transfers, _draw_transfers)
