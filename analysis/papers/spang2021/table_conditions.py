# SPDX-License-Identifier: MIT
"""The assumptions of Table 1's rows, checked on the runs with the least buffer that was enough; those of Theorem 7 on
runs with 20 packets of buffer. Assumptions about the time after a loss are checked on runs whose packets were all kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from analysis.arithmetic.statistics import Interval, mean_interval
from analysis.papers.packet_trace import PacketTrace
from analysis.papers.paper_runs import PaperRun, PaperRuns
from analysis.papers.series import IS_ONE_BDP, bdp
from analysis.papers.spang2021.searches import NO_LEAST, USED, least_buffers
from analysis.theory import many_flows, single_flow
from lib.errors import InputError

PACKETS = "single-flow"
NEEDS = ("utilization_p01",)
NEAR = 0.2  # largest distance from a rule, as a share of the rule, that counts as near
FAIR = 1.5  # the largest Delta that counts as fair


class MeasuredAssumption(NamedTuple):
    """An assumption of a rule with the measured number. `holds` is None if this is open, or no run has the number."""

    text: str
    holds: bool | None
    is_judged: bool = True  # False for a number of the rule or a remark: no run can fail these


def is_near(asked: float, low: float, high: float) -> bool | None:
    """Whether an interval lies within NEAR of the wanted number; None if only a part of it does."""
    least, most = (1 - NEAR) * asked, (1 + NEAR) * asked
    if high < least or low > most:
        return False
    return True if least <= low and high <= most else None


class RunsAtLeast(NamedTuple):
    """The search's result for n flows of an algorithm: `runs_at_least` and `interval` of its BufferBracket. For Theorem
    7: the runs with 20 packets of buffer.
    """

    runs: list[PaperRun]
    least: Interval | None  # None: there is no least buffer
    bdp: float

    def mean(self, number: str | Callable[[PaperRun], float | None]) -> float | None:
        """The mean over these runs."""
        estimate = mean_interval((number(run) if callable(number) else run[number]) for run in self.runs)
        return None if estimate is None else estimate.value


def used_enough(runs: PaperRuns, cc: str) -> MeasuredAssumption:
    """The other criterion: the least buffer for a utilization, beside the buffer that the rule asks for."""
    least = least_buffers(runs, USED, cc, flows=1).get(1)
    asked = single_flow.single_flow_buffer(cc, bdp(least.runs[0]), USED.enough) if least else None
    if least is None or asked is None:
        return MeasuredAssumption(f"least buffer for {USED.enough:.0%} used: not measured", None)
    if not least.is_known:
        return MeasuredAssumption(f"for {USED.enough:.0%} used: {NO_LEAST}, {least.note}", False)
    point = least.bounds
    high = "∞" if math.isinf(point.high) else f"{point.high:.3g}"
    return MeasuredAssumption(
        f"for {USED.enough:.0%} used: {point.low:.3g} to {high} packets, asked {asked:.3g}",
        is_near(asked, point.low, point.high),
    )


def losses_when_full(searched: RunsAtLeast | None) -> MeasuredAssumption:
    """Assumption 3: W = BDP + B when packets are lost."""
    ratio = searched.mean(lambda run: _fullness(run, searched.bdp)) if searched else None
    return MeasuredAssumption(
        f"W/(BDP + B) at a loss: {rounded(ratio)}", None if ratio is None else abs(ratio - 1) < 0.1
    )


def _fullness(run: PaperRun, bdp: float) -> float | None:
    """The median of W/(BDP + B) over a run's losses."""
    windows = run.measure("windows before losses", list[float | None], _before_losses)
    shares = [window / (bdp + run["buffer_packets"]) for window in windows if window]
    return float(np.median(shares)) if shares else None


def _before_losses(run: PaperRun) -> list[Any]:
    return [event.get("in_flight_before_packets") for event in run.summary.get("loss", {}).get("list", [])]


def falls(runs: PaperRuns, cc: str) -> MeasuredAssumption:
    """Whether a lone flow's window falls from W to b W after a loss, as in Figure 1. The fall, (1 - b) W, decides how
    big a buffer must be, so the tolerance NEAR applies to the fall.

    Only runs whose packets were all kept count. A summary alone has the least number of packets in flight after a loss,
    and PRR makes this number smaller than the window after recovery.
    """
    asked = 1 - single_flow.DECREASE[cc]
    has_windows = pl.col("in_flight_mean_packets").is_not_null()
    selected = runs.select(PACKETS, IS_ONE_BDP, has_windows, needs=NEEDS, cc=cc, flows=1)
    fall = mean_interval(run.measure("fall after a loss", float | None, _fall) for run in selected)
    rule = f"(b = {1 - asked:.3g}, 1 − b ± {NEAR:.0%})"
    if fall is None:
        return MeasuredAssumption(f"{cc}: falls to b W {rule}: no run kept all packets", None)
    return MeasuredAssumption(f"{cc}: falls to {1 - fall.value:.3g} W {rule}, B = BDP", is_near(asked, *fall.ends))


def _fall(run: PaperRun) -> float | None:
    """The fall (1 - b), median over a run's losses; None if its packets were not kept, or no loss was seen whole."""
    try:
        trace = PacketTrace(run)
        each = [trace.fall(trace.flows[0]["id"], drop, end) for drop, _, end in trace.losses()]
    except InputError:
        return None
    shares = [1 - after / before for before, after in each if before]
    return float(np.median(shares)) if shares else None


def silence(runs: PaperRuns) -> MeasuredAssumption:
    """The longest gap between arrivals from 0.5 to 2 times the longest RTT after a drop, while the sender learns of the
    loss: the mean over runs of each run's median over drops. Only runs whose packets were all kept count.
    """
    gaps, needed = [], []
    for run in runs.select(PACKETS, needs=NEEDS, cc="reno", flows=1):
        try:
            gap = run.measure("longest gap after a drop, ns", float | None, _longest_gap_ns)
        except InputError:
            continue
        if gap is not None:
            gaps.append(gap / 1e6)
            needed.append((bdp(run) + run["buffer_packets"]) / 2 / bdp(run) * run["rtt_ns"] / 1e6)
    if not gaps:
        return MeasuredAssumption("silent after a loss: no run kept all packets", None)
    text = f"longest silence after a loss {np.mean(gaps):.2g} ms (PRR sends on), not {np.mean(needed):.2g} ms"
    return MeasuredAssumption(text, bool(np.mean(gaps) > 0.5 * np.mean(needed)))


def _longest_gap_ns(run: PaperRun) -> float | None:
    trace = PacketTrace(run)
    came = trace.queue["enqueue_mono_ns"]
    longest_rtt = run["rtt_ns"] * (1 + run["buffer_over_bdp"])
    gaps = []
    for drop in trace.drops(trace.start_ns, trace.end_ns)[0]:
        first, last = np.searchsorted(came, (drop + longest_rtt / 2, drop + 2 * longest_rtt))
        if last - first > 1:
            gaps.append(float(np.diff(came[first:last]).max()))
    return float(np.median(gaps)) if gaps else None


def uniform(searched: RunsAtLeast | None) -> MeasuredAssumption:
    """Theorem 4: all windows within a third of (BDP + B)/n."""
    if searched is None:
        return MeasuredAssumption("windows within a third of their mean: not measured", None)

    def share(run: PaperRun) -> float:
        values, counts = run.distribution("in_flight_packets")
        fair = (searched.bdp + run["buffer_packets"]) / run["flows"]
        return float(counts[np.abs(values - fair) <= fair / 3].sum() / counts.sum())

    inside = searched.mean(share)
    text = f"{rounded(inside)} of windows within a third of (BDP + B)/n"
    return MeasuredAssumption(text, None if inside is None else inside > 0.98)


def few_lose(searched: RunsAtLeast | None, n: int) -> MeasuredAssumption:
    """Theorem 5's bound on the flows that lose in one RTT, checked at the 99th percentile of the base RTTs with a loss.
    The mean would not do: it can be within the bound although many RTTs exceed the bound.
    """
    if searched is None:
        return MeasuredAssumption("how many flows lose in an RTT: not measured", None)
    losing, delta = searched.mean("flows_losing_per_rtt"), searched.mean("delta")
    most = searched.mean(lambda run: run.percentile("flows_losing", 99))
    if losing is None or delta is None or most is None:
        return MeasuredAssumption("how many flows lose in an RTT: not measured", None)
    bound = many_flows.flows_seeing_loss(searched.bdp, n, delta)
    text = f"{rounded(losing)} flows lose in an RTT on average, {rounded(most)} at the 99th percentile"
    return MeasuredAssumption(f"{text}, at most {rounded(bound)}", most <= bound)


def windows_of_two(searched: RunsAtLeast | None) -> MeasuredAssumption:
    low = searched.mean("window_p01_packets") if searched else None
    return MeasuredAssumption(
        f"1st percentile of windows {rounded(low)}, at least 2", None if low is None else low >= 2
    )


def number(name: str, value: float | None) -> MeasuredAssumption:
    """A number that a rule is computed from, beside its conditions."""
    return MeasuredAssumption(f"{name} = {rounded(value)}", None, is_judged=False)


def fair(delta: float | None) -> MeasuredAssumption:
    return MeasuredAssumption(f"fair: Δ = {rounded(delta)}", None if delta is None else delta <= FAIR)


def rounded(value: float | None) -> str:
    return "not known" if value is None else f"{value:.3g}"
