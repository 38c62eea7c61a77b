# SPDX-License-Identifier: MIT
"""Figure 5a: least buffers against the number of flows, with fitted exponents."""

from __future__ import annotations

import math

from analysis.arithmetic.statistics import PowerLaw, mean_interval, power_law
from analysis.figures import algorithms
from analysis.figures.common import BLACK, GREY, Data
from analysis.papers import look
from analysis.papers.facts import Fact, by_algorithm
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.series import bdp, mean_window, pooled
from analysis.papers.spang2021.artifact import Published
from analysis.papers.spang2021.searches import NO_LEAST, NONEMPTY, USED, BufferBracket, least_buffers
from analysis.theory import many_flows, single_flow
from lib.errors import InputError

CAPTION = (
    "the least buffer with which 99 % of packets meet a queue that is not empty, against the number of flows (hollow: "
    "the least buffer with which the 1st percentile of utilization is at least 98 %). The exponent is fitted to the "
    "filled points where the mean window is at least four packets, twice the least window that Theorem 6 asks for. "
    "Dotted: some buffers are enough and larger ones are not, so there is no least buffer."
)
SWEEPS = (NONEMPTY.stem, USED.stem)
LEAST_WINDOW = 4.0  # packets; twice Theorem 6's least window, because windows vary by a factor of at least two
MANY = 4  # flows; with fewer flows, all flows often lose at once (`_together`). Chosen after seeing the points
PAPER = '"follows a square-root of n rule for TCP Reno"'  # 5.1, like the next line
PAPER_OTHERS = '"similar buffer requirements for a large numbers of flows (and smaller ... for smaller numbers"'
RULES = {"reno": "BDP", "cubic": "3/7 BDP", "scalable_50": "1/7 BDP", "bbr": "1/4 BDP"}  # Table 1
SIDESTEP = 1.06  # so that algorithms do not hide each other


def prepare(runs: PaperRuns) -> Data:
    """For each algorithm: the exponents, and the least buffer of each number of flows beside the rule."""
    curves = {cc: _curve(runs, cc) for cc in runs.paper.algorithms}
    published = {} if runs.beside is None else _published(runs.beside)
    exact = next((curve["bdp"] for curve in curves.values() if "bdp" in curve), math.nan)
    rows: list[Fact] = []
    for cc, who, curve in by_algorithm(curves, rows, "drawn in the paper"):
        law = curve["law"]
        if law:
            what = f"{who}: exponent of n, mean window of {LEAST_WINDOW:g} packets or more ({law.points} points)"
            rows.append(
                Fact(what, PAPER if cc == "reno" else PAPER_OTHERS, -0.5, law.exponent, "", headline=cc == "reno")
            )
        rows += _many(cc, curve)
        for n, least in curve["points"].items():
            window = curve["windows"][n]
            what = f"{who}, n = {n}: least buffer" + (f" (mean window {window.value:.3g})" if window else "")
            rule = single_flow.single_flow_buffer(cc, curve["bdp"]) if n == 1 else None
            predicted = many_flows.sqrt_rule(curve["bdp"], n) if rule is None else rule
            paper = RULES.get(cc, "") if n == 1 else "BDP/√n" if cc == "reno" else "similar for large n"
            if n in published.get(cc, {}):
                low, high = published[cc][n]
                paper += f"; published: {low} to {high} packets"
            rows.append(_fact(what, paper, predicted, least, headline=n == 1 and cc in RULES))
        for n, least in curve["used"].items():
            what = f"{who}, n = {n}: least buffer for a utilization of {USED.enough:g}"
            asked = single_flow.single_flow_buffer(cc, curve["bdp"], USED.enough) if n == 1 else None
            rows.append(_fact(what, "", asked, least))
    return {"curves": curves, "published": published, "bdp": exact, "facts": rows}


def _many(cc: str, curve: Data) -> list[Fact]:
    """The exponent from MANY flows on, and how often all flows lose together if they are few (2 to 2 MANY)."""
    law = curve["law_of_many"]
    if law is None or law.exponent.low is None:
        return []
    together = {n: share for n, share in curve["together"].items() if 1 < n <= 2 * MANY and share is not None}
    shares = ", ".join(f"{share:.0%} with {n} flows" for n, share in together.items())
    why = f"share of the queue's excursions in which all flows lose: {shares}" if shares else ""
    chosen = f"{law.points} points; this range was chosen after the points were known"
    what = f"{algorithms.name(cc)}: exponent of n from {MANY} flows on ({chosen})"
    return [Fact(what, "", -0.5, law.exponent, "", why)]


def _fact(what: str, paper: str, predicted: float | None, least: BufferBracket, headline: bool = False) -> Fact:
    return Fact(what, paper, predicted, least.interval, "packets", least.note, NO_LEAST, headline=headline)


def _published(beside: Published) -> dict[str, dict[int, tuple[int, int]]]:
    """For each algorithm and number of flows: the next smaller tried buffer (0 if there is none), and the published
    least buffer. Numbers of flows for which no tried buffer was enough are left out. In packets of 114 cells
    (artifact.py) the notebook's criterion equals ours.
    """
    brackets: dict[str, dict[int, tuple[int, int]]] = {}
    for (cc, flows), rows in beside.depths.group_by("cc", "flows", maintain_order=True):
        enough = rows.filter(rows["p01"] >= 1)["buffer_packets"].to_list()
        if enough:
            below = [buffer for buffer in rows["buffer_packets"] if buffer < min(enough)]
            brackets.setdefault(cc, {})[flows] = (max(below, default=0), min(enough))
    return brackets


def _curve(runs: PaperRuns, cc: str) -> Data:
    points = least_buffers(runs, NONEMPTY, cc)
    if not points:
        return {"absent": runs.absence(NONEMPTY.stem, cc)}
    windows = {n: mean_interval(mean_window(run) for run in least.runs_at_least) for n, least in points.items()}
    fitted = [
        n for n, window in windows.items() if points[n].is_known and window is not None and window.value >= LEAST_WINDOW
    ]
    many = [n for n in fitted if n >= MANY]
    return {
        "bdp": bdp(next(iter(points.values())).runs[0]),
        "points": points,
        "used": least_buffers(runs, USED, cc),
        "windows": windows,
        "fitted": fitted,
        "law": power_law([points[n].bounds for n in fitted]),
        "law_of_many": power_law([points[n].bounds for n in many]) if many != fitted else None,
        "together": {n: _together(least.runs_at_least, n) for n, least in points.items()},
    }


def _together(runs: list[PaperRun], flows: int) -> float | None:
    """Share of the queue's excursions in which all flows lose (are synchronized). None if the runs lack the data."""
    try:
        losers, counts = pooled(runs, "flows_signalled_per_excursion")
    except InputError:  # only the run's row in the run table is stored
        return None
    return float(counts[losers == flows].sum() / counts.sum()) if len(counts) else None


def draw(data: Data) -> look.Figure:
    """Both axes logarithmic; each bar spans the bounds of a least buffer (analysis/papers/least_buffer.py)."""
    figure, ax = look.new_panel(look.PAGE_IN * 0.72, 3.3)
    ax.set_yscale("log")
    ax.set_xlabel("flows n")
    ax.set_ylabel("least buffer (packets)")
    present, missing = look.split(data["curves"])
    if not present:
        return look.absent(ax)
    flows = sorted({n for curve in present.values() for n in curve["points"]})
    look.log2_axis(ax, flows, 1.3)
    for at, (cc, curve) in enumerate(present.items()):
        step = SIDESTEP ** (at - (len(present) - 1) / 2)
        _draw_points(ax, cc, curve, step)
        for n, (_, least) in data["published"].get(cc, {}).items():
            ax.plot(n * step, least, "x", color=algorithms.color(cc), markersize=3.2, markeredgewidth=0.7)
    _draw_rules(ax, data, present, flows)
    _draw_legend(ax, present, missing, bool(data["published"]))
    return figure


def _draw_points(ax: look.Axes, cc: str, curve: Data, step: float) -> None:
    shade, marker = algorithms.color(cc), algorithms.marker(cc)
    for points, face in ((curve["used"], "white"), (curve["points"], shade)):
        for n, least in points.items():
            if not least.is_known:
                ax.plot([n * step] * 2, least.contradiction, ":", color=shade, linewidth=1.1)
                continue
            point = least.bounds
            low, high = max(point.low, 1.0), min(point.high, 4 * curve["bdp"])
            ax.plot([n * step] * 2, [low, high], color=shade, linewidth=1.1, solid_capstyle="butt")
            if point.censored:  # the least buffer is known on one side only
                ax.plot(n * step, low if point.low > 0 else high, "_", color=shade, markersize=6, markeredgewidth=1.2)
            else:
                ax.plot(n * step, point.middle, marker, color=shade, markerfacecolor=face, markeredgewidth=0.8)
    if curve["law"]:
        ax.plot(curve["fitted"], [curve["law"].at(n) for n in curve["fitted"]], color=shade, linewidth=0.6, zorder=1)


def _draw_rules(ax: look.Axes, data: Data, present: Data, flows: list[int]) -> None:
    ax.plot(flows, [many_flows.sqrt_rule(data["bdp"], n) for n in flows], "--", color=BLACK, linewidth=0.9)
    edge = window_edge(present.get("reno", {}))
    if edge is not None:
        ax.axvspan(edge, flows[-1] * 1.3, color="#F0F0F0", linewidth=0, zorder=0)
        ax.annotate(
            f"Reno's mean window\nbelow {LEAST_WINDOW:g} packets", (0.985, 0.985), xycoords="axes fraction", va="top",
            ha="right", fontsize=look.LABEL_POINTS - 0.5, color=GREY,
        )  # fmt: skip


def window_edge(curve: Data) -> float | None:
    """The geometric mean of the largest n whose mean window is at least LEAST_WINDOW packets, and the smallest n whose
    mean window is smaller. None without both.
    """
    small = [n for n, window in curve.get("windows", {}).items() if window and window.value < LEAST_WINDOW]
    large = [n for n, window in curve.get("windows", {}).items() if window and window.value >= LEAST_WINDOW]
    return math.sqrt(max(large) * min(small)) if small and large else None


def _draw_legend(ax: look.Axes, present: Data, missing: list[str], beside: bool) -> None:
    from matplotlib.lines import Line2D

    more = [Line2D([], [], color=BLACK, linestyle="--", label="BDP/√n")]
    if any(curve["used"] for curve in present.values()):
        text = f"hollow: {USED.enough:.0%} used"
        more.append(Line2D([], [], color=GREY, marker="o", markerfacecolor="white", linestyle="none", label=text))
    if any(not least.is_known for curve in present.values() for least in curve["points"].values()):
        more.append(Line2D([], [], color=GREY, linestyle=":", label=NO_LEAST))
    if beside:
        text = "published, least\nof the buffers tried"
        more.append(Line2D([], [], color=GREY, marker="x", linestyle="none", label=text))
    laws = {cc: power_text(curve["law"]) if curve["law"] else "" for cc, curve in present.items()}
    look.legend_right(ax, laws, missing, more)


def power_text(law: PowerLaw) -> str:
    """n to its exponent, with the interval."""
    exponent, low, high, _ = law.exponent
    text = f"n^({exponent:.2f})" + (f", {low:.2f} to {high:.2f}" if low is not None and high is not None else "")
    return text.replace("-", "\u2212")


FIGURE = PaperFigure("figure_05a", CAPTION, SWEEPS, prepare, draw)
