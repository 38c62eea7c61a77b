# SPDX-License-Identifier: MIT
"""The advice in five lines: the buffer to start with, the range, the confidence, a command that checks it, and where
the rules are. Values can be pasted into a command.

Three rules are candidates for the start. The single-flow rule is for flows that lose packets together. Theorem 6, with
at least the Delta that Spang et al. measured, is for several flows with unequal windows. The third is the BDP. The
start is the smallest of their buffers that our runs do not contradict, or the largest if runs contradict all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from analysis.advise import rules
from analysis.advise.evidence import Evidence, EvidenceRun
from analysis.advise.judge import Verdict, judge
from analysis.advise.link import Link
from analysis.advise.rule import Advice
from analysis.advise.rules_long_flows import DESYNCHRONIZED_ABOVE, SYNCHRONIZED_BELOW
from analysis.amounts import whole
from analysis.theory.many_flows import MEASURED_DELTA
from lib import units

ONE_FLOW, UNEQUAL, BDP = "one-flow", "theorem-6", "bdp"
CHECK_WORDS = "WARMUP=100rtt DURATION=50rtt"  # 150 RTTs of traffic; `make experiment` has 1200 by default
ENOUGH_RUNS = 3  # with this many runs on links like the question's, confidence is high


class Measurement(NamedTuple):
    """A search for the least buffer: its lines, and the least buffer of the asked link (None: no buffer was enough).
    `carried_over`: the square root rule scaled the buffer from another link, and no run on the asked link confirmed it.
    """

    lines: list[str]
    packets: int | None
    carried_over: bool


class Start(NamedTuple):
    """The buffer to start with, its rule, the link with the rule's Delta, and the verdict of runs. `refuted`: one text
    for each candidate that has a smaller buffer and is contradicted by most of our runs.
    """

    packets: int
    advice: Advice
    link: Link
    verdict: Verdict
    refuted: list[str]


def start(link: Link, runs: Sequence[EvidenceRun]) -> Start:
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
        start_buffer = Start(max(whole(advice.packets), 1), advice, unequal, verdict, refuted)
        counted, kept = trials(verdict)
        if 2 * kept >= counted:
            return start_buffer
        refuted = [*refuted, f"{kept} of {counted} runs kept what {advice.rule.name} promises"]
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


def words(link: Link) -> str:
    """The link as words of a command line."""
    return (
        f"RATE={units.show(link.rate_bps, 'rate')} RTT={units.show(link.rtt_ns, 'time')} FLOWS={link.flows} "
        f"CC={link.cc}" + (f" MTU={link.mtu_bytes}" if link.mtu_bytes != Link.mtu_bytes else "")
    )


def lines(link: Link, runs: Evidence, measured: Measurement | None = None) -> list[str]:
    """The five lines. With `measured` (MEASURE=1), the measurement and the buffer to take come first."""
    begin = start(link, runs.runs)
    rows = [advice for advice in rules.advise(link) if not math.isinf(advice.packets)]
    least, most = min(rows, key=lambda row: row.packets), max(rows, key=lambda row: row.packets)
    delay_ms = 1e3 * link.time_s(begin.packets)
    return [
        *(_taken(link, measured, begin.packets) if measured else ()),
        f"{'By rules alone:' if measured else 'Start with'} {pasteable(link, begin.packets)}: when full, it adds "
        f"{delay_ms:.4g} ms of delay ({begin.advice.rule.name}{_given_delta(begin)}). Asked: {words(link)} "
        f"UTIL={link.utilization:g}.",
        f"Range: {_with_time(link, max(whole(least.packets), 1))} by {least.rule.name}, to "
        f"{_with_time(link, whole(most.packets))} by {most.rule.name}; {_decides(link)}",
        f"Confidence{' in the rule' if measured else ''}: {_confidence(begin, runs.runs)}",
        _check(link, measured),
        f"All {len(rules.advise(link))} rules with their assumptions: ADVISE=full; sources in docs/theory.md.",
    ]


def _taken(link: Link, measured: Measurement, by_rule: int) -> list[str]:
    """The measurement, and the buffer to take. A buffer that was carried over from another link never replaces a
    larger buffer of the rule: on a link in docs/theory.md it was a twelfth of the rule's buffer, and too small.
    """
    if measured.packets is None:
        return measured.lines
    packets = max(measured.packets, by_rule) if measured.carried_over else measured.packets
    delay_ms = 1e3 * link.time_s(packets)
    why = ""
    if packets > measured.packets:
        why = f"; this is the buffer of the rules, because {measured.packets}p is not measured on your link"
    return [*measured.lines, f"Take {pasteable(link, packets)}: when full, it adds {delay_ms:.4g} ms of delay{why}."]


def _check(link: Link, measured: Measurement | None) -> str:
    if measured is None:
        return (
            f"Check it: make advise {words(link)} UTIL={link.utilization:g} MEASURE=1 (in virtual time; it says "
            "first how many minutes it takes)."
        )
    if measured.carried_over and measured.packets is not None:
        return (
            f"Check it on the link itself: make experiment CLOCK=virtual {words(link)} BUF={measured.packets}p "
            f"{CHECK_WORDS} (it announces its time)."
        )
    return "Measured as above; other values of UTIL or FLOWS need a measurement of their own."


def _given_delta(begin: Start) -> str:
    return f" with Delta {begin.link.delta:g}, as measured by Spang et al." if begin.advice.rule.needs_delta else ""


def _decides(link: Link) -> str:
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


def _confidence(begin: Start, runs: Sequence[EvidenceRun]) -> str:
    """A word (high, medium, low) and its reason. Only runs on links like this one can make it more than low."""
    link, verdict = begin.link, begin.verdict
    same_cc = [run for run in runs if run.cc == link.cc]
    if not same_cc:
        return f"low: we have no runs of {link.cc} flows."
    most_bdp = max(run.link(link).bdp for run in same_cc)
    reach = f"our {link.cc} runs go to {max(run.flows for run in same_cc)} flows and a BDP of {most_bdp:.0f} packets"
    smaller = "".join(f"; only {text}" for text in begin.refuted)
    counted, kept = trials(verdict)
    if not counted:
        return f"low: no run tests {begin.advice.rule.name} ({verdict.word}); {reach}{smaller}."
    said = f"{kept} of {counted} runs with this rule's buffer kept its promise"
    if not verdict.counted or verdict.elsewhere(link):
        return f"low: {said}, but on other links; {reach}{smaller}."
    if kept == counted:
        return f"{'high' if counted >= ENOUGH_RUNS else 'medium'}: {said}, on links like this one{smaller}."
    return f"low: {said}, on links like this one{smaller}."
