# SPDX-License-Identifier: MIT
"""The rows of Table 1: each rule, its conditions checked on our own runs, and the least buffer beside what it asks for.

One flow's rules are held against the search with one flow, those of n flows against the search with FLOWS flows, where
Delta, windows and losses are those of the runs with the least buffer that was enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from analysis.figures.spang2021.least_buffers import (
    COLUMNS,
    NO_LEAST,
    NONEMPTY,
    SEARCH,
    USED,
    UTILIZATION,
    least_buffers,
)
from analysis.figures.spang2021.series import bdp, grouped, nearest
from analysis.raw import InputError
from analysis.statistics import Interval, bootstrap
from analysis.theory import many_flows, single_flow

if TYPE_CHECKING:
    from analysis.figures.spang2021.runs import Run, Runs

SMALL, PACKETS = "twenty-packets", "single-flow"
NEEDS = ("utilization_p01",)
FLOWS = 16  # of the paper's own examples (Figures 7, 8 and 11b)
NEAR = 0.2  # how far from a rule, as a share of it, the least buffer may be
FAIR = 1.5  # the largest Delta that is still called fair


class Condition(NamedTuple):
    """What a rule assumes, with the number found, and whether it holds; None if no run says."""

    text: str
    holds: bool | None


class Row(NamedTuple):
    """A row of Table 1."""

    rule: str
    assumes: str
    source: str
    conditions: list[Condition]
    predicted: float | None
    measured: Interval | None
    kind: str = "number"  # to be met; "most" or "least": a bound from above or below; "distance": from a rule, over it
    unit: str = "packets"
    none: str = "not measured"  # what is said if there is nothing measured

    @property
    def verdict(self) -> str:
        """A few words: "open" where the interval says both."""
        if self.measured is None or self.predicted is None:
            return self.none
        value, low, high = self.measured[:3]
        low, high = value if low is None else low, value if high is None else high
        if self.kind == "least":
            return "kept" if high >= self.predicted else "broken"
        if self.kind == "most":
            return "enough" if high <= self.predicted else "not enough" if low > self.predicted else "open"
        if self.kind == "distance":
            return f"{'within' if value <= NEAR else 'not within'} {NEAR:.0%}"
        least, most = (1 - NEAR) * self.predicted, (1 + NEAR) * self.predicted
        if high < least or low > most:
            near = f"not within {NEAR:.0%}"
        else:
            near = f"within {NEAR:.0%}" if least <= low and high <= most else "open"
        return near if math.isinf(high) else f"{near} ({value / self.predicted - 1:+.0%})".replace("-", "−")


class Found(NamedTuple):
    """The search's result for n flows of an algorithm: the runs with about the least buffer, and its interval."""

    runs: list[Run]
    least: Interval | None  # None: there is none
    bdp: float

    def mean(self, number: str | Callable[[Run], float | None]) -> float | None:
        """Over those runs."""
        found = bootstrap((number(run) if callable(number) else run[number]) for run in self.runs)
        return None if found is None else found.value


def rows(runs: Runs) -> list[Row]:
    """All of them, in the paper's order."""
    one = {cc: _search(runs, cc, 1) for cc in single_flow.ALGORITHMS}
    searched = runs.select(SEARCH, needs=(COLUMNS[SEARCH],), cc="reno")
    flows = nearest({run["flows"] for run in searched} or {FLOWS}, FLOWS)
    reno, bbr = _search(runs, "reno", int(flows)), _search(runs, "bbr", int(flows))
    silence = _silence(runs)
    return [
        *_one_flow(one, {cc: _used(runs, cc) for cc in one}, silence),
        *_many_flows(int(flows), reno, bbr),
        Row("O(1)", "Reno, bounded windows, Poisson pacing", "[17]",
            [Condition("none of our senders paces at random, nor is the link over-provisioned", False)], None, None),
        _theorem_7(runs),
    ]  # fmt: skip


def _search(runs: Runs, cc: str, flows: int) -> Found | None:
    least = least_buffers(runs, SEARCH, cc, flows=flows).get(flows)
    return None if least is None else Found(least.runs_at_least, least.interval, bdp(least.runs[0]))


# One flow ---------------------------------------------------------------------------------------------------------


def _one_flow(one: dict[str, Found | None], used: dict[str, Condition], silence: Condition) -> list[Row]:
    worst = max((_off(found, cc) for cc, found in one.items() if found and cc != "bbr"), default=None)
    falls = [_falls(one[cc], cc) for cc in single_flow.DECREASE]
    return [
        Row("BDP", "Reno, silence after loss", "[1, 12]", [silence], _asked(one["reno"], "reno"), None),
        _single("BDP", "Reno", "3.5", one["reno"], "reno", used["reno"]),
        Row("(1/b − 1) BDP", "falls to b W, silence after loss", "[14–16]", [silence], None, None),
        Row("(1/b − 1) BDP", "falls to b W: largest distance of three algorithms, over the rule", "3.5", falls, 0.0,
            None if worst is None else Interval(worst, None, None, 3), "distance", ""),
        _single("3/7 BDP", "Cubic", "3.5", one["cubic"], "cubic", used["cubic"]),
        _single("1/7 BDP", "Scalable", "3.5", one["scalable"], "scalable", used["scalable"]),
        _single("1/4 BDP", "BBR while it probes for bandwidth, with loss", "3.5", one["bbr"], "bbr", used["bbr"]),
    ]  # fmt: skip


def _asked(found: Found | None, cc: str) -> float | None:
    return None if found is None else single_flow.single_flow_buffer(cc, found.bdp)


def _off(found: Found, cc: str) -> float:
    asked = single_flow.single_flow_buffer(cc, found.bdp)
    return abs(found.least.value / asked - 1) if asked and found.least else math.inf


def _used(runs: Runs, cc: str) -> Condition:
    """No condition, but the other criterion: the least buffer for a utilization, beside what the rule asks for it."""
    found = least_buffers(runs, USED, cc, flows=1).get(1)
    asked = single_flow.single_flow_buffer(cc, bdp(found.runs[0]), UTILIZATION) if found else None
    if found is None or asked is None:
        return Condition(f"least buffer for {UTILIZATION:.0%} used: no run says", None)
    if not found.is_known:
        return Condition(f"for {UTILIZATION:.0%} used: {NO_LEAST}, {found.note}", False)
    point = found.bounds
    near = point.low <= (1 + NEAR) * asked and point.high >= (1 - NEAR) * asked
    high = "∞" if math.isinf(point.high) else f"{point.high:.3g}"
    return Condition(f"for {UTILIZATION:.0%} used: {point.low:.3g} to {high} packets, asked {asked:.3g}", near)


def _single(rule: str, assumes: str, source: str, found: Found | None, cc: str, used: Condition) -> Row:
    conditions = [_losses_when_full(found)]
    if cc == "bbr":
        lossy = None if found is None else found.mean("loss_events")
        conditions.append(Condition(f"loss events a run: {_number(lossy)}", None if lossy is None else lossy > 0))
    else:
        conditions.append(_falls(found, cc))
    conditions.append(used)
    least = found.least if found else None
    none = NO_LEAST if found and least is None else "not measured"
    return Row(rule, assumes, source, conditions, _asked(found, cc), least, none=none)


def _losses_when_full(found: Found | None) -> Condition:
    """Assumption 3: W = BDP + B when packets are lost."""
    ratio = None
    if found:
        ratio = found.mean(
            lambda run: _median_event(
                run, lambda e: e["in_flight_before_packets"] / (found.bdp + run["buffer_packets"])
            )
        )
    return Condition(f"W/(BDP + B) at a loss: {_number(ratio)}", None if ratio is None else abs(ratio - 1) < 0.1)


def _falls(found: Found | None, cc: str) -> Condition:
    """The window after a loss over that before it."""
    b = single_flow.DECREASE[cc]
    ratio = found and found.mean(
        lambda run: _median_event(run, lambda e: e["in_flight_after_packets"] / e["in_flight_before_packets"])
    )
    text = f"{cc}: W after a loss over before: {_number(ratio)} (b = {b:.3g})"
    return Condition(text, None if ratio is None else abs(ratio - b) < 0.1)


def _median_event(run: Run, number: Callable[[dict[str, float]], float]) -> float | None:
    events = [
        event
        for event in run.summary.get("loss", {}).get("list", [])
        if event.get("in_flight_before_packets") and event.get("in_flight_after_packets") is not None
    ]
    return float(np.median([number(event) for event in events])) if events else None


def _silence(runs: Runs) -> Condition:
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
        return Condition("silent after a loss: no run with all packets says", None)
    text = f"longest silence after a loss {np.mean(gaps):.2g} ms (PRR sends on), not {np.mean(needed):.2g} ms"
    return Condition(text, bool(np.mean(gaps) > 0.5 * np.mean(needed)))


def _longest_gap_ns(run: Run) -> float | None:
    window = run.summary["measurement_window_mono_ns"]
    port = run.summary["bottleneck_port"]
    cards = run.table("postcards").filter(pl.col("egress_port") == port).select("enqueue_mono_ns", "flags")
    came = cards["enqueue_mono_ns"].to_numpy()
    drops = came[(cards["flags"].to_numpy() & 1) != 0]
    drops = drops[(drops >= window[0]) & (drops < window[1])]
    longest_rtt = run["rtt_ns"] * (1 + run["buffer_over_bdp"])
    found = []
    for drop in drops:
        first, last = np.searchsorted(came, (drop + longest_rtt / 2, drop + 2 * longest_rtt))
        if last - first > 1:
            found.append(float(np.diff(came[first:last]).max()))
    return float(np.median(found)) if found else None


# Many flows -------------------------------------------------------------------------------------------------------


def _many_flows(n: int, reno: Found | None, bbr: Found | None) -> list[Row]:
    exact = reno.bdp if reno else math.nan
    delta, losing = (reno.mean("delta"), reno.mean("flows_losing_per_rtt")) if reno else (None, None)
    delta_bbr = bbr.mean("delta") if bbr else None
    beyond = None
    if delta is not None and losing is not None:
        beyond = max(losing - n**2 / (delta * exact), 0.0)
    few = _few_lose(reno, n)
    fraction = None if losing is None else min(losing / n, 1.0)
    found = reno.least if reno else None
    at = f"{n} "
    return [
        Row("Θ(BDP/√n)", f"{at}Reno flows, windows i.i.d. uniform", "[2]", [_uniform(reno)],
            many_flows.sqrt_rule(exact, n) if reno else None, found),
        Row("O(BDP/√n): Δ BDP/√n", f"√n + O(n²/BDP) of {at}almost fair flows see a loss", "Theorem 6",
            [few, _windows_of_two(reno), _delta(delta)],
            None if delta is None else many_flows.almost_fair_buffer(exact, n, delta), found, kind="most"),
        Row("O(BDP/√n): Δ BDP √(ln 100/2n)", f"{at}almost fair BBR flows that probe for bandwidth", "Theorem 8",
            [_delta(delta_bbr)],
            None if delta_bbr is None or bbr is None else many_flows.bbr_buffer(bbr.bdp, n, delta_bbr, 1 - NONEMPTY),
            bbr.least if bbr else None, kind="most"),
        Row("O(p BDP − n + np)", f"a share p of {at}fair flows sees losses", "[13]",
            [Condition(f"p = {_number(fraction)}", None if fraction is None else True), _fair(delta)],
            None if fraction is None else many_flows.fraction_losing_buffer(exact, n, fraction), found, kind="most"),
        Row("O(s BDP/n): s Δ BDP/n", f"s + n²/BDP of {at}almost fair flows see a loss", "4.6",
            [Condition(f"s = {_number(beyond)}", None if beyond is None else True), _delta(delta)],
            None if beyond is None or delta is None else many_flows.desynchronized_buffer(exact, n, delta, beyond),
            found, kind="most"),
    ]  # fmt: skip


def _uniform(found: Found | None) -> Condition:
    """Theorem 4: all windows within a third of (BDP + B)/n."""
    if found is None:
        return Condition("windows within a third of their mean: no run says", None)

    def share(run: Run) -> float:
        values, counts = run.distribution("in_flight_packets")
        fair = (found.bdp + run["buffer_packets"]) / run["flows"]
        return float(counts[np.abs(values - fair) <= fair / 3].sum() / counts.sum())

    inside = found.mean(share)
    text = f"{_number(inside)} of windows within a third of (BDP + B)/n"
    return Condition(text, None if inside is None else inside > 0.98)


def _few_lose(found: Found | None, n: int) -> Condition:
    losing, delta = (found.mean("flows_losing_per_rtt"), found.mean("delta")) if found else (None, None)
    if found is None or losing is None or delta is None:
        return Condition("how many flows lose in an RTT: no run says", None)
    bound = many_flows.flows_seeing_loss(found.bdp, n, delta)
    return Condition(f"{_number(losing)} flows lose in an RTT, at most {_number(bound)}", losing <= bound)


def _windows_of_two(found: Found | None) -> Condition:
    low = found.mean("window_p01_packets") if found else None
    return Condition(f"1st percentile of windows {_number(low)}, at least 2", None if low is None else low >= 2)


def _delta(delta: float | None) -> Condition:
    return Condition(f"Δ = {_number(delta)}", None if delta is None else True)


def _fair(delta: float | None) -> Condition:
    return Condition(f"fair: Δ = {_number(delta)}", None if delta is None else delta <= FAIR)


def _theorem_7(runs: Runs) -> Row:
    """With 20 packets, at the largest number of flows."""
    found = grouped(runs.select(SMALL, needs=NEEDS, cc="reno"), "flows")
    rule, assumes = "O(1): 20 packets", "√n + O(n²/BDP) almost fair flows see a loss, utilization Ω(1 − 1/√n)"
    if not found:
        return Row(rule, assumes, "Theorem 7", [], None, None)
    n, those = max(found.items())
    of = Found(those, Interval(20, None, None, 1), bdp(those[0]))
    delta = of.mean("delta")
    conditions = [_few_lose(of, n), _windows_of_two(of), _delta(delta)]
    predicted = None if delta is None else many_flows.almost_fair_utilization(n, delta)
    measured = bootstrap(run["utilization_p01"] for run in those)
    return Row(rule, f"{n} flows: {assumes}", "Theorem 7", conditions, predicted, measured, "least", "")


def _number(value: float | None) -> str:
    return "not known" if value is None else f"{value:.3g}"
