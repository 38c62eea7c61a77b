# SPDX-License-Identifier: MIT
"""Section 3: do windows move together? And section 3.2's 10,000 flows at 2.5 Gb/s."""

from __future__ import annotations

from analysis.figures.common import BLACK, Data
from analysis.papers import look
from analysis.papers.appenzeller2004.profiles import COLORS, NAMES, PROFILES
from analysis.papers.facts import Fact
from analysis.papers.paper import PaperFigure
from analysis.papers.series import mean_bdp, series
from analysis.papers.stored_runs import StoredRun, StoredRuns
from analysis.statistics import mean_interval
from analysis.theory import gaussian

CAPTION = (
    "synchronization S = (Var(ΣW) / ΣVar(W) - 1) / (n - 1) of the windows against the number of flows: 1 if all "
    "windows are equal at all times, 0 if they are independent. The mean window is the same for all n."
)
STEM, MANY_STEM = "synchronization", "ten-thousand"
PRINTED_MANY = {521: "98.99 %", 1042: "99.988 % (printed 99.99988)"}


def prepare(runs: StoredRuns) -> Data:
    """S and the share of flows that lose, by sender and flows; utilization of 10,000 flows by buffer."""
    selected, many = {profile: runs.select(STEM, profile=profile) for profile in PROFILES}, runs.select(MANY_STEM)
    return {
        "provenance": runs.provenance(),
        "synchronization": {profile: series(of, "flows", _synchronization) for profile, of in selected.items()},
        "excursions": {profile: series(of, "flows", _share_of_flows) for profile, of in selected.items()},
        "many": [(run["flows"], run["buffer_packets"], mean_bdp(run), run["utilization_mean"]) for run in many],
    }


def _synchronization(run: StoredRun) -> float | None:
    value = run.value("aggregate_window_packets", "synchronization")
    return None if value is None else float(value)


def _share_of_flows(run: StoredRun) -> float | None:
    """Mean share of the flows that lose in an excursion of the queue to its limit."""
    losers, counts = run.distribution("flows_signalled_per_excursion")
    return float((losers * counts).sum() / counts.sum() / run["flows"]) if len(counts) else None


def draw(data: Data) -> look.Figure:
    """S left, the share of flows that lose together right."""
    figure, axes = look.new_figure(look.PAGE_IN, 2.6, 1, 2)
    for ax, key, text in (
        (axes[0, 0], "synchronization", "synchronization S"),
        (axes[0, 1], "excursions", "flows that lose in an excursion\n(share of all)"),
    ):
        measured = {profile: points for profile, points in data[key].items() if points}
        if not measured:
            look.absent(ax)
            continue
        look.log2_axis(ax, sorted({n for points in measured.values() for n in points}), 1.2)
        ax.tick_params(axis="x", rotation=45)
        simulated = data.get("ns3", {}).get(key, {})
        for profile, points in measured.items():
            look.interval_bars(ax, points, points.values(), COLORS[profile], label=NAMES[profile])
            of_ns3 = simulated.get(profile, {})
            look.ns3_points(ax, of_ns3, of_ns3.values(), COLORS[profile])
        ax.legend(loc="upper right", frameon=False)
        ax.axhline(0, color=BLACK, linewidth=0.6)
        ax.set_ylim(top=1.05)
        ax.set_xlabel("flows n")
        ax.set_ylabel(text)
    return figure


def facts(data: Data) -> list[Fact]:
    """S and the shares of flows, then the utilization of 10,000 flows beside equation (6)."""
    rows = []
    for profile, points in data["synchronization"].items():
        for n, estimate in points.items():
            who = f"{NAMES[profile]}, n = {n}"
            printed = "in phase" if n < 100 else "very rare" if n >= 500 else ""
            predicted = 0.0 if n >= 500 else None
            rows.append(Fact(f"{who}: S", printed, predicted, estimate, "", headline=n == 500))
            losing = data["excursions"][profile].get(n)
            rows.append(Fact(f"{who}: flows that lose in an excursion", "", None, losing, "of all"))
    for flows, buffer, bdp, used in data["many"]:
        what = f"{flows} flows, B = {buffer}: utilization"
        model = 100 * gaussian.utilization(bdp, buffer, flows)
        measured = mean_interval([None if used is None else 100 * used])
        rows.append(
            Fact(what, PRINTED_MANY.get(buffer, ""), model, measured, "%", headline=buffer == min(PRINTED_MANY))
        )
    return rows


FIGURE = PaperFigure("section_3", CAPTION, (STEM, MANY_STEM), prepare, draw, facts)
