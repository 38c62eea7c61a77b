# SPDX-License-Identifier: MIT
"""A row's number held against our own runs: of those with such a buffer, how many did what the rule promises.

The rule is asked for each run's rate, RTT, MTU and flows, with the DELTA, LOSING, UTIL and RISK of the row, and the run
judged by Rule.promise. Where runs of the link that was asked about tell something they count alone, else all do. Runs
that break an assumption which inputs tell (algorithm, number of flows) are told apart. What they measured of those that
no input tells (Delta, flows that lose) is said beside the verdict: it is what the number's user will meet as well.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, TypeVar

from analysis.advise.evidence import StoredRun
from analysis.advise.link import Link
from analysis.advise.rule import Advice, Rule

NEAR = 1.25  # times what a rule asks for: a run with more buffer is no support; and the factor between like links
Number = TypeVar("Number", int, float)


class Held(NamedTuple):
    """A run held against a rule: what it asks for there, packets, and whether the run did what it promises."""

    run: StoredRun
    link: Link
    asks: float
    kept: bool
    is_outside: bool  # of the assumptions that inputs tell

    @property
    def has_enough(self) -> bool:
        """A buffer that was given in BDP is rounded to the nearest packet."""
        return self.run.buffer_packets >= self.asks - 0.5

    @property
    def ratio(self) -> float:
        """Its buffer over what is asked for."""
        return self.run.buffer_packets / max(self.asks, 1.0)


class Verdict(NamedTuple):
    """`counted` runs had the buffer that the rule asks for and up to NEAR times as much, or more and it was not enough;
    `kept` of them did what it promises. `more` had more than that, and did; `less` had less, `less_kept` of them did.

    Of those counted (None: none): `ratios` of buffer to what is asked for; flows; BDPs, packets; `deltas` and
    `losing` as measured, where the rule assumes something of them. In `unfair` of them Delta is above the row's, in
    `many_losing` the mean number of flows that lose in an RTT is above the bound, which is of every RTT: a mean can
    break it, not show that it holds. `outside` more break an assumption: `outside_counted`, `outside_kept` as above.
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
        """supported, contradicted, mixed, or why none can be said."""
        if self.counted:
            return "supported" if self.kept == self.counted else "mixed" if self.kept else "contradicted"
        if self.more:
            return "not measured near it"
        if self.less:
            return "not measured with so much"
        return "measured outside its assumptions" if self.outside else "not measured yet"

    def elsewhere(self, asked: Link) -> str:
        """Of what other links the counted runs are, "" if they are all about as the one that is asked about."""
        if self.flows is None or self.bdp is None:
            return ""
        found = []
        if not _alike(self.flows, asked.flows):
            found.append(f"n = {span_of(*self.flows)}")
        if not _alike(self.bdp, asked.bdp):
            found.append(f"BDP = {span_of(*map(round, self.bdp))}")
        return ", ".join(found)


def span_of(least: float, most: float) -> str:
    """3, or 3 to 8: whole numbers, or three digits."""
    low, high = (str(value) if isinstance(value, int) else f"{value:.3g}" for value in (least, most))
    return low if low == high else f"{low} to {high}"


def judge(rule: Rule, asked: Link, runs: list[StoredRun]) -> Verdict:
    """The rule, as the row for `asked` computes it, against the runs of its congestion control."""
    held = [found for run in runs if (found := _hold(rule, asked, run)) is not None]
    inside = _nearest(rule, asked, [one for one in held if not one.is_outside])
    outside = _nearest(rule, asked, [one for one in held if one.is_outside])
    counted, outside_counted = _counted(inside), _counted(outside)
    less = [one for one in inside if not one.has_enough]
    return Verdict(
        counted=len(counted),
        kept=_kept(counted),
        more=len(inside) - len(counted) - len(less),
        less=len(less),
        less_kept=_kept(less),
        ratios=_span([one.ratio for one in counted]),
        flows=_span([one.run.flows for one in counted]),
        bdp=_span([one.link.bdp for one in counted]),
        deltas=_span([one.run.delta for one in counted if one.run.delta is not None]) if rule.needs_delta else None,
        losing=_span([one.run.flows_losing for one in counted if one.run.flows_losing is not None])
        if rule.most_losing
        else None,
        unfair=sum(rule.needs_delta and (one.run.delta or 0.0) > asked.delta for one in counted),
        many_losing=sum(
            rule.most_losing is not None and (one.run.flows_losing or 0.0) > rule.most_losing(one.link)
            for one in counted
        ),
        outside=len(outside),
        outside_counted=len(outside_counted),
        outside_kept=_kept(outside_counted),
    )


def _hold(rule: Rule, asked: Link, run: StoredRun) -> Held | None:
    """None if the run says nothing of the rule."""
    if run.cc != asked.cc or (run.flows == 1) != (rule.runs_of == "one") or not run.tells(rule):
        return None
    link = run.link(asked)
    if rule.promise is None or not rule.applies(link):
        return None
    promise = rule.promise(link)
    value = getattr(run, promise.measure)
    if value is None:
        return None
    # How many lose is LOSING's word about the link that was asked about, and not about this run, where it was measured
    assumed = link if rule.takes_losing else replace(link, losing=None)
    advice = Advice(rule, rule.ask(link), rule.assumptions(assumed))
    return Held(run, link, advice.packets, value >= promise.least, advice.holds is False)


def _nearest(rule: Rule, asked: Link, held: list[Held]) -> list[Held]:
    """Those of links like the one that is asked about, if any of them counts; else all. How many flows there are makes
    no difference to a rule that treats them as one.
    """
    like = [
        one
        for one in held
        if _alike((one.link.bdp, one.link.bdp), asked.bdp)
        and (rule.runs_of == "one" or _alike((one.run.flows, one.run.flows), asked.flows))
    ]
    return like if _counted(like) else held


def _counted(held: list[Held]) -> list[Held]:
    """Those that tell something of the number: who keeps a promise with far more does not."""
    return [one for one in held if one.has_enough and (one.ratio <= NEAR or not one.kept)]


def _kept(held: list[Held]) -> int:
    return sum(one.kept for one in held)


def _alike(span: tuple[float, float], asked: float) -> bool:
    return asked / NEAR <= span[0] and span[1] <= asked * NEAR


def _span(values: list[Number]) -> tuple[Number, Number] | None:
    return (min(values), max(values)) if values else None
