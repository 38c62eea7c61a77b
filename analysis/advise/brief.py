# SPDX-License-Identifier: MIT
"""The advice in five lines: the buffer to start with, the least buffer as an interval, the confidence, the range of the
rules, a command that checks it. With BUF, what that buffer would give comes first. Values can be pasted into a command.

The least buffer follows from stored runs (estimates.py); the start is the upper end of its interval. Without enough
runs of the algorithm, three rules are candidates for the start. The single-flow rule is for flows that lose packets
together. Theorem 6, with at least the Delta that Spang et al. measured, is for several flows with unequal windows. The
third is the BDP. The start is then the smallest of their buffers that our runs do not contradict, or the largest if
runs contradict all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from analysis.advise import estimates, rules
from analysis.advise.estimates import Estimate, Least, Outcome, Series
from analysis.advise.evidence import Evidence, EvidenceRun
from analysis.advise.judge import Verdict, judge
from analysis.advise.link import Link
from analysis.advise.parameters import Question
from analysis.advise.rule import MEAN, Advice
from analysis.advise.rules_long_flows import DESYNCHRONIZED_ABOVE, SYNCHRONIZED_BELOW
from analysis.theory.many_flows import MEASURED_DELTA
from analysis.wording.formats import round_up
from lib import units
from lib.terminal import counted

ONE_FLOW, UNEQUAL, BDP = "one-flow", "theorem-6", "bdp"
CHECK_WORDS = "WARMUP=100rtt DURATION=50rtt"  # 150 RTTs of traffic; `make experiment` has 1200 by default
ENOUGH_RUNS = 3  # with this many runs on links like the question's, confidence in a rule is high
HIGH, MEDIUM = 3.0, 10.0  # confidence: the most that the interval's ends may differ by, as a factor
FLOWS_SHOWN = (1, 10, 100, 1000, 10_000)  # if the number of flows is unknown


class Measurement(NamedTuple):
    """A search for the least buffer: its lines, and the interval of the least buffer of the asked link (None: no buffer
    was enough). `carried_over`: the search ran on a scaled link, and no run of the asked link confirmed the buffer.
    `refused`: why the asked link cannot be run; `needs_yes`: whether a run of it needs YES=1.
    """

    lines: list[str]
    interval: Estimate | None
    carried_over: bool
    refused: str = ""
    needs_yes: bool = False


class RuleStart(NamedTuple):
    """The buffer to start with by a rule, the rule, the link with the rule's Delta, and the verdict of runs. `refuted`:
    one text for each candidate that has a smaller buffer and is contradicted by most of our runs.
    """

    packets: int
    advice: Advice
    link: Link
    verdict: Verdict
    refuted: list[str]


class Answer(NamedTuple):
    """The answer to a question. `least` (UTIL as the 1st percentile over ten RTTs) and `least_mean` (as the mean) are
    None without enough runs; `by_rule` is then the start. `by_flows` has the least buffer for some numbers of flows if
    the question's is unknown, `outcomes` what BUF would give for these.
    """

    question: Question
    stored: list[Series]
    runs: Evidence
    by_flows: dict[int, Estimate]
    least: Estimate | None
    least_mean: Estimate | None
    by_rule: RuleStart
    outcomes: dict[int, Outcome]

    @property
    def packets(self) -> int:
        """The buffer to start with."""
        return self.by_rule.packets if self.least is None else upper(self.least)


def upper(interval: Estimate) -> int:
    return max(math.ceil(interval.high), 1)


def answer(question: Question, runs: Evidence) -> Answer:
    """The answer from stored runs, and from the rules."""
    link, stored = question.link, estimates.series(runs.runs)
    numbers = [link.flows] if question.flows else [n for n in FLOWS_SHOWN if n <= max(link.bdp, 1)]
    links = {n: replace(link, flows=n) for n in numbers}
    by_flows = {n: each for n, at in links.items() if (each := estimates.least(stored, at)) is not None}
    means = [each for at in links.values() if (each := estimates.least(stored, at, MEAN)) is not None]
    buffer = question.buffer_packets
    return Answer(
        question, stored, runs, by_flows,
        max(by_flows.values(), key=lambda each: each.high, default=None),
        max(means, key=lambda each: each.high, default=None),
        start(link, runs.runs),
        {n: estimates.outcome(stored, at, buffer) for n, at in links.items()} if buffer else {},
    )  # fmt: skip


def carried_over(given: Answer, bounded: Least) -> Estimate:
    """The least buffer of the asked link, from stored runs and bounds that were measured on another link. Without
    enough stored runs, from the bounds alone, by the square root rule.
    """
    link = given.question.link
    if (interval := estimates.least(given.stored, link, also=[bounded])) is not None:
        return interval
    factor = link.bdp / bounded.bdp * math.sqrt(bounded.flows / link.flows)
    high = factor * bounded.high if math.isfinite(bounded.high) else estimates.MOST_BDP * link.bdp
    return Estimate(high, factor * bounded.low, high)


def start(link: Link, runs: Sequence[EvidenceRun]) -> RuleStart:
    """The candidate with the smallest buffer that most of our runs do not contradict; the largest buffer if they
    contradict all. A rule that no run tests is not contradicted.
    """
    unequal = replace(link, delta=max(link.delta, MEASURED_DELTA[link.cc]))
    candidates = [
        advice
        for advice in rules.advise(unequal)
        if advice.rule.key in (ONE_FLOW, UNEQUAL, BDP) and not math.isinf(advice.packets)
    ]
    refuted: list[str] = []
    for advice in sorted(candidates, key=lambda advice: advice.packets):
        verdict = judge(advice.rule, unequal, list(runs))
        start_buffer = RuleStart(max(round_up(advice.packets), 1), advice, unequal, verdict, refuted)
        tested, kept = trials(verdict)
        if 2 * kept >= tested:
            return start_buffer
        refuted = [*refuted, f"{kept} of {tested} runs kept what {advice.rule.name} promises"]
    return start_buffer


def trials(verdict: Verdict) -> tuple[int, int]:
    """The number of runs that test a rule, and the number of them that kept its promise. Runs that break an assumption
    count only if there are no others.
    """
    if verdict.counted:
        return verdict.counted, verdict.kept
    return verdict.outside_counted, verdict.outside_kept


def _with_time(link: Link, packets: int) -> str:
    """A buffer in packets, and the delay that it adds when full."""
    return f"{packets}p ({1e3 * link.time_s(packets):.3g} ms)"


def pasteable(link: Link, packets: int) -> str:
    """A buffer as BUF takes it, in packets, bytes and time; all three are the same number of full packets."""
    time_ns = units.nearest(Fraction(packets * link.wire_bytes * 8 * 10**9, link.rate_bps))
    return f"BUF={packets}p (or {int(link.bytes(packets))}b, or {units.show(time_ns, 'time')})"


def words(link: Link, flows: str = "") -> str:
    """The link as words of a command line."""
    return (
        f"RATE={units.show(link.rate_bps, 'rate')} RTT={units.show(link.rtt_ns, 'time')} FLOWS={flows or link.flows} "
        f"CC={link.cc}" + (f" MTU={link.mtu_bytes}" if link.mtu_bytes != Link.mtu_bytes else "")
    )


def words_of(question: Question) -> str:
    """The question as words of a command line."""
    link = question.link
    return f"{words(link, '' if question.flows else 'unknown')} UTIL={link.utilization:g}"


def lines(given: Answer, check: str, measured: Measurement | None = None) -> list[str]:
    """The five lines, `check` being the last. With BUF, what it would give comes first; with `measured` (MEASURE=1),
    the measurement and the buffer to take.
    """
    link = given.question.link
    return [
        *(_would_give(given, flows, outcome) for flows, outcome in given.outcomes.items()),
        *(_taken(link, measured) if measured else ()),
        f"{'Without the measurement:' if measured else 'Start with'} {_adds(link, given.packets)}"
        f"{_why_start(given)}. Asked: {words_of(given.question)}.",
        _least(given),
        f"Confidence{' without the measurement' if measured else ''}: {_confidence(given)}",
        _rules(given.question),
        check,
    ]


def _adds(link: Link, packets: int) -> str:
    return f"{pasteable(link, packets)}: when full, it adds {1e3 * link.time_s(packets):.4g} ms of delay"


def _why_start(given: Answer) -> str:
    if given.least is not None:
        return ", the upper end of the least buffer by our runs"
    begin = given.by_rule
    delta = f" with Delta {begin.link.delta:g}, as measured by Spang et al." if begin.advice.rule.needs_delta else ""
    return f" ({begin.advice.rule.name}{delta})"


def _would_give(given: Answer, flows: int, outcome: Outcome) -> str:
    link, buffer = given.question.link, given.question.buffer_packets or 0
    many = "" if given.question.flows else f" with {counted(flows, 'flow')}"
    if not (text := outcome_text(outcome)):
        return f"{pasteable(link, buffer)}{many}: too few of our runs have such a buffer to say what it gives."
    return f"{pasteable(link, buffer)} would give{many}: {text}."


def outcome_text(outcome: Outcome) -> str:
    """What a buffer gives, each number with its interval; "" if no number is known."""
    shown = (
        _percent(outcome.utilization_mean, "of the link used in the mean"),
        _percent(outcome.utilization_p01, "in the worst 1 % of windows of ten RTTs"),
        _shown(outcome.delay_p99_s, 1e3, " ms", "of queueing delay at the 99th percentile"),
        _percent(outcome.loss, "of packets lost"),
    )
    return "; ".join(filter(None, shown))


def _percent(interval: Estimate | None, what: str) -> str:
    return _shown(interval, 100, " %", what)


def _shown(interval: Estimate | None, factor: float, unit: str, what: str) -> str:
    if interval is None:
        return ""
    value, low, high = (f"{factor * each:.3g}" for each in interval)
    return f"{value}{unit} ({low} to {high}) {what}"


def _span(link: Link, interval: Estimate) -> str:
    return f"{_with_time(link, max(math.floor(interval.low), 1))} to {_with_time(link, upper(interval))}"


def _least(given: Answer) -> str:
    link = given.question.link
    if given.least is None:
        return f"Least buffer: no estimate, because fewer than {estimates.LEAST_SERIES} links have runs of {link.cc}."
    if not given.question.flows:
        spans = ", ".join(f"{flows}: {_span(link, each)}" for flows, each in given.by_flows.items())
        return f"Least buffer by the unknown number of flows: {spans}."
    used = f"{100 * link.utilization:.4g} % of the link used"
    text = f"Least buffer: {_likely(link, given.least)}, for {used} in all but 1 % of windows of ten RTTs"
    if given.least_mean is not None:
        text += f"; {_likely(link, given.least_mean)}, for {used} in the mean"
    return f"{text}."


def _likely(link: Link, interval: Estimate) -> str:
    return f"{_span(link, interval)}, most likely {max(round(interval.value), 1)}p"


def _taken(link: Link, measured: Measurement) -> list[str]:
    """The measurement, and the buffer to take."""
    if measured.interval is None:
        return measured.lines
    why = ", the upper end of what was carried over" if measured.carried_over else ""
    return [*measured.lines, f"Take {_adds(link, upper(measured.interval))}{why}."]


def _rules(question: Question) -> str:
    link = question.link
    every = rules.advise(link)
    rows = [advice for advice in every if not math.isinf(advice.packets)]
    least, most = min(rows, key=lambda row: row.packets), max(rows, key=lambda row: row.packets)
    return (
        f"Rules: {_with_time(link, max(round_up(least.packets), 1))} by {least.rule.name}, to "
        f"{_with_time(link, round_up(most.packets))} by {most.rule.name}; {_decides(question)} All {len(every)} "
        "rules with their assumptions: ADVISE=full; sources in docs/theory.md."
    )


def _decides(question: Question) -> str:
    link = question.link
    if not question.flows:
        return "the unknown number of flows decides; these are for one flow."
    if link.flows == 1:
        return "a single flow empties the queue at each loss, so its algorithm decides."
    if link.flows > DESYNCHRONIZED_ABOVE:
        return f"{link.flows} flows rarely lose together, so how unequal their windows are decides."
    if link.flows < SYNCHRONIZED_BELOW:
        return f"whether {link.flows} flows lose packets together decides, which is common below {SYNCHRONIZED_BELOW}."
    return (
        f"whether {link.flows} flows lose packets together decides: common below {SYNCHRONIZED_BELOW}, very rare above "
        f"{DESYNCHRONIZED_ABOVE}."
    )


def _confidence(given: Answer) -> str:
    """A word (high, medium, low) and its reason."""
    link, same_cc = given.question.link, [one for one in given.stored if one.cc == given.question.link.cc]
    if given.least is None:
        return _confidence_in_rule(given.by_rule, given.runs.runs)
    factor = given.least.high / given.least.low
    word = "high" if factor <= HIGH else "medium" if factor <= MEDIUM else "low"
    bdps = sorted(one.bdp for one in same_cc)
    times = f"{factor:.2g}" if factor < 10 else f"{factor:.0f}"
    return (
        f"{word}: the ends differ by a factor of {times}, and more than nine in ten of our links, held out, lay "
        f"between such ends; our {len(same_cc)} series of {link.cc} runs have up to "
        f"{max(one.flows for one in same_cc)} flows and a BDP of {bdps[0]:.0f} to {bdps[-1]:.0f} packets, your link "
        f"{link.bdp:.0f}."
    )


def _confidence_in_rule(begin: RuleStart, runs: Sequence[EvidenceRun]) -> str:
    """Only runs on links like this one can make it more than low."""
    link, verdict = begin.link, begin.verdict
    same_cc = [run for run in runs if run.cc == link.cc]
    if not same_cc:
        return f"low: we have no runs of {link.cc} flows."
    most_bdp = max(run.link(link).bdp for run in same_cc)
    reach = f"our {link.cc} runs go to {max(run.flows for run in same_cc)} flows and a BDP of {most_bdp:.0f} packets"
    smaller = "".join(f"; only {text}" for text in begin.refuted)
    tested, kept = trials(verdict)
    if not tested:
        return f"low: no run tests {begin.advice.rule.name} ({verdict.word}); {reach}{smaller}."
    said = f"{kept} of {tested} runs with this rule's buffer kept its promise"
    if not verdict.counted or verdict.elsewhere(link):
        return f"low: {said}, but on other links; {reach}{smaller}."
    if kept == tested:
        return f"{'high' if tested >= ENOUGH_RUNS else 'medium'}: {said}, on links like this one{smaller}."
    return f"low: {said}, on links like this one{smaller}."
