# SPDX-License-Identifier: MIT
"""Figure 5b: utilization with a buffer of 20 packets against the number of flows, beside Theorem 7's 1 - Delta/sqrt(n):
for Delta = 1, and for the Delta that was measured; and how fast what is lost shrinks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.figures.common import BLACK, GREY, Data
from analysis.metrics import UTILIZATION_WINDOW_RTTS
from analysis.papers import look as common
from analysis.papers.series import ALGORITHMS, Series, bdp, series
from analysis.papers.spang2021.figure_05a import power_text
from analysis.statistics import Bounds, Interval, PowerLaw, power_law
from analysis.theory import many_flows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from analysis.papers.look import Fact
    from analysis.papers.stored_runs import Runs

SWEEPS = ("twenty-packets",)
SIDESTEP = 1.05


def prepare(runs: Runs) -> Data:
    """Of each algorithm: 1st percentile of utilization and Delta by flows, and laws of what is lost."""
    curves: Data = {}
    for cc in ALGORITHMS:
        found = runs.select(SWEEPS[0], needs=("utilization_p01",), cc=cc)
        if not found:
            curves[cc] = {"absent": common.absence(runs, SWEEPS[0], cc)}
            continue
        utilization = series(found, "flows", "utilization_p01")
        floor = max(1 / (UTILIZATION_WINDOW_RTTS * bdp(run)) for run in found)  # a packet of a window
        curves[cc] = {
            "floor": floor,
            "utilization": utilization,
            "delta": series(found, "flows", "delta"),
            "free": _law(utilization, floor, None),
            "root": _law(utilization, floor, -0.5),
        }
    return {"curves": curves, "provenance": runs.provenance()}


def _law(utilization: Series, floor: float, exponent: float | None) -> PowerLaw | None:
    """1 - u = c n^p where at least a packet of a window is lost: below that only its logarithm is large."""
    lost = {n: 1 - found.value for n, found in utilization.items()}
    points = [Bounds(n, share, share) for n, share in lost.items() if share >= floor]
    try:
        return power_law(points, exponent)
    except ValueError:
        return None


def draw(data: Data) -> Figure:
    """Left: utilization. Right: what is lost, both axes logarithmic, where a power is a line."""
    figure, (axes,) = common.new_figure(common.PAGE_IN, 2.9, 1, 2)
    left, right = axes
    present = {cc: curve for cc, curve in data["curves"].items() if "absent" not in curve}
    missing = [curve["absent"].replace("\n", " ") for curve in data["curves"].values() if "absent" in curve]
    if not present:
        for ax in axes:
            common.absent(ax, "no valid run")
        common.footer(figure, data["provenance"])
        return figure
    flows = sorted({n for curve in present.values() for n in curve["utilization"]})
    for ax in axes:
        ax.set_xscale("log", base=2)
        ax.set_xlim(flows[0] / 1.25, flows[-1] * 1.25)
        ax.set_xticks(flows, [str(n) for n in flows])
        ax.set_xlabel("flows n")
        ax.minorticks_off()
    for at, (cc, curve) in enumerate(present.items()):
        _draw_curve(left, right, cc, curve, SIDESTEP ** (at - (len(present) - 1) / 2))
    bound = [many_flows.almost_fair_utilization(n, 1) for n in flows]
    left.plot(flows, [u * 100 for u in bound], "--", color=BLACK, linewidth=0.9)
    right.plot(flows, [100 / n**0.5 for n in flows], "--", color=BLACK, linewidth=0.9)
    right.annotate("1/√n", (flows[-1], 100 / flows[-1] ** 0.5), xytext=(0, 9), textcoords="offset points",
                   ha="right", fontsize=common.LABEL_POINTS)  # fmt: skip
    left.annotate("1 − 1/√n", (flows[len(flows) // 2], bound[len(flows) // 2] * 100), xytext=(4, -8),
                  textcoords="offset points", fontsize=common.LABEL_POINTS)  # fmt: skip
    measured = measured_bound(present.get("reno", {}))
    left.plot(list(measured), [u * 100 for u in measured.values()], ":", color=common.color("reno"), linewidth=1.0,
              clip_on=False, zorder=4)  # fmt: skip
    if measured:
        n = max(measured, key=lambda flows: measured[flows])
        left.annotate("1 − Δ/√n with Reno's own Δ;\n0: says nothing", (n, measured[n] * 100), xytext=(0, 4),
                      textcoords="offset points", ha="center", va="bottom", fontsize=common.LABEL_POINTS,
                      color=common.color("reno"))  # fmt: skip
    left.set_ylim(0, 104)
    left.set_ylabel("utilization, p1 of 10-RTT windows (%)")
    _draw_floor(right, 100 * min(curve["floor"] for curve in present.values()), flows[0])
    _draw_legend(right, present, missing)
    common.footer(figure, data["provenance"])
    return figure


def _draw_floor(ax: Axes, floor: float, at: float) -> None:
    ax.set_yscale("log")
    ax.set_ylim(bottom=floor / 2.5)
    ax.axhline(floor, color=GREY, linewidth=0.7, zorder=0)
    ax.annotate("a packet of a window or less: in no fit", (at, floor), xytext=(0, -4), textcoords="offset points",
                va="top", fontsize=common.LABEL_POINTS, color=GREY)  # fmt: skip
    ax.set_ylabel("not used (%)")


def measured_bound(curve: Data) -> dict[int, float]:
    """Theorem 7 with the Delta of each number of flows."""
    return {n: many_flows.almost_fair_utilization(n, delta.value) for n, delta in curve.get("delta", {}).items()}


def _draw_curve(left: Axes, right: Axes, cc: str, curve: Data, step: float) -> None:
    shade, marker = common.color(cc), common.MARKERS[cc]
    found = curve["utilization"]
    at = [n * step for n in found]
    common.interval_bars(left, at, [_used(u) for u in found.values()], shade, marker)
    left.plot(at, [u.value * 100 for u in found.values()], color=shade, linewidth=0.5)
    common.interval_bars(right, at, [_lost(u, curve["floor"]) for u in found.values()], shade, marker)
    if curve["free"]:
        right.plot(list(found), [curve["free"].at(n) * 100 for n in found], color=shade, linewidth=0.6, zorder=1)


def _used(found: Interval) -> Interval:
    """In percent."""
    low, high = (None if end is None else 100 * end for end in (found.low, found.high))
    return Interval(100 * found.value, low, high, found.runs)


def _lost(found: Interval, floor: float) -> Interval:
    """In percent; what is below the floor is drawn at it."""
    low, high = (None if end is None else 100 * max(1 - end, floor) for end in (found.high, found.low))
    return Interval(100 * max(1 - found.value, floor), low, high, found.runs)


def _draw_legend(ax: Axes, present: Data, missing: list[str]) -> None:
    laws = {cc: power_text(curve["free"]).replace(", ", "\n") if curve["free"] else "" for cc, curve in present.items()}
    common.legend_right(ax, laws, missing)
    ax.grid(axis="y", color=GREY, alpha=0.15, linewidth=0.5)


def facts(data: Data) -> list[Fact]:
    """How what is lost shrinks, and the utilization of each number of flows beside Theorem 7 for Delta = 1."""
    rows = []
    for cc, curve in data["curves"].items():
        who = common.name(cc)
        if "absent" in curve:
            rows.append(common.Fact(curve["absent"].replace("\n", " "), "drawn in the paper", None, None, ""))
            continue
        free, root = curve["free"], curve["root"]
        if free:
            found = Interval(free.exponent, free.exponent_low, free.exponent_high, free.points)
            rows.append(common.Fact(f"{who}: exponent of 1 − u in n", "rate of 1/√n", -0.5, found, ""))
        if root:
            found = Interval(root.factor, root.factor_low, root.factor_high, root.points)
            what = f"{who}: c of 1 − u = c/√n (residuals of a factor {2.718281828**root.deviation:.2f})"
            rows.append(common.Fact(what, "Δ; slightly underpredicted", 1.0, found, ""))
        theorem = measured_bound(curve)
        for n, u in curve["utilization"].items():
            delta = curve["delta"].get(n)
            own = f" (1 − Δ/√n with its Δ of {delta.value:.3g}: {theorem[n]:.3g})" if delta else ""
            paper = "1 − 1/√n, slightly underpredicts"
            bound = many_flows.almost_fair_utilization(n, 1)
            rows.append(common.Fact(f"{who}, n = {n}: utilization, B = 20 packets{own}", paper, bound, u, ""))
    return rows
