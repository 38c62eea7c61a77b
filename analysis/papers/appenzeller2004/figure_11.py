# SPDX-License-Identifier: MIT
"""Figure 11: the least buffer for 98, 99.5 and 99.9 % of an OC3 link, against the number of flows. The same runs also
show goodput, fairness, and loss against the window (section 5.1.1).
"""

from __future__ import annotations

from analysis.figures.common import BLACK, BLUE, GREEN, GREY, ORANGE, Data
from analysis.papers import brackets, look
from analysis.papers.appenzeller2004 import oc3
from analysis.papers.facts import Fact
from analysis.papers.paper import PaperFigure
from analysis.papers.series import grouped, loss, nearest
from analysis.papers.stored_runs import StoredRun, StoredRuns
from analysis.statistics import mean_interval
from analysis.theory import gaussian
from analysis.theory.many_flows import sqrt_rule

CAPTION = (
    "the least buffer for 98, 99.5 and 99.9 % of an OC3 link, mean RTT 80 ms. A bar goes from the largest buffer that "
    "was not enough to the smallest buffer from which on all were enough. Lines: BDP/√n, twice that, and equation (6) "
    "for each level."
)
STEM = "least-buffer"
RTT_S = 0.08
LEVELS = {0.98: BLUE, 0.995: ORANGE, 0.999: GREEN}
PRINTED = {0.98: "BDP/√n for n > 250", 0.995: "", 0.999: "2 BDP/√n for n > 250"}
ASKED = (0.98, 0.999)  # utilizations for which the paper prints a multiple of the rule
MANY = 250
SIDESTEP = 1.03  # each level is drawn this factor right of the previous one, so that levels do not hide each other
COMMON_LOSS = 0.76  # loss times squared window in the paper, a constant


def prepare(runs: StoredRuns) -> Data:
    """Brackets by level and flows; loss times squared window, goodput and fairness by flows."""
    groups = grouped(runs.select(STEM), "flows")
    return {
        "provenance": runs.provenance(),
        "brackets": {level: {n: brackets.of_utilization(of, level) for n, of in groups.items()} for level in LEVELS},
        "shares": {n: _by_rule(of, n) for n, of in groups.items()},
    }


def _by_rule(runs: list[StoredRun], flows: int) -> Data:
    """Estimates of the runs whose buffer is nearest to BDP/sqrt(n)."""
    rule = sqrt_rule(oc3.bdp(RTT_S), flows)
    buffers = grouped(runs, "buffer_packets")
    of = buffers[nearest(buffers, rule)]
    constants = [_loss_constant(run) for run in of]
    return {
        "constant": mean_interval(constants),
        "window": mean_interval(oc3.mean_window(run) for run in of),
        "goodput": mean_interval(run["goodput_bps"] / run["rate_bps"] for run in of if run["goodput_bps"]),
        "jain": mean_interval(run["jain_index"] for run in of),
    }


def _loss_constant(run: StoredRun) -> float | None:
    lost, window = loss(run), oc3.mean_window(run)
    return None if lost is None or window is None else lost * window**2


def draw(data: Data) -> look.Figure:
    """Both axes logarithmic: BDP/sqrt(n) is a straight line."""
    figure, ax = look.new_panel(look.PAGE_IN * 0.72, 3.1)
    flows = brackets.axes_of(ax, data["brackets"].values(), "flows n", 1.15)
    if not flows:
        return figure
    bdp = oc3.bdp(RTT_S)
    for times, style in ((1, "--"), (2, ":")):
        rule = [times * sqrt_rule(bdp, n) for n in flows]
        ax.plot(flows, rule, style, color=BLACK, linewidth=0.9, label=f"{'2 ' * (times == 2)}BDP/√n")
    for at, (level, shade) in enumerate(LEVELS.items()):
        ax.plot(flows, [gaussian.required_buffer(level, bdp, n) for n in flows], color=shade, linewidth=0.6)
        for n, bracket in data["brackets"][level].items():
            brackets.draw(ax, n * SIDESTEP ** (at - 1), bracket, shade)
        for n, bracket in data.get("ns3", {}).get("brackets", {}).get(level, {}).items():
            brackets.draw_ns3(ax, n * SIDESTEP ** (at - 1), bracket, shade)
        ax.plot([], [], "o", color=shade, label=f"{level:.1%}".replace(".0", ""))
    ax.plot([], [], color=GREY, linewidth=0.6, label="equation (6)")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure


def facts(data: Data) -> list[Fact]:
    """Least buffers in BDP/sqrt(n); then loss, goodput and fairness at BDP/sqrt(n)."""
    rows, bdp = [], oc3.bdp(RTT_S)
    for level, of_flows in data["brackets"].items():
        for n, bracket in of_flows.items():
            rule = sqrt_rule(bdp, n)
            what, printed = f"{level:.1%} with n = {n}: least buffer", PRINTED[level] if n > MANY else ""
            model, measured = gaussian.required_buffer(level, bdp, n) / rule, bracket.interval(rule)
            wanted = n == max(of_flows) and level in ASKED
            rows.append(Fact(what, printed, model, measured, "BDP/√n", "", bracket.open_text(rule), headline=wanted))
    for n, share in data["shares"].items():
        window = "" if share["window"] is None else f" (mean window {share['window'].value:.3g})"
        what = f"n = {n}, BDP/√n{window}: loss x squared window"
        rows.append(Fact(what, "0.76 (5.1.1)", COMMON_LOSS, share["constant"], ""))
        rows.append(Fact(f"n = {n}, BDP/√n: goodput over rate", "", None, share["goodput"], ""))
        rows.append(Fact(f"n = {n}, BDP/√n: fairness (Jain)", "", None, share["jain"], ""))
    return rows


FIGURE = PaperFigure("figure_11", CAPTION, (STEM,), prepare, draw, facts)
