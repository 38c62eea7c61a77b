# SPDX-License-Identifier: MIT
"""The sum of many windows over time: its density beside the normal distribution (Figure 8), the sum beside the queue
plus the BDP, which coincide while the link is busy (Figure 9), and whether windows move together (section 3).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from analysis.arithmetic.statistics import mean_interval
from analysis.figures.common import BLACK, BLUE, GREY, ORANGE, Data
from analysis.papers import look
from analysis.papers.appenzeller2004.terms import COLORS, NAMES, by_profile, synchronization
from analysis.papers.facts import Fact, absent, exactly
from analysis.papers.packet_trace import PacketTrace, latest
from analysis.papers.paper import PaperFigure
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.series import grouped, mean_bdp, series
from analysis.theory import gaussian

STEM, BY_FLOWS = "aggregate", "synchronization"
Held = tuple[np.ndarray, np.ndarray]  # (values in ascending order, ns at each value)

# Figure 8 -------------------------------------------------------------------------------------------------------------

CAPTION_8 = (
    "density over time of the sum of the windows (packets in flight) of 100 flows, and the normal distribution with "
    "its mean and deviation; a panel for each sender. Dotted: below the BDP the link is idle, above BDP + B the queue "
    "is full."
)
ENOUGH = 0.05  # largest distance from the normal distribution that counts as normal
BARS = 60


class Sum(NamedTuple):
    """The sum of windows of one run: time at each value, its moments beside the model's deviation, and its distance
    from the normal distribution.
    """

    flows: int
    buffer: int
    bdp: float
    held: Held
    mean: float
    deviation: float
    distance: float
    model: float
    synchronization: float | None


def moments(held: Held) -> tuple[float, float]:
    """(mean, standard deviation) over time."""
    values, ns = held
    mean = float(np.average(values, weights=ns))
    return mean, float(np.sqrt(np.average((values - mean) ** 2, weights=ns)))


def distance_from_normal(held: Held) -> float:
    """Kolmogorov's distance: the largest difference between the distribution function and the normal one with the same
    mean and deviation, taken halfway through each value's step (values are whole packets).
    """
    values, ns = held
    mean, deviation = moments(held)
    upto = np.cumsum(ns) / ns.sum()
    middle = upto - ns / ns.sum() / 2
    return float(np.abs(middle - special.ndtr((values - mean) / deviation)).max())


def _sum(run: PaperRun) -> Sum:
    held, bdp, buffer = run.distribution("aggregate_window_over_time_packets"), mean_bdp(run), run["buffer_packets"]
    model = gaussian.queue_deviation(bdp, buffer, run["flows"])
    distance = distance_from_normal(held)
    return Sum(run["flows"], buffer, bdp, held, *moments(held), distance, model, synchronization(run))


def _sums(runs: PaperRuns) -> Data:
    """By sender: distance from normal and deviation of the first run of the sweep `aggregate`, which is drawn, and of
    all runs by number of flows.
    """
    drawn, by_flows, rows = by_profile(runs, STEM), by_profile(runs, BY_FLOWS), []
    sums = {profile: _sum(of[0]) for profile, of in drawn.items() if of}
    for profile, who in NAMES.items():
        if profile in sums:
            rows += _facts(f"{who}, drawn run, ", [sums[profile]], headline=True)
        groups = {n: [_sum(run) for run in same] for n, same in grouped(by_flows[profile], "flows").items()}
        for same in groups.values():
            rows += _facts(f"{who}, ", same, headline=False)
        normal_from = [n for n, same in groups.items() if all(of.distance <= ENOUGH for of in same)]
        what = f"{who}: least number of flows with a distance of {ENOUGH:g} or less in all runs"
        if normal_from:
            rows.append(Fact(what, "", None, exactly(float(min(normal_from))), "flows"))
        elif groups:
            rows.append(absent(f"{what}: none of {', '.join(map(str, groups))}"))
    return {"drawn": sums, "facts": rows}


def _facts(prefix: str, runs: list[Sum], headline: bool) -> list[Fact]:
    who, model = f"{prefix}n = {runs[0].flows}", runs[0].model
    distance, deviation, together = (
        mean_interval(getattr(of, name) for of in runs) for name in ("distance", "deviation", "synchronization")
    )
    bound = "(BDP + B)/(3√3√n) at most"
    return [
        Fact(f"{who}: distance from the normal distribution", "normal", 0.0, distance, "Kolmogorov's"),
        Fact(f"{who}: deviation of the sum", bound, model, deviation, "packets", headline=headline),
        Fact(f"{who}: synchronization S", "", 0.0, together, ""),
    ]


def _draw_sums(data: Data) -> look.Figure:
    """A panel for each sender."""
    if not data["drawn"]:
        return look.absent(look.new_panel(look.COLUMN_IN, 2.6)[1])
    figure, axes = look.new_figure(look.PAGE_IN, 2.6, 1, len(data["drawn"]))
    for ax, (profile, of) in zip(axes[0], data["drawn"].items(), strict=True):
        values, ns = of.held
        heights, edges = np.histogram(values, bins=BARS, weights=ns / ns.sum(), density=False)
        ax.stairs(heights / np.diff(edges), edges, fill=True, color=COLORS[profile], alpha=0.6, label="measured")
        x = np.linspace(edges[0], edges[-1], 300)
        normal = np.exp(-(((x - of.mean) / of.deviation) ** 2) / 2) / of.deviation / np.sqrt(2 * np.pi)
        ax.plot(x, normal, color=BLACK, label="normal")
        for at, text in ((of.bdp, "BDP"), (of.bdp + of.buffer, "BDP + B")):
            ax.axvline(at, color=GREY, linestyle=":", linewidth=0.8)
            look.note(ax, text, (at, 1.0), (2, 5), xycoords=("data", "axes fraction"), color=GREY)
        ax.set_xlabel("sum of all windows (packets)")
        ax.set_ylim(bottom=0)
        ax.set_title(NAMES[profile])
    axes[0, 0].set_ylabel("density over time")
    axes[0, 0].legend(loc="upper left", frameon=False)
    return figure


FIGURE_8 = PaperFigure("figure_08", CAPTION_8, (STEM, BY_FLOWS), _sums, _draw_sums)

# Figure 9 -------------------------------------------------------------------------------------------------------------

CAPTION_9 = (
    "the sum of the windows (packets in flight) of 100 flows over time, and the queue, raised by the BDP; a panel for "
    "each sender."
)
POINTS = 3000  # times at which sum and queue are compared


class Sampled(NamedTuple):
    """Sum of windows and queue (packets) at POINTS times of the measurement window."""

    total: list[int]
    queue: list[int]


def _over_time(runs: PaperRuns) -> Data:
    """Sum and queue of each sender's first run: correlation, and the packets in flight that are not in the queue."""
    curves, rows = {}, []
    for profile, of in by_profile(runs, STEM).items():
        if not of:
            continue
        run, who = of[0], NAMES[profile]
        trace, sampled = PacketTrace(run), run.measure("sum of windows", Sampled, _sample)
        total, queue = np.array(sampled.total), np.array(sampled.queue)
        time_s = (_grid_ns(trace) - trace.start_ns) / 1e9
        curves[profile] = {"time_s": time_s, "total": total, "queue": queue, "bdp": mean_bdp(run)}
        correlation, outside = float(np.corrcoef(total, queue)[0, 1]), float(np.mean(total - queue))
        what = f"{who}: correlation of the sum of windows and the queue"
        rows.append(Fact(what, "one curve", 1.0, exactly(correlation), ""))
        what = f"{who}: mean of the sum of windows less the queue (predicted: flows' rates times their RTTs)"
        in_pipe = run.measure("packets in the pipe", float, _in_pipe)
        rows.append(Fact(what, "BDP", in_pipe, exactly(outside), "packets"))
    return {"curves": curves, "facts": rows}


def _grid_ns(trace: PacketTrace) -> np.ndarray:
    return np.linspace(trace.start_ns, trace.end_ns, POINTS, endpoint=False).astype(np.int64)


def _sample(run: PaperRun) -> Sampled:
    """Reads tables of the run."""
    trace = PacketTrace(run)
    grid = _grid_ns(trace)
    total = np.zeros(POINTS, dtype=np.int64)
    for flow in trace.flows:
        total += latest(grid, *trace.window(flow["id"]))
    queue = latest(grid, *trace.queue_steps(trace.start_ns - trace.longest_rtt_ns, trace.end_ns))
    return Sampled(total.tolist(), queue.tolist())


def _in_pipe(run: PaperRun) -> float:
    """Packets on the path but not in the queue, by Little's law: each flow's rate times its base RTT, summed."""
    flows, delays_ns = run.summary["flows"], run.experiment.extra_delays_ns
    idle_ns = zip(flows, delays_ns or [0] * len(flows), strict=True)
    packets_ns = sum(flow["packets"] * (run["rtt_ns"] + more) for flow, more in idle_ns)
    return float(packets_ns / 1e9 / run.summary["measured_s"])


def _draw_over_time(data: Data) -> look.Figure:
    """A panel for each sender."""
    if not data["curves"]:
        return look.absent(look.new_panel(look.PAGE_IN, 2.6)[1])
    rows = len(data["curves"])
    figure, axes = look.new_figure(look.PAGE_IN, 0.6 + 2.0 * rows, rows, sharex=True)
    for ax, (profile, curves) in zip(axes[:, 0], data["curves"].items(), strict=True):
        ax.plot(curves["time_s"], curves["total"], color=BLUE, label="sum of all windows")
        ax.plot(curves["time_s"], curves["queue"] + curves["bdp"], color=ORANGE, linewidth=0.6, label="queue + BDP")
        look.level(ax, curves["bdp"], "BDP")
        ax.set_xlim(0, curves["time_s"][-1])
        ax.set_ylabel(f"{NAMES[profile]}\n(packets)")
    axes[0, 0].legend(loc="upper right", ncols=2, frameon=False)
    axes[-1, 0].set_xlabel("time (s)")
    figure.align_ylabels()
    return figure


FIGURE_9 = PaperFigure("figure_09", CAPTION_9, (STEM,), _over_time, _draw_over_time)

# Section 3 ------------------------------------------------------------------------------------------------------------

CAPTION = (
    "synchronization S = (Var(ΣW) / ΣVar(W) - 1) / (n - 1) of the windows against the number of flows: 1 if all "
    "windows are equal at all times, 0 if they are independent. The mean window is the same for all n."
)
MANY_STEM = "ten-thousand"  # section 3.2's 10,000 flows at 2.5 Gb/s
PRINTED_MANY = {521: "98.99 %", 1042: "99.988 % (printed 99.99988)"}
TOGETHER = {"synchronization": "synchronization S",
            "excursions": "flows that lose in an excursion\n(share of all)"}  # fmt: skip


def _together(runs: PaperRuns) -> Data:
    """S and the share of flows that lose, by sender and flows; utilization of 10,000 flows beside equation (6)."""
    selected, rows = by_profile(runs, BY_FLOWS), []
    together = {profile: series(of, "flows", synchronization) for profile, of in selected.items()}
    excursions = {profile: series(of, "flows", _share_of_flows) for profile, of in selected.items()}
    for profile, points in together.items():
        for n, estimate in points.items():
            who, many = f"{NAMES[profile]}, n = {n}", n >= 500
            printed = "in phase" if n < 100 else "very rare" if many else ""
            rows.append(Fact(f"{who}: S", printed, 0.0 if many else None, estimate, "", headline=n == 500))
            losing = excursions[profile].get(n)
            rows.append(Fact(f"{who}: flows that lose in an excursion", "", None, losing, "of all"))
    for run in runs.select(MANY_STEM):
        flows, buffer, used = run["flows"], run["buffer_packets"], mean_interval([run["utilization_mean"]])
        model, is_first = 100 * gaussian.utilization(mean_bdp(run), buffer, flows), buffer == min(PRINTED_MANY)
        measured, what = used.scaled(100) if used else None, f"{flows} flows, B = {buffer}: utilization"
        rows.append(Fact(what, PRINTED_MANY.get(buffer, ""), model, measured, "%", headline=is_first))
    return {"synchronization": together, "excursions": excursions, "facts": rows}


def _share_of_flows(run: PaperRun) -> float | None:
    """Mean share of the flows that lose in an excursion of the queue to its limit."""
    losers, counts = run.distribution("flows_signalled_per_excursion")
    return float((losers * counts).sum() / counts.sum() / run["flows"]) if len(counts) else None


def _draw_together(data: Data) -> look.Figure:
    """S left, the share of flows that lose together right."""
    figure, axes = look.new_figure(look.PAGE_IN, 2.6, 1, len(TOGETHER))
    for ax, (key, text) in zip(axes[0], TOGETHER.items(), strict=True):
        measured = {profile: points for profile, points in data[key].items() if points}
        if not measured:
            look.absent(ax)
            continue
        look.log2_axis(ax, sorted({n for points in measured.values() for n in points}), 1.2)
        ax.tick_params(axis="x", rotation=45)
        for profile, points in measured.items():
            look.interval_bars(ax, points, points.values(), COLORS[profile], label=NAMES[profile])
            of_ns3 = look.of_ns3(data, key, profile)
            look.ns3_points(ax, of_ns3, of_ns3.values(), COLORS[profile])
        ax.legend(loc="upper right", frameon=False)
        ax.axhline(0, color=BLACK, linewidth=0.6)
        ax.set_ylim(top=1.05)
        ax.set_xlabel("flows n")
        ax.set_ylabel(text)
    return figure


SECTION_3 = PaperFigure("section_3", CAPTION, (BY_FLOWS, MANY_STEM), _together, _draw_together)
