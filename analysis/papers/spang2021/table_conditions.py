# SPDX-License-Identifier: MIT
"""What the rows of Table 1 assume, checked on our own runs: those with the least buffer that was enough, and for what
comes after a loss those of which all packets were kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import polars as pl

from analysis.papers.columns import IS_ONE_BDP
from analysis.papers.least_buffers import NO_LEAST, least_buffers
from analysis.papers.packet_trace import PacketTrace
from analysis.papers.series import bdp
from analysis.papers.spang2021.searches import USED
from analysis.papers.stored_runs import StoredRun, StoredRuns
from analysis.statistics import Interval, mean_interval
from analysis.theory import many_flows, single_flow
from lib.errors import InputError

PACKETS = "single-flow"
NEEDS = ("utilization_p01",)
NEAR = 0.2  # how far from a rule, as a share of it, the least buffer may be
FAIR = 1.5  # the largest Delta that is still called fair


class Assumption(NamedTuple):
    """What a rule assumes, with the number found, and whether it holds; None if that is open, or no run says."""

    text: str
    holds: bool | None
    is_judged: bool = True  # False: a number that the rule reckons with, or a remark: no run can fail it


def is_near(asked: float, low: float, high: float) -> bool | None:
    """Whether what lies between `low` and `high` is within NEAR of what is asked for; None where it may be."""
    least, most = (1 - NEAR) * asked, (1 + NEAR) * asked
    if high < least or low > most:
        return False
    return True if least <= low and high <= most else None


class RunsAtLeast(NamedTuple):
    """The search's result for n flows of an algorithm: the runs with about the least buffer, and its interval."""

    runs: list[StoredRun]
    least: Interval | None  # None: there is none
    bdp: float

    def mean(self, number: str | Callable[[StoredRun], float | None]) -> float | None:
        """Over those runs."""
        estimate = mean_interval((number(run) if callable(number) else run[number]) for run in self.runs)
        return None if estimate is None else estimate.value


def used_enough(runs: StoredRuns, cc: str) -> Assumption:
    """The other criterion: the least buffer for a utilization, beside what the rule asks for it."""
    least = least_buffers(runs, USED, cc, flows=1).get(1)
    asked = single_flow.single_flow_buffer(cc, bdp(least.runs[0]), USED.enough) if least else None
    if least is None or asked is None:
        return Assumption(f"least buffer for {USED.enough:.0%} used: no run says", None)
    if not least.is_known:
        return Assumption(f"for {USED.enough:.0%} used: {NO_LEAST}, {least.note}", False)
    point = least.bounds
    high = "∞" if math.isinf(point.high) else f"{point.high:.3g}"
    return Assumption(
        f"for {USED.enough:.0%} used: {point.low:.3g} to {high} packets, asked {asked:.3g}",
        is_near(asked, point.low, point.high),
    )


def losses_when_full(searched: RunsAtLeast | None) -> Assumption:
    """Assumption 3: W = BDP + B when packets are lost."""
    ratio = None
    if searched:
        ratio = searched.mean(
            lambda run: _median_event(
                run, lambda e: e["in_flight_before_packets"] / (searched.bdp + run["buffer_packets"])
            )
        )
    return Assumption(f"W/(BDP + B) at a loss: {rounded(ratio)}", None if ratio is None else abs(ratio - 1) < 0.1)


def _median_event(run: StoredRun, number: Callable[[dict[str, float]], float]) -> float | None:
    events = [event for event in run.summary.get("loss", {}).get("list", []) if event.get("in_flight_before_packets")]
    return float(np.median([number(event) for event in events])) if events else None


def falls(runs: StoredRuns, cc: str) -> Assumption:
    """To what share of W a lone flow's window falls after a loss, of runs with all packets, as Figure 1 shows it. What
    a buffer must outlast is the fall, 1 - b of W; so that is what may be off by NEAR.

    A summary tells only the least in flight after a loss, which PRR has below the window that it goes to.
    """
    asked = 1 - single_flow.DECREASE[cc]
    has_windows = pl.col("in_flight_mean_packets").is_not_null()
    fall = mean_interval(
        _fall(run) for run in runs.select(PACKETS, IS_ONE_BDP, has_windows, needs=NEEDS, cc=cc, flows=1)
    )
    rule = f"(b = {1 - asked:.3g}, 1 − b ± {NEAR:.0%})"
    if fall is None:
        return Assumption(f"{cc}: falls to b W {rule}: no run with all packets says", None)
    return Assumption(f"{cc}: falls to {1 - fall.value:.3g} W {rule}, B = BDP", is_near(asked, *fall.ends))


def _fall(run: StoredRun) -> float | None:
    """The median over a run's losses; None if its packets were not kept, or no loss was seen whole."""
    try:
        trace = PacketTrace(run)
        each = [trace.fall(trace.flows[0]["id"], drop, end) for drop, _, end in trace.losses()]
    except InputError:
        return None
    shares = [1 - after / before for before, after in each if before]
    return float(np.median(shares)) if shares else None


def silence(runs: StoredRuns) -> Assumption:
    """The longest gap between arrivals in the two RTTs in which a loss becomes known, of runs with all packets."""
    gaps, needed = [], []
    for run in runs.select(PACKETS, needs=NEEDS, cc="reno", flows=1):
        try:
            gap = _longest_gap_ns(run)
        except InputError:
            continue
        if gap is not None:
            gaps.append(gap / 1e6)
            needed.append((bdp(run) + run["buffer_packets"]) / 2 / bdp(run) * run["rtt_ns"] / 1e6)
    if not gaps:
        return Assumption("silent after a loss: no run with all packets says", None)
    text = f"longest silence after a loss {np.mean(gaps):.2g} ms (PRR sends on), not {np.mean(needed):.2g} ms"
    return Assumption(text, bool(np.mean(gaps) > 0.5 * np.mean(needed)))


def _longest_gap_ns(run: StoredRun) -> float | None:
    window = run.summary["measurement_window_mono_ns"]
    port = run.summary["bottleneck_port"]
    cards = run.table("postcards").filter(pl.col("egress_port") == port).select("enqueue_mono_ns", "flags")
    came = cards["enqueue_mono_ns"].to_numpy()
    drops = came[(cards["flags"].to_numpy() & 1) != 0]
    drops = drops[(drops >= window[0]) & (drops < window[1])]
    longest_rtt = run["rtt_ns"] * (1 + run["buffer_over_bdp"])
    gaps = []
    for drop in drops:
        first, last = np.searchsorted(came, (drop + longest_rtt / 2, drop + 2 * longest_rtt))
        if last - first > 1:
            gaps.append(float(np.diff(came[first:last]).max()))
    return float(np.median(gaps)) if gaps else None


def uniform(searched: RunsAtLeast | None) -> Assumption:
    """Theorem 4: all windows within a third of (BDP + B)/n."""
    if searched is None:
        return Assumption("windows within a third of their mean: no run says", None)

    def share(run: StoredRun) -> float:
        values, counts = run.distribution("in_flight_packets")
        fair = (searched.bdp + run["buffer_packets"]) / run["flows"]
        return float(counts[np.abs(values - fair) <= fair / 3].sum() / counts.sum())

    inside = searched.mean(share)
    text = f"{rounded(inside)} of windows within a third of (BDP + B)/n"
    return Assumption(text, None if inside is None else inside > 0.98)


def few_lose(searched: RunsAtLeast | None, n: int) -> Assumption:
    """Theorem 5's "at most", of 99 in 100 base RTTs in which any flow loses: on average even a broken bound is kept."""
    if searched is None:
        return Assumption("how many flows lose in an RTT: no run says", None)
    losing, delta = searched.mean("flows_losing_per_rtt"), searched.mean("delta")
    most = searched.mean(lambda run: run.percentile("flows_losing", 99))
    if losing is None or delta is None or most is None:
        return Assumption("how many flows lose in an RTT: no run says", None)
    bound = many_flows.flows_seeing_loss(searched.bdp, n, delta)
    text = f"{rounded(losing)} flows lose in an RTT on average, {rounded(most)} at the 99th percentile"
    return Assumption(f"{text}, at most {rounded(bound)}", most <= bound)


def windows_of_two(searched: RunsAtLeast | None) -> Assumption:
    low = searched.mean("window_p01_packets") if searched else None
    return Assumption(f"1st percentile of windows {rounded(low)}, at least 2", None if low is None else low >= 2)


def number(name: str, value: float | None) -> Assumption:
    """What a rule reckons with, beside its conditions."""
    return Assumption(f"{name} = {rounded(value)}", None, is_judged=False)


def fair(delta: float | None) -> Assumption:
    return Assumption(f"fair: Δ = {rounded(delta)}", None if delta is None else delta <= FAIR)


def rounded(value: float | None) -> str:
    return "not known" if value is None else f"{value:.3g}"
