# SPDX-License-Identifier: MIT
"""The rows of Table 1: each rule, its conditions checked on our own runs, and the least buffer beside the rule's.

Rules for one flow are compared with the search with one flow, rules for n flows with the search whose number of flows
is nearest to FLOWS. Delta, windows and losses are taken from the runs with the least buffer that was enough. Theorem 7
is compared with runs with 20 packets of buffer.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from analysis.arithmetic.statistics import Interval, mean_interval
from analysis.papers.facts import exactly
from analysis.papers.paper_runs import PaperRuns
from analysis.papers.series import bdp, grouped, nearest
from analysis.papers.spang2021 import table_conditions as conditions
from analysis.papers.spang2021.searches import NO_LEAST, NONEMPTY, least_buffers
from analysis.papers.spang2021.table_conditions import NEAR, NEEDS, MeasuredAssumption, RunsAtLeast
from analysis.theory import many_flows, single_flow

SMALL = "twenty-packets"
FALLING = ("reno", "cubic", "scalable_50")  # their window falls to a fixed share at a loss
LONE = (*FALLING, "bbr")
MAY_BE_EMPTY = 1 - NONEMPTY.enough
FLOWS = 16  # as in the paper's examples (Figures 7, 8 and 11b)
NEARNESS = {True: f"within {NEAR:.0%}", False: f"not within {NEAR:.0%}", None: "open"}


class RuleRow(NamedTuple):
    """A row of Table 1."""

    rule: str
    assumes: str
    source: str
    conditions: list[MeasuredAssumption]
    predicted: float | None
    measured: Interval | None
    kind: str = "number"  # "most", "least": `predicted` bounds `measured`; "distance": `measured` is |B / rule - 1|
    unit: str = "packets"
    none: str = "not measured"  # stands in place of a number that was not measured

    @property
    def verdict(self) -> str:
        """A few words; "open" where the interval of `measured` allows both answers (of kind "least": "kept")."""
        if self.measured is None or self.predicted is None:
            return self.none
        value, (low, high) = self.measured.value, self.measured.ends
        if self.kind == "least":
            if self.predicted <= 0:
                return "says nothing"
            return "kept" if high >= self.predicted else "broken"
        if self.kind == "most":
            return "enough" if high <= self.predicted else "not enough" if low > self.predicted else "open"
        if self.kind == "distance":
            return NEARNESS[True if high <= NEAR else False if low > NEAR else None]
        holds = conditions.is_near(self.predicted, low, high)
        if math.isinf(high):
            return NEARNESS[holds]
        ends = (low, high) if holds is None else (value,)  # if open, both ends of the interval
        off = " to ".join(f"{end / self.predicted - 1:+.0%}" for end in ends)
        return f"{NEARNESS[holds]} ({off})".replace("-", "−")


def rows(runs: PaperRuns) -> list[RuleRow]:
    """All rows, in the paper's order."""
    lone = {cc: _search(runs, cc, 1) for cc in LONE}
    searched = runs.select(NONEMPTY.stem, needs=(NONEMPTY.column,), cc="reno")
    flows = nearest({run["flows"] for run in searched} or {FLOWS}, FLOWS)
    reno, bbr = _search(runs, "reno", int(flows)), _search(runs, "bbr", int(flows))
    return [
        *_one_flow(runs, lone),
        *_many_flows(int(flows), reno, bbr),
        RuleRow("O(1)", "Reno, bounded windows, Poisson pacing", "[17]",
                [MeasuredAssumption("no run of this set paces at random, nor is its link over-provisioned", None,
                                    False)],
                None, None),
        _theorem_7(runs),
    ]  # fmt: skip


def _search(runs: PaperRuns, cc: str, flows: int) -> RunsAtLeast | None:
    least = least_buffers(runs, NONEMPTY, cc, flows=flows).get(flows)
    return None if least is None else RunsAtLeast(least.runs_at_least, least.interval, bdp(least.runs[0]))


# One flow ---------------------------------------------------------------------------------------------------------


def _one_flow(runs: PaperRuns, lone: dict[str, RunsAtLeast | None]) -> list[RuleRow]:
    silence = conditions.silence(runs)
    far = {cc: distance for cc in FALLING if (distance := _distance(lone[cc], cc))}
    falls = {cc: conditions.falls(runs, cc) for cc in FALLING}
    lossy = lone["bbr"].mean("loss_events") if lone["bbr"] else None
    in_place_of_a_fall = MeasuredAssumption(
        f"loss events a run: {conditions.rounded(lossy)}", None if lossy is None else lossy > 0
    )

    def single(rule: str, assumes: str, cc: str) -> RuleRow:
        searched, fall = lone[cc], falls.get(cc, in_place_of_a_fall)
        checks = [conditions.losses_when_full(searched), fall, conditions.used_enough(runs, cc)]
        least = searched.least if searched else None
        none = NO_LEAST if searched and least is None else "not measured"
        return RuleRow(rule, assumes, "3.5", checks, _asked(searched, cc), least, none=none)

    return [
        RuleRow("BDP", "Reno, silence after loss", "[1, 12]", [silence], _asked(lone["reno"], "reno"), None),
        single("BDP", "Reno", "reno"),
        RuleRow("(1/b − 1) BDP", "falls to b W, silence after loss", "[14–16]", [silence], None, None),
        RuleRow("(1/b − 1) BDP", f"falls to b W: largest distance over the rule of {', '.join(far)}", "3.5",
                list(falls.values()), 0.0, _largest(list(far.values())), "distance", ""),
        single("3/7 BDP", "Cubic", "cubic"),
        single("1/7 BDP", "Scalable", "scalable_50"),
        single("1/4 BDP", "BBR while it probes for bandwidth, with loss", "bbr"),
    ]  # fmt: skip


def _asked(searched: RunsAtLeast | None, cc: str) -> float | None:
    return None if searched is None else single_flow.single_flow_buffer(cc, searched.bdp)


def _distance(searched: RunsAtLeast | None, cc: str) -> Interval | None:
    """Distance of the least buffer from the rule, as a share of the rule: for the estimate and both ends."""
    asked = _asked(searched, cc)
    if not searched or not asked or not searched.least:
        return None
    off = [math.nan if end is None else end / asked - 1 for end in searched.least[:3]]
    nearest_to_0 = 0.0 if off[1] <= 0 <= off[2] else min(abs(off[1]), abs(off[2]))
    return Interval(abs(off[0]), nearest_to_0, max(abs(off[1]), abs(off[2])), searched.least.runs)


def _largest(intervals: list[Interval]) -> Interval | None:
    """The largest of several numbers, each known as an interval."""
    return Interval(*(max(ends) for ends in zip(*intervals, strict=True))) if intervals else None


# Many flows -------------------------------------------------------------------------------------------------------


def _many_flows(n: int, reno: RunsAtLeast | None, bbr: RunsAtLeast | None) -> list[RuleRow]:
    exact = reno.bdp if reno else math.nan
    delta, losing = (reno.mean("delta"), reno.mean("flows_losing_per_rtt")) if reno else (None, None)
    delta_bbr = bbr.mean("delta") if bbr else None
    beyond = None
    if delta is not None and losing is not None:
        beyond = max(losing - n**2 / (delta * exact), 0.0)
    few = conditions.few_lose(reno, n)
    fraction = None if losing is None else min(losing / n, 1.0)
    least = reno.least if reno else None
    at = f"{n} "
    return [
        RuleRow("Θ(BDP/√n)", f"{at}Reno flows, windows i.i.d. uniform", "[2]", [conditions.uniform(reno)],
                many_flows.sqrt_rule(exact, n) if reno else None, least),
        RuleRow("O(BDP/√n): Δ BDP/√n", f"√n + O(n²/BDP) of {at}almost fair flows see a loss", "Theorem 6",
                [few, conditions.windows_of_two(reno), conditions.number("Δ", delta)],
                None if delta is None else many_flows.almost_fair_buffer(exact, n, delta), least, kind="most"),
        RuleRow("O(BDP/√n): Δ BDP √(ln 100/2n)", f"{at}almost fair BBR flows that probe for bandwidth", "Theorem 8",
                [conditions.number("Δ", delta_bbr)],
                None if delta_bbr is None or bbr is None else
                many_flows.bbr_buffer(bbr.bdp, n, delta_bbr, MAY_BE_EMPTY),
                bbr.least if bbr else None, kind="most"),
        RuleRow("O(p BDP − n + np): (p BDP − 2n(1−p))/(2−p)", f"a share p of {at}fair flows sees losses", "[13]",
                [conditions.number("p", fraction), conditions.fair(delta)],
                None if fraction is None else many_flows.fraction_losing_buffer(exact, n, fraction),
                least, kind="most"),
        RuleRow("O(s BDP/n): s Δ BDP/n", f"s + n²/BDP of {at}almost fair flows see a loss", "4.6",
                [conditions.number("s", beyond), conditions.number("Δ", delta)],
                None if beyond is None or delta is None else many_flows.desynchronized_buffer(exact, n, delta, beyond),
                least, kind="most"),
    ]  # fmt: skip


def _theorem_7(runs: PaperRuns) -> RuleRow:
    """Theorem 7, from runs with 20 packets of buffer at the largest number of flows."""
    by_flows = grouped(runs.select(SMALL, needs=NEEDS, cc="reno"), "flows")
    rule, assumes = "O(1): 20 packets", "√n + O(n²/BDP) almost fair flows see a loss, utilization Ω(1 − 1/√n)"
    if not by_flows:
        return RuleRow(rule, assumes, "Theorem 7", [], None, None)
    n, largest = max(by_flows.items())
    of = RunsAtLeast(largest, exactly(20), bdp(largest[0]))
    delta = of.mean("delta")
    checks = [conditions.few_lose(of, n), conditions.windows_of_two(of), conditions.number("Δ", delta)]
    predicted = None if delta is None else many_flows.almost_fair_utilization(n, delta)
    measured = mean_interval(run["utilization_p01"] for run in largest)
    return RuleRow(rule, f"{n} flows: {assumes}", "Theorem 7", checks, predicted, measured, "least", "")
