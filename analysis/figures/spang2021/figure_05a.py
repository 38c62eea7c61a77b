# SPDX-License-Identifier: MIT
"""Figure 5a: the least buffer with which 99 % of packets meet a queue that is not empty, against the number of flows
(hollow: with which the 1st percentile of utilization is 98 %). Its exponent is fitted where the mean window is at least
four packets: below, Theorem 6's conditions fail.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from analysis.figures.common import BLACK, GREY, Data
from analysis.figures.spang2021 import common
from analysis.figures.spang2021.series import ALGORITHMS, bdp, grouped, nearest
from analysis.least_buffer import bounds, by_buffer
from analysis.statistics import Bounds, Interval, PowerLaw, bootstrap, power_law
from analysis.theory import many_flows, single_flow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.figures.spang2021.common import Fact
    from analysis.figures.spang2021.runs import Run, Runs

SWEEPS = ("least-buffer", "least-buffer-utilization")
COLUMNS = {SWEEPS[0]: "queue_nonempty_fraction", SWEEPS[1]: "utilization_p01"}
UTILIZATION = 0.98  # in windows of 10 RTTs: BBR paces 1 % below what it measured, so that 99 % would ask for luck
NONEMPTY = 0.99  # first paper, 5.1: "99 % of packets (or more) experienced a non-empty queue"
LEAST_WINDOW = 4.0  # packets; twice what Theorem 6 asks for, as windows vary by a factor of two at least
PAPER = '"follows a square-root of n rule for TCP Reno"'  # 5.1, as the next
PAPER_OTHERS = '"similar buffer requirements for a large numbers of flows (and smaller ... for smaller numbers"'
RULES = {"reno": "BDP", "cubic": "3/7 BDP", "scalable": "1/7 BDP", "bbr": "1/4 BDP"}  # Table 1
SIDESTEP = 1.06  # so that algorithms do not hide each other


def prepare(runs: Runs) -> Data:
    """Of each algorithm: bounds by flows, the fitted law, and mean windows at the least buffer."""
    curves = {cc: _curve(runs, cc) for cc in ALGORITHMS}
    exact = next((curve["bdp"] for curve in curves.values() if "bdp" in curve), math.nan)
    return {"curves": curves, "bdp": exact, "provenance": runs.provenance()}


def _curve(runs: Runs, cc: str) -> Data:
    found = runs.select(SWEEPS[0], needs=(COLUMNS[SWEEPS[0]],), cc=cc)
    if not found:
        return {"absent": common.absence(runs, SWEEPS[0], cc)}
    by_flows = grouped(found, "flows")
    points = {flows: least(those, SWEEPS[0]) for flows, those in by_flows.items()}
    windows = {
        flows: bootstrap(_mean_window(run) for run in at_least(those, points[flows]))
        for flows, those in by_flows.items()
    }
    usable = [points[n] for n, window in windows.items() if window is not None and window.value >= LEAST_WINDOW]
    used = grouped(runs.select(SWEEPS[1], needs=(COLUMNS[SWEEPS[1]],), cc=cc), "flows")
    return {
        "bdp": bdp(found[0]),
        "points": points,
        "used": {flows: least(those, SWEEPS[1]) for flows, those in used.items()},
        "windows": windows,
        "law": _fit(usable),
    }


def least(runs: list[Run], stem: str) -> Bounds:
    """What a search (one of SWEEPS) with one number of flows came to."""
    enough = {SWEEPS[0]: NONEMPTY, SWEEPS[1]: UTILIZATION}[stem]
    return bounds(by_buffer((run.row for run in runs), COLUMNS[stem]), enough, float(runs[0]["flows"]))


def at_least(runs: list[Run], point: Bounds) -> list[Run]:
    """The runs with the buffer that is nearest to the least one."""
    buffer = nearest({run["buffer_packets"] for run in runs}, point.middle)
    return [run for run in runs if run["buffer_packets"] == buffer]


def _mean_window(run: Run) -> float | None:
    total = run["in_flight_mean_packets"]
    return None if total is None else total / run["flows"]


def _fit(points: list[Bounds]) -> PowerLaw | None:
    try:
        return power_law(points)
    except ValueError:  # too few: the figure says so by having no line
        return None


def draw(data: Data) -> Figure:
    """Both axes logarithmic; bars from the largest buffer that is not enough to the smallest that is."""
    figure, axes = common.new_figure(common.PAGE_IN * 0.72, 3.3)
    ax = axes[0, 0]
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xlabel("flows n")
    ax.set_ylabel("least buffer (packets)")
    present = {cc: curve for cc, curve in data["curves"].items() if "absent" not in curve}
    missing = [curve["absent"].replace("\n", " ") for curve in data["curves"].values() if "absent" in curve]
    if not present:
        common.absent(ax, "no valid run")
        common.footer(figure, data["provenance"])
        return figure
    flows = sorted({n for curve in present.values() for n in curve["points"]})
    ax.set_xlim(flows[0] / 1.3, flows[-1] * 1.3)
    ax.set_xticks(flows, [str(n) for n in flows])
    ax.minorticks_off()
    for at, (cc, curve) in enumerate(present.items()):
        _draw_points(ax, cc, curve, SIDESTEP ** (at - (len(present) - 1) / 2))
    _draw_rules(ax, data, present, flows)
    _draw_legend(ax, present, missing)
    common.footer(figure, data["provenance"])
    return figure


def _draw_points(ax: Axes, cc: str, curve: Data, step: float) -> None:
    shade, marker = common.color(cc), common.MARKERS[cc]
    for points, face in ((curve["used"], "white"), (curve["points"], shade)):
        for n, point in points.items():
            low, high = max(point.low, 1.0), min(point.high, 4 * curve["bdp"])
            ax.plot([n * step] * 2, [low, high], color=shade, linewidth=1.1, solid_capstyle="butt")
            if point.censored:  # the side towards which it may be is open
                ax.plot(n * step, low if point.low > 0 else high, "_", color=shade, markersize=6, markeredgewidth=1.2)
            else:
                ax.plot(n * step, point.middle, marker, color=shade, markerfacecolor=face, markeredgewidth=0.8)
    if curve["law"]:
        fitted = [n for n, window in curve["windows"].items() if window and window.value >= LEAST_WINDOW]
        ax.plot(fitted, [curve["law"].at(n) for n in fitted], color=shade, linewidth=0.6, zorder=1)


def _draw_rules(ax: Axes, data: Data, present: Data, flows: list[int]) -> None:
    ax.plot(flows, [many_flows.sqrt_rule(data["bdp"], n) for n in flows], "--", color=BLACK, linewidth=0.9)
    end = flows[-1]
    ax.annotate("BDP/√n", (end, many_flows.sqrt_rule(data["bdp"], end)), xytext=(4, 9), textcoords="offset points",
                ha="right", fontsize=common.LABEL_POINTS)  # fmt: skip
    edge = window_edge(present.get("reno", {}))
    if edge is not None:
        ax.axvspan(edge, flows[-1] * 1.3, color="#F0F0F0", linewidth=0, zorder=0)
        ax.annotate(
            f"Reno's mean window\nbelow {LEAST_WINDOW:g} packets", (0.985, 0.985), xycoords="axes fraction", va="top",
            ha="right", fontsize=common.LABEL_POINTS - 0.5, color=GREY,
        )  # fmt: skip


def window_edge(curve: Data) -> float | None:
    """Between the last number of flows with a mean window of LEAST_WINDOW and the first without; None if all have."""
    small = [n for n, window in curve.get("windows", {}).items() if window and window.value < LEAST_WINDOW]
    large = [n for n, window in curve.get("windows", {}).items() if window and window.value >= LEAST_WINDOW]
    return math.sqrt(max(large) * min(small)) if small and large else None


def _draw_legend(ax: Axes, present: Data, missing: list[str]) -> None:
    from matplotlib.lines import Line2D

    hollow = []
    if any(curve["used"] for curve in present.values()):
        text = f"hollow: {UTILIZATION:.0%} used"
        hollow.append(Line2D([], [], color=GREY, marker="o", markerfacecolor="white", linestyle="none", label=text))
    laws = {cc: power_text(curve["law"]) if curve["law"] else "" for cc, curve in present.items()}
    common.legend_right(ax, laws, missing, hollow)


def power_text(law: PowerLaw) -> str:
    """n to its exponent, with the interval."""
    text = f"n^({law.exponent:.2f})"
    if law.exponent_low is not None and law.exponent_high is not None:
        text += f", {law.exponent_low:.2f} to {law.exponent_high:.2f}"
    return text.replace("-", "\u2212")


def facts(data: Data) -> list[Fact]:
    """The exponents, and the least buffer of each algorithm and number of flows beside the rule."""
    rows = []
    for cc, curve in data["curves"].items():
        who = common.name(cc)
        if "absent" in curve:
            rows.append(common.Fact(curve["absent"].replace("\n", " "), "drawn in the paper", None, None, ""))
            continue
        law = curve["law"]
        if law:
            found = Interval(law.exponent, law.exponent_low, law.exponent_high, law.points)
            what = f"{who}: exponent of n, mean window of {LEAST_WINDOW:g} packets or more ({law.points} points)"
            rows.append(common.Fact(what, PAPER if cc == "reno" else PAPER_OTHERS, -0.5, found, ""))
        for n, point in curve["points"].items():
            window = curve["windows"][n]
            what = f"{who}, n = {n}: least buffer" + (f" (mean window {window.value:.3g})" if window else "")
            rule = single_flow.single_flow_buffer(cc, curve["bdp"]) if n == 1 else None
            predicted = many_flows.sqrt_rule(curve["bdp"], n) if rule is None else rule
            paper = RULES.get(cc, "") if n == 1 else "BDP/√n" if cc == "reno" else "similar for large n"
            rows.append(common.Fact(what, paper, predicted, as_interval(point), "packets"))
        for n, point in curve["used"].items():
            what = f"{who}, n = {n}: least buffer for a utilization of {UTILIZATION:g}"
            asked = single_flow.single_flow_buffer(cc, curve["bdp"], UTILIZATION) if n == 1 else None
            rows.append(common.Fact(what, "", asked, as_interval(point), "packets"))
    return rows


def as_interval(point: Bounds) -> Interval:
    """Bounds as an estimate: the middle, or the one bound that is known, with 0 or infinity for the other."""
    return Interval(point.middle, point.low, point.high, 1)
