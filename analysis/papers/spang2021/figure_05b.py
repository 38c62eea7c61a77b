# SPDX-License-Identifier: MIT
"""Figure 5b: utilization with 20 packets of buffer against the number of flows."""

from __future__ import annotations

from analysis.arithmetic.statistics import Bounds, Interval, PowerLaw, power_law
from analysis.figures import algorithms
from analysis.figures.common import BLACK, GREY, Data
from analysis.measure.metrics import UTILIZATION_WINDOW_RTTS
from analysis.papers import look
from analysis.papers.facts import Fact, by_algorithm
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.series import Series, bdp, series
from analysis.papers.spang2021.figure_05a import power_text
from analysis.theory import many_flows

CAPTION = (
    "utilization with a buffer of 20 packets against the number of flows, beside Theorem 7's 1 - Delta/sqrt(n): for "
    "Delta = 1, and for the measured Delta of Reno; and how fast the unused share of the link shrinks."
)
SWEEPS = ("twenty-packets",)
SIDESTEP = 1.05


def prepare(runs: PaperRuns) -> Data:
    """For each algorithm: the power laws of 1 - u, and the 1st percentile u of utilization at each number of flows,
    beside Theorem 7 for Delta = 1.
    """
    curves = runs.by_algorithm(SWEEPS[0], _curve, needs=("utilization_p01",))
    rows: list[Fact] = []
    for cc, who, curve in by_algorithm(curves, rows, "drawn in the paper"):
        free, root = curve["free"], curve["root"]
        if free:
            what = f"{who}: exponent of 1 − u in n"
            rows.append(Fact(what, "rate of 1/√n", -0.5, free.exponent, "", headline=cc == "reno"))
        if root:
            what = f"{who}: c of 1 − u = c/√n (residuals of a factor {2.718281828**root.deviation:.2f})"
            rows.append(Fact(what, "Δ; slightly underpredicted", 1.0, root.factor, ""))
        theorem = measured_bound(curve)
        for n, u in curve["utilization"].items():
            delta = curve["delta"].get(n)
            with_delta = f" (1 − Δ/√n with its Δ of {delta.value:.3g}: {theorem[n]:.3g})" if delta else ""
            paper = "1 − 1/√n, slightly underpredicts"
            bound = many_flows.almost_fair_utilization(n, 1)
            what = f"{who}, n = {n}: utilization, B = 20 packets{with_delta}"
            rows.append(Fact(what, paper, bound, u, "", headline=cc == "reno" and n == max(curve["utilization"])))
    return {"curves": curves, "facts": rows}


def _curve(selected: list[PaperRun]) -> Data:
    utilization = series(selected, "flows", "utilization_p01")
    floor = max(1 / (UTILIZATION_WINDOW_RTTS * bdp(run)) for run in selected)  # one packet, as a share of a window
    return {
        "floor": floor,
        "utilization": utilization,
        "delta": series(selected, "flows", "delta"),
        "free": _law(utilization, floor, None),
        "root": _law(utilization, floor, -0.5),
    }


def _law(utilization: Series, floor: float, exponent: float | None) -> PowerLaw | None:
    """Fits 1 - u = c n^p to the points where 1 - u is at least `floor`, one packet as a share of a window. Smaller
    values differ from 0 by less than a packet, but their logarithms would dominate the fit.
    """
    lost = {n: 1 - used.value for n, used in utilization.items()}
    points = [Bounds(n, share, share) for n, share in lost.items() if share >= floor]
    return power_law(points, exponent)


def draw(data: Data) -> look.Figure:
    """Left: utilization u. Right: 1 - u on logarithmic axes, where a power law is a straight line."""
    figure, (axes,) = look.new_figure(look.PAGE_IN, 2.9, 1, 2)
    left, right = axes
    present, missing = look.split(data["curves"])
    if not present:
        return look.absent(*axes)
    flows = sorted({n for curve in present.values() for n in curve["utilization"]})
    for ax in axes:
        look.log2_axis(ax, flows, 1.25)
        ax.set_xlabel("flows n")
    for at, (cc, curve) in enumerate(present.items()):
        _draw_curve(left, right, cc, curve, SIDESTEP ** (at - (len(present) - 1) / 2))
    bound = [many_flows.almost_fair_utilization(n, 1) for n in flows]
    left.plot(flows, [u * 100 for u in bound], "--", color=BLACK, linewidth=0.9)
    right.plot(flows, [100 / n**0.5 for n in flows], "--", color=BLACK, linewidth=0.9)
    second = flows[:2][-1]  # an imported set may have one number of flows
    look.note(right, "1/√n", (second, 100 / second**0.5), (14, -2), va="baseline")
    look.note(left, "1 − 1/√n", (flows[len(flows) // 2], bound[len(flows) // 2] * 100), (4, -8), va="baseline")
    measured = measured_bound(present.get("reno", {}))
    left.plot(list(measured), [u * 100 for u in measured.values()], ":", color=algorithms.color("reno"), linewidth=1.0,
              clip_on=False, zorder=4)  # fmt: skip
    if measured:
        n = max(measured, key=lambda flows: measured[flows])
        text = "1 − Δ/√n with Reno's own Δ;\n0: says nothing"
        look.note(left, text, (n, measured[n] * 100), (0, 4), ha="center", va="bottom", color=algorithms.color("reno"))
    left.set_ylim(0, 104)
    left.set_ylabel("utilization, p1 of 10-RTT windows (%)")
    _draw_floor(right, 100 * min(curve["floor"] for curve in present.values()), flows[0])
    _draw_legend(right, present, missing)
    return figure


def _draw_floor(ax: look.Axes, floor: float, at: float) -> None:
    ax.set_yscale("log")
    ax.set_ylim(bottom=floor / 2.5)
    ax.axhline(floor, color=GREY, linewidth=0.7, zorder=0)
    look.note(ax, "a packet of a window or less: in no fit", (at, floor), (0, -4), va="top", color=GREY)
    ax.set_ylabel("not used (%)")


def measured_bound(curve: Data) -> dict[int, float]:
    """Theorem 7 with the Delta of each number of flows."""
    return {n: many_flows.almost_fair_utilization(n, delta.value) for n, delta in curve.get("delta", {}).items()}


def _draw_curve(left: look.Axes, right: look.Axes, cc: str, curve: Data, step: float) -> None:
    shade, marker = algorithms.color(cc), algorithms.marker(cc)
    utilization = curve["utilization"]
    at = [n * step for n in utilization]
    look.interval_bars(left, at, [u.scaled(100) for u in utilization.values()], shade, marker)
    left.plot(at, [u.value * 100 for u in utilization.values()], color=shade, linewidth=0.5)
    look.interval_bars(right, at, [_lost(u, curve["floor"]) for u in utilization.values()], shade, marker)
    if curve["free"]:
        law = [curve["free"].at(n) * 100 for n in utilization]
        right.plot(list(utilization), law, color=shade, linewidth=0.6, zorder=1)


def _lost(used: Interval, floor: float) -> Interval:
    """1 - u in percent; values below the floor are drawn at the floor."""
    low, high = (None if end is None else 100 * max(1 - end, floor) for end in (used.high, used.low))
    return Interval(100 * max(1 - used.value, floor), low, high, used.runs)


def _draw_legend(ax: look.Axes, present: Data, missing: list[str]) -> None:
    laws = {cc: power_text(curve["free"]).replace(", ", "\n") if curve["free"] else "" for cc, curve in present.items()}
    look.legend_right(ax, laws, missing)
    ax.grid(axis="y", color=GREY, alpha=0.15, linewidth=0.5)


FIGURE = PaperFigure("figure_05b", CAPTION, SWEEPS, prepare, draw)
