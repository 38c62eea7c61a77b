# SPDX-License-Identifier: MIT
"""Utilization against one quantity: of Reno and paced Reno against buffer and number of flows (Figures 1, 3 and 4),
behind slow access links (5a, 5b).
"""

from __future__ import annotations

from itertools import pairwise

from analysis.figures.common import BLACK, Data
from analysis.papers import crossing, curves, look
from analysis.papers.curves import RIGHT, WIDE, Curve, Line, Panel, Shape, numbered
from analysis.papers.enachescu2006 import model
from analysis.papers.enachescu2006.model import ACCESS, BUFFER_AXIS, MODELS, PACED, RENO, USED, by_sender, sender
from analysis.papers.facts import Fact, each, exactly
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.series import differences, grouped, series

ENOUGH = 0.8  # the level at which the paper compares buffers
CAPPED, BEHIND_LINKS = ("window_packets",), ("access_bps",)  # columns that a figure needs
WINDOW = 32  # packets, the largest


# Figure 1 -------------------------------------------------------------------------------------------------------------

CAPTION_1 = (
    "utilization against the buffer, 40 flows with windows of 32 packets at most on 100 Mb/s, 90 to 110 ms. Lines: the "
    "TCP equation with the losses of M/M/1/B (dotted) and of M/D/1/B (dashed)."
)
FLOWS, BDP = 40, 1250
MODEL_BUFFERS = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 30, 40, 60, 100, 200, 400, 1250)


def _by_buffer(runs: PaperRuns) -> Data:
    """u with 10 packets of buffer, the least buffers for 80 %, and the difference between both senders with a BDP; then
    fewer flows.
    """
    by_flows = grouped(runs.select("buffer", needs=CAPPED), "flows")
    most = by_flows.pop(FLOWS, [])
    if not most:
        return {"panels": {}, "facts": []}
    bdp, drawn = model.bdp(most[0]), by_sender(most, (RENO, PACED), "buffer_packets")
    lines = [
        Line(MODEL_BUFFERS, [used(FLOWS, bdp, buffer, WINDOW) for buffer in MODEL_BUFFERS], name, style)
        for name, style, used in MODELS
    ]
    at_10 = {name: {10: curve.points[10]} for name, curve in drawn.items() if 10 in curve.points}
    equal = model.used_with_equal(FLOWS, bdp, 10, WINDOW)
    rows = each(at_10.get(PACED, {}), "paced Reno, B = {}: u", "more than 0.8", equal, headline=True)
    rows += each(at_10.get(RENO, {}), "Reno, B = {}: u")
    for name, printed in ((RENO, "about 100"), (PACED, "about 10")):
        least = crossing.of_utilization((run for run in most if sender(run) == name), ENOUGH)
        what = f"{name}: least buffer for u of {ENOUGH:g} or more"
        rows.append(least.fact(what, printed, None)._replace(headline=name == RENO))
    apart = differences(most, sender, PACED, RENO, "buffer_packets", USED)
    at_bdp = {BDP: apart[BDP]} if BDP in apart else {}
    rows += each(at_bdp, "u of paced Reno minus u of Reno, B = {} (a BDP)", "no difference", 0.0)
    for flows, of in by_flows.items():
        offered = min(model.peak_load(of[0]), 1.0)
        for name, curve in by_sender(of, (RENO, PACED), "buffer_packets").items():
            predicted = {buffer: offered for buffer in curve.points if buffer >= BDP}
            rows += each(curve.points, f"{name}, N = {flows}, B = {{}}: u", predicted=predicted.get)
    return {"panels": {"": Panel(drawn, lines)}, "bdp": bdp, "facts": rows}


def _mark_bdp(ax: look.Axes, _: Panel, data: Data) -> None:
    ax.axvline(data["bdp"], color=BLACK, linewidth=0.6)
    look.note(ax, "BDP", (data["bdp"], 0.05), (-22, 0))


FIGURE_1 = curves.figure(
    "figure_01", CAPTION_1, ("buffer",), _by_buffer,
    Shape(BUFFER_AXIS, size_in=(WIDE, 3.0), level=ENOUGH, more=_mark_bdp,
          legend={"loc": "lower right", "bbox_to_anchor": (0.93, 0.08)}),
)  # fmt: skip

# Figure 3 -------------------------------------------------------------------------------------------------------------

CAPTION_3 = (
    "utilization against the number of flows on a link of 3.2 Mb/s a flow: a peak load of 0.8; 10 packets of buffer, "
    "windows of 32 at most. Lines: the TCP equation with M/M/1/B (dotted) and M/D/1/B (dashed)."
)
BUFFER, PACKETS_A_FLOW = 10, 40.0  # packets; the second is the BDP of a flow's share of the link
PRINTED_CARRIED = {PACED: "more than 0.85", RENO: "about 0.25"}  # the paper's theta
PRINTED = {PACED: "about 0.70", RENO: "about 0.20", ACCESS: "very close to paced"}
PEAK_LOAD = 0.8
MANY = 30  # least N for the prediction, for theta, and for the distance of access links from pacing


def _by_flows(runs: PaperRuns) -> Data:
    """u and theta of each sender by number of flows; the largest distance of access links from pacing."""
    selected, rows = runs.select("flows", needs=CAPPED), []
    by_name = by_sender(selected, (PACED, ACCESS, RENO), "flows")
    flows = sorted({n for curve in by_name.values() for n in curve.points})
    heights = {name: used(1, PACKETS_A_FLOW, BUFFER, WINDOW) for name, _, used in MODELS}
    ends = flows[:1] + flows[-1:]
    lines = [Line(ends, [heights[name]] * len(ends), name, style) for name, style, _ in MODELS]
    # Evenly paced flows queue at most one packet each, so no packet is lost if N <= B.
    paced = {n: PEAK_LOAD for n in flows if n <= BUFFER} | {n: heights[model.EQUAL] for n in flows if n >= MANY}
    for name, curve in by_name.items():
        predicted = paced.get if name == PACED else None
        rows += each(curve.points, f"{name}, N = {{}}: u", PRINTED[name], predicted, headline={100: True}.get)
    for name, curve in by_sender(selected, PRINTED_CARRIED, "flows", model.effective_utilization).items():
        many = {n: estimate for n, estimate in curve.points.items() if n >= MANY}
        rows += each(many, f"{name}, N = {{}}: share of the peak load, θ", PRINTED_CARRIED[name])
    differ = differences(selected, sender, ACCESS, PACED, "flows", USED)
    if apart := [abs(point.value) for n, point in differ.items() if n >= MANY]:
        what = f"largest distance of access links from pacing, N of {MANY} or more"
        rows.append(Fact(what, "very close", 0.0, exactly(max(apart)), "", over_points=True))
    return {"panels": {"": Panel(by_name, lines)}, "facts": rows}


FIGURE_3 = curves.figure("figure_03", CAPTION_3, ("flows",), _by_flows, Shape("flows N", legend=RIGHT))

# Figure 4 -------------------------------------------------------------------------------------------------------------

CAPTION_4 = (
    "utilization of paced Reno against the buffer, 20 to 200 flows on 100 Mb/s, windows of 32 packets at most. Dashed: "
    "the TCP equation with M/D/1/B."
)
PRINTED_4 = {20: "about 0.5", 40: "0.8 to 0.9", 100: "not below 0.8", 200: "not below 0.8"}
FACTS_AT = (10, 15)  # packets of buffer
FEW, MORE = 40, (100, 200)
SIGN_UP_TO, SIGN_FROM = 12, 15  # packets of buffer: in the paper more flows raise u up to 12, and lower u from 15 on


def _paced_flows(runs: PaperRuns) -> Data:
    """u with 10 and 15 packets beside M/D/1/B, and u of 100 and 200 flows minus u of 40."""
    selected = runs.select("paced-flows", needs=CAPPED, pacing="exact")
    drawn, rows = {}, []
    for n, of in grouped(selected, "flows").items():
        points, bdp = series(of, "buffer_packets", USED), model.bdp(selected[0])
        theory = {buffer: model.used_with_equal(n, bdp, buffer, WINDOW) for buffer in points}
        drawn[f"N = {n}"] = Curve(points, theory=theory)
        shown = {buffer: points[buffer] for buffer in FACTS_AT if buffer in points}
        said = {FACTS_AT[0]: PRINTED_4.get(n, ""), FACTS_AT[1]: "0.75 or more" if n > 20 else ""}
        rows += each(shown, f"N = {n}, B = {{}}: u", said.get, theory.get, headline=n == 100)

    def sign(buffer: int) -> str:
        return "more" if buffer <= SIGN_UP_TO else "less" if SIGN_FROM <= buffer <= 100 else ""

    for n in MORE:
        more = differences(selected, "flows", n, FEW, "buffer_packets", USED)
        rows += each(more, f"u of {n} flows minus u of {FEW} flows, B = {{}}", sign)
    return {"panels": {"": Panel(numbered(drawn))}, "facts": rows}


FIGURE_4 = curves.figure(
    "figure_04", CAPTION_4, ("paced-flows",), _paced_flows,
    Shape(BUFFER_AXIS, size_in=(WIDE, 3.0), legend={"loc": "lower right"}),
)  # fmt: skip

# Figure 5a ------------------------------------------------------------------------------------------------------------

CAPTION_5A = (
    "utilization against the number of flows, Reno with uncapped windows behind links of 5 Mb/s; these links together "
    "have 0.5 to 2 times the rate of the bottleneck, whose buffer is 10 packets."
)
LEAST_FLOWS = 20  # least N for which u must rise with the load


def offered(run: PaperRun) -> float:
    """Rate of all access links together / rate of the bottleneck."""
    return round(run["flows"] * run["access_bps"] / run["rate_bps"], 2)


def _by_load(runs: PaperRuns) -> Data:
    """The smallest step of u between neighbouring loads; then u at each load. The TCP equation predicts u of the most
    flows, with windows of one BDP of the access link, the most that a flow can send through it.
    """
    by_load, rows, each_load = {}, [], []
    for load, of in grouped(runs.select("loads", needs=BEHIND_LINKS), offered).items():
        points, share = series(of, "flows", USED), model.bdp(of[-1]) / of[-1]["flows"]
        predicted = model.used_with_equal(1, share, of[-1]["buffer_packets"], load * share)
        by_load[f"load {load:g}"] = Curve(points)
        theory = {n: predicted for n in points if n == max(points)}
        each_load += each(points, f"load {load:g}, N = {{}}: u", predicted=theory.get)
    for n in sorted({n for curve in by_load.values() for n in curve.points if n >= LEAST_FLOWS}):
        used = [curve.points[n].value for curve in by_load.values() if n in curve.points]
        if len(used) > 1:
            steps = [after - before for before, after in pairwise(used)]
            what = f"N = {n}: smallest step of u from one load to the next larger ({len(steps)} steps)"
            rows.append(Fact(what, "above 0", None, exactly(min(steps)), "", headline=n == 100, over_points=True))
    return {"panels": {"": Panel(numbered(by_load))}, "facts": rows + each_load}


FIGURE_5A = curves.figure("figure_05a", CAPTION_5A, ("loads",), _by_load, Shape("flows N", legend=RIGHT))

# Figure 5b ------------------------------------------------------------------------------------------------------------

CAPTION_5B = (
    "utilization against the rate of each flow's access link; Reno with large windows on 1 Gb/s, 10 packets of buffer. "
    "Dashed: the load that the access links offer."
)
CARRIED = 0.95  # the curve counts as linear while the link carries this share of the access links' rates
MAIN = 100  # number of flows in the paper's text


def _by_access(runs: PaperRuns) -> Data:
    """By access rate (Mb/s): the largest one that the link carries almost in full, the decline beyond it, and u."""
    selected = runs.select("access", needs=BEHIND_LINKS)
    by_flows, rows = {}, []
    for n, of in grouped(selected, "flows").items():
        points = {bps / 1e6: point for bps, point in series(of, "access_bps", USED).items()}
        full = selected[0]["rate_bps"] / 1e6 / n
        theory = {rate: rate / full for rate in (*points, full) if rate <= full}
        by_flows[f"N = {n}"] = Curve(points, theory=theory)
        if n != MAIN or not points:
            continue
        carried = [rate for rate, point in points.items() if point.value >= CARRIED * theory.get(rate, 1.0)]
        decline = points[max(points)].value - max(point.value for point in points.values())
        what = f"N = {n}: largest access rate at which {100 * CARRIED:.0f} % of the load is carried"
        largest = exactly(max(carried)) if carried else None
        rows.append(Fact(what, "8 to 9 Mb/s", None, largest, "Mb/s", headline=True, over_points=True))
        what = f"N = {n}: u with links of {max(points):g} Mb/s minus the largest u"
        rows.append(Fact(what, "gradual decline", None, exactly(decline), "", over_points=True))
        below_full = {rate: load for rate, load in theory.items() if load < 1}
        rows += each(points, f"N = {n}, access links of {{:g}} Mb/s: u", predicted=below_full.get)
    return {"panels": {"": Panel(numbered(by_flows), [Line((), (), "offered", "--")])}, "facts": rows}


FIGURE_5B = curves.figure(
    "figure_05b", CAPTION_5B, ("access",), _by_access,
    Shape("rate of each access link (Mb/s)", legend={"loc": "lower center"}),
)  # fmt: skip
