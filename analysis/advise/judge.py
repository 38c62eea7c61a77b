# SPDX-License-Identifier: MIT
"""Judges a rule by stored runs: of the runs with the rule's buffer, how many kept the rule's promise.

The rule is evaluated for each run's rate, RTT, MTU and flows, with the DELTA, LOSING, UTIL and RISK of the question;
Rule.promise is the criterion. If any run with the rule's buffer was on a link like the question's (BDP and number of
flows within a factor of NEAR), only runs on such links count; otherwise all runs count.
Runs that break an assumption known from the inputs (algorithm, number of flows) are counted apart. Runs that break an
assumption that only a measurement can check (Delta, flows with a loss) count like others, because the user's flows may
break it, too. The number of such runs is reported beside the verdict.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, TypeVar

from analysis.advise.evidence import EvidenceRun
from analysis.advise.link import Link
from analysis.advise.rule import Advice, Rule

# A run with more than NEAR times the asked buffer does not support a rule. Two links are alike if their BDPs and their
# numbers of flows differ by at most a factor of NEAR.
NEAR = 1.25
Number = TypeVar("Number", int, float)


class Trial(NamedTuple):
    """A run as a trial of a rule."""

    run: EvidenceRun
    link: Link
    asks: float  # the buffer in packets that the rule asks for on the run's link
    kept: bool  # the run kept the rule's promise
    is_outside: bool  # the run breaks an assumption known from its inputs

    @property
    def has_enough(self) -> bool:
        """Whether the run had the asked buffer. Buffers given in BDP are rounded to the nearest packet."""
        return self.run.buffer_packets >= self.asks - 0.5

    @property
    def ratio(self) -> float:
        """The run's buffer over the asked buffer."""
        return self.run.buffer_packets / max(self.asks, 1.0)


class Verdict(NamedTuple):
    """Numbers of runs, and ranges over the counted runs (None without counted runs).

    counted: runs with 1 to NEAR times the asked buffer, and runs with more buffer that failed the promise
    kept: counted runs that achieved the promise
    more: runs with more buffer that achieved the promise, which supports nothing
    less, less_kept: runs with less buffer, and how many of them achieved the promise
    ratios, flows, bdp: ranges of buffer / asked buffer, of flows, of the BDP in packets
    deltas, losing: ranges of Delta and of the mean number of flows with a loss per RTT, if the rule bounds them
    unfair: counted runs with a Delta above the question's
    many_losing: counted runs whose mean of flows with a loss exceeds the bound. The bound holds for every RTT, so a
        mean can break it but not prove it.
    outside: runs that break an assumption known from the inputs; none of the numbers above includes them
    outside_counted: those of them with the rule's buffer, as in `counted`
    outside_kept: those of outside_counted that achieved the promise
    """

    counted: int = 0
    kept: int = 0
    more: int = 0
    less: int = 0
    less_kept: int = 0
    ratios: tuple[float, float] | None = None
    flows: tuple[int, int] | None = None
    bdp: tuple[float, float] | None = None
    deltas: tuple[float, float] | None = None
    losing: tuple[float, float] | None = None
    unfair: int = 0
    many_losing: int = 0
    outside: int = 0
    outside_counted: int = 0
    outside_kept: int = 0

    @property
    def word(self) -> str:
        """supported, contradicted or mixed; without counted runs the reason."""
        if self.counted:
            return "supported" if self.kept == self.counted else "mixed" if self.kept else "contradicted"
        if self.more:
            return "not measured near it"
        if self.less:
            return "not measured with that much"
        return "measured outside its assumptions" if self.outside else "not measured yet"

    def elsewhere(self, asked: Link) -> str:
        """Flows and BDP of the counted runs where they are unlike the question's; "" if all are alike."""
        if self.flows is None or self.bdp is None:
            return ""
        ranges = []
        if not _alike(self.flows, asked.flows):
            ranges.append(f"n = {span_of(*self.flows)}")
        if not _alike(self.bdp, asked.bdp):
            ranges.append(f"BDP = {span_of(*map(round, self.bdp))}")
        return ", ".join(ranges)


def span_of(least: float, most: float) -> str:
    """A range as text, "3" or "3 to 8"; numbers that are not whole have three digits."""
    low, high = (str(value) if isinstance(value, int) else f"{value:.3g}" for value in (least, most))
    return low if low == high else f"{low} to {high}"


def judge(rule: Rule, asked: Link, runs: list[EvidenceRun]) -> Verdict:
    """Judges the rule by the runs with the question's congestion control. DELTA, LOSING, UTIL and RISK are as asked."""
    trials = [trial for run in runs if (trial := _trial(rule, asked, run)) is not None]
    inside = _nearest(rule, asked, [trial for trial in trials if not trial.is_outside])
    outside = _nearest(rule, asked, [trial for trial in trials if trial.is_outside])
    counted, outside_counted = _counted(inside), _counted(outside)
    less = [trial for trial in inside if not trial.has_enough]
    return Verdict(
        counted=len(counted),
        kept=_kept(counted),
        more=len(inside) - len(counted) - len(less),
        less=len(less),
        less_kept=_kept(less),
        ratios=_span([trial.ratio for trial in counted]),
        flows=_span([trial.run.flows for trial in counted]),
        bdp=_span([trial.link.bdp for trial in counted]),
        deltas=_span([trial.run.delta for trial in counted if trial.run.delta is not None])
        if rule.needs_delta
        else None,
        losing=_span([trial.run.flows_losing for trial in counted if trial.run.flows_losing is not None])
        if rule.most_losing
        else None,
        unfair=sum(rule.needs_delta and (trial.run.delta or 0.0) > asked.delta for trial in counted),
        many_losing=sum(
            rule.most_losing is not None and (trial.run.flows_losing or 0.0) > rule.most_losing(trial.link)
            for trial in counted
        ),
        outside=len(outside),
        outside_counted=len(outside_counted),
        outside_kept=_kept(outside_counted),
    )


def _trial(rule: Rule, asked: Link, run: EvidenceRun) -> Trial | None:
    """The trial of a rule by a run; None if the run cannot judge the rule."""
    if run.cc != asked.cc or (run.flows == 1) != (rule.runs_of == "one") or not run.tells(rule):
        return None
    link = run.link(asked)
    if rule.promise is None or not rule.applies(link):
        return None
    promise = rule.promise(link)
    value = getattr(run, promise.measure)
    if value is None:
        return None
    # LOSING is an assumption about the question's link. For this run the number of losing flows was measured.
    assumed = link if rule.takes_losing else replace(link, losing=None)
    advice = Advice(rule, rule.ask(link), rule.assumptions(assumed))
    return Trial(run, link, advice.packets, value >= promise.least, advice.holds is False)


def _nearest(rule: Rule, asked: Link, trials: list[Trial]) -> list[Trial]:
    """The trials on links like the question's, if any of them counts; otherwise all trials. The number of flows makes
    no difference to a rule that treats all flows as one.
    """
    like = [
        trial
        for trial in trials
        if _alike((trial.link.bdp, trial.link.bdp), asked.bdp)
        and (rule.runs_of == "one" or _alike((trial.run.flows, trial.run.flows), asked.flows))
    ]
    return like if _counted(like) else trials


def _counted(trials: list[Trial]) -> list[Trial]:
    """The trials that test the rule's buffer. A promise kept with more than NEAR times the buffer is no test."""
    return [trial for trial in trials if trial.has_enough and (trial.ratio <= NEAR or not trial.kept)]


def _kept(trials: list[Trial]) -> int:
    return sum(trial.kept for trial in trials)


def _alike(span: tuple[float, float], asked: float) -> bool:
    return asked / NEAR <= span[0] and span[1] <= asked * NEAR


def _span(values: list[Number]) -> tuple[Number, Number] | None:
    return (min(values), max(values)) if values else None
