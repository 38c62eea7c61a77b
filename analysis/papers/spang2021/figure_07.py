# SPDX-License-Identifier: MIT
"""Figure 7: distributions of the windows of 16 flows.

The shade is the range of windows that Theorem 4 assumes: uniform from 2/3 to 4/3 of the fair share (Appenzeller et al.,
3.1; Spang et al., 5.3).
"""

from __future__ import annotations

import numpy as np

from analysis.arithmetic.statistics import mean_interval
from analysis.figures import algorithms
from analysis.figures.common import BLACK, GREY, Data
from analysis.papers import look
from analysis.papers.facts import Fact
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.series import IS_MARKED, IS_ONE_BDP
from analysis.theory.single_flow import bdp_packets

CAPTION = "the windows of 16 Reno flows at every ACK, B = BDP, flow by flow, with the fair share (BDP + B) / n."
SWEEPS = ("ecn",)  # only the runs of this sweep that drop instead of marking
CC, FLOWS = "reno", 16
UNIFORM = (2 / 3, 4 / 3)  # least and largest window, in units of the fair share
TALLEST = 2.1  # height of the tallest distribution, in rows
PAPER_RANGES = "0-10 and 40-60 packets occur"


def prepare(runs: PaperRuns) -> Data:
    """The distribution of each flow's window in the first valid run; means over runs. Windows are in units of the fair
    share, (BDP + B) / n, or in packets.
    """
    conditions = (~IS_MARKED, IS_ONE_BDP)
    selected = runs.select(SWEEPS[0], *conditions, needs=("in_flight_mean_packets",), cc=CC, flows=FLOWS)
    if not selected:
        return {"flows": [], "absent": runs.absence(SWEEPS[0], CC), "facts": []}
    flows = list(selected[0].distributions_of_flows("in_flight_packets").values())
    flows.sort(key=lambda distribution: float(np.average(distribution[0], weights=distribution[1])))
    spreads, fair, (low, high) = [_spread(run) for run in selected], _fair(selected[0]), UNIFORM
    wide = "a loss halves a flow's window, and flows lose packets at different window sizes"
    acks = (
        "the mean is over ACKs, and a flow with a large window gets more ACKs; over time, windows add up to less than "
        "BDP + B"
    )
    rows = [
        Fact(what, paper, predicted, mean_interval(spread[key] for spread in spreads), unit, reason)
        for what, paper, predicted, key, unit, reason in (
            ("windows outside 2/3 to 4/3 of the fair share", PAPER_RANGES, 0.0, "outside", "of ACKs", wide),
            ("distance from the uniform distribution", "clearly not uniform", 0.0, "distance", "Kolmogorov's", wide),
            ("standard deviation of windows", "", (high - low) / 12**0.5, "deviation", "fair shares", wide),
            ("mean window", "close to (BDP + B) / n", 1.0, "mean", "fair shares", acks),
            ("least mean window of a flow", "some half the size", 1.0, "least_mean", "fair shares", ""),
            ("largest mean window of a flow", "some two to three times", 1.0, "largest_mean", "fair shares", ""),
            ("least window", "0-10", low * fair, "least", "packets", ""),
            ("largest window", "40-60", high * fair, "largest", "packets", ""),
        )
    ]
    return {"flows": flows, "fair": fair, "facts": rows}


def _fair(run: PaperRun) -> float:
    spec = run.experiment
    bdp = bdp_packets(spec.rate_bps, spec.rtt_ns, spec.wire_bytes)
    return float((bdp + run["buffer_packets"]) / run["flows"])


def _spread(run: PaperRun) -> Data:
    """How far the windows of one run spread, and how far they are from uniform. `least` and `largest` are in
    packets. All other windows are in units of the fair share.
    """
    fair = _fair(run)
    values, counts = run.distribution("in_flight_packets")
    shares = values / fair
    low, high = UNIFORM
    outside = counts[(shares < low) | (shares > high)].sum() / counts.sum()
    mean = np.average(shares, weights=counts)
    each = run.distributions_of_flows("in_flight_packets").values()
    means = [float(np.average(values, weights=counts)) for values, counts in each]
    return {
        "outside": float(outside), "mean": float(mean),
        "deviation": float(np.sqrt(np.average((shares - mean) ** 2, weights=counts))),
        "distance": _distance(shares, counts),
        "least": int(values[0]), "largest": int(values[-1]),
        "least_mean": min(means) / fair, "largest_mean": max(means) / fair,
    }  # fmt: skip


def _distance(shares: np.ndarray, counts: np.ndarray) -> float:
    """Kolmogorov-Smirnov distance: the largest difference between the distribution function of the windows and the
    uniform one.
    """
    low, high = UNIFORM
    uniform = np.clip((shares - low) / (high - low), 0, 1)
    upto = np.cumsum(counts) / counts.sum()
    below = np.concatenate(([0.0], upto[:-1]))
    return float(max(np.abs(upto - uniform).max(), np.abs(below - uniform).max()))


def draw(data: Data) -> look.Figure:
    """One row per flow, by mean window; all rows have one scale of height."""
    figure, ax = look.new_panel(look.COLUMN_IN, 3.9)
    if not data["flows"]:
        return look.absent(ax, text=data["absent"])
    fair, flows = data["fair"], data["flows"]
    ax.grid(visible=False)
    ax.axvspan(UNIFORM[0] * fair, UNIFORM[1] * fair, color="#E8E8E8", linewidth=0)
    ax.axvline(fair, color=BLACK, linewidth=0.8, linestyle="--", zorder=3 + 2 * len(flows))
    height = TALLEST / max(float((counts / counts.sum()).max()) for _, counts in flows)
    for row, (values, counts) in enumerate(flows):
        _draw_flow(ax, len(flows) - 1 - row, values, counts, height, zorder=3 + 2 * row)
    top = len(flows) - 1 + TALLEST
    largest = max(int(values[-1]) for values, _ in flows)
    ax.set_xlim(0, largest + 2)
    ax.set_ylim(-0.3, top + 1.3)
    ax.set_yticks([0, len(flows) - 1], [f"{len(flows)}th", "1st"])
    ax.set_ylabel("flows, by mean window (tick)", labelpad=-4)
    ax.set_xlabel("window (packets in flight at every ACK)")
    note = {"fontsize": look.LABEL_POINTS, "va": "top"}
    ax.text(fair, top + 1.2, f" fair share {fair:.1f}", ha="left", **note)
    ax.text(UNIFORM[0] * fair - 0.8, top + 1.2, "uniform,\nTheorem 4", ha="right", color=GREY, **note)
    return figure


def _draw_flow(ax: look.Axes, base: float, values: np.ndarray, counts: np.ndarray, height: float, zorder: int) -> None:
    first = int(values[0])
    full = np.zeros(int(values[-1]) - first + 3)
    full[values - first + 1] = counts * height / counts.sum()
    x = np.arange(len(full)) + first - 1.5
    ax.fill_between(
        x, base, base + full, step="post", color=algorithms.color(CC), alpha=0.8, linewidth=0, zorder=zorder
    )
    ax.step(x, base + full, where="post", color="white", linewidth=0.5, zorder=zorder + 1)
    mean = float(np.average(values, weights=counts))
    ax.plot([mean, mean], [base - 0.25, base + 0.35], color=BLACK, linewidth=1.2, zorder=zorder + 40)


FIGURE = PaperFigure("figure_07", CAPTION, SWEEPS, prepare, draw)
