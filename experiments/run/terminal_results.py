# SPDX-License-Identifier: MIT
"""The results of one or several repetitions on the terminal: the verdict sentence, numbers, and the report's path. With
several repetitions each number is a mean (least to most), and a line for each repetition follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from analysis.wording import verdict_text
from analysis.wording.verdict_text import Share
from lib.terminal import complain, say
from runs import verdict
from runs.quantities import BY_NAME, EACH_REPETITION, LINES, RATE_BPS, SINGLE, Unit

FRACTION = Unit("{:.1f} %", 100)  # of the goodput


class Outcome(NamedTuple):
    """The part of a repetition's summary that the terminal needs. `values` has the measured quantities by name."""

    number: int
    values: Mapping[str, float]
    shares: list[Share]
    sentence: str
    valid: bool
    reasons: list[str]
    still_true: list[str]
    report: Path
    summary: Mapping[str, Any]


def outcome(number: int, summary: dict[str, Any], repetition: Path) -> Outcome:
    """The outcome of repetition `number`."""
    shown = {quantity.name: quantity.of(summary) for line in LINES.values() for quantity in line}
    values = {name: float(value) for name, value in shown.items() if isinstance(value, (int, float))}
    if not values.get("marks"):  # without marks the line would say nothing
        values.pop("marks", None)
    valid, shares = bool(summary.get("valid")), verdict_text.shares(summary)
    values |= {f"share.{share.cc}": share.fraction for share in shares if share.fraction is not None}
    return Outcome(
        number, values, shares, verdict_text.sentence(summary), valid,
        verdict.reasons(summary), [] if valid else verdict_text.still_true(summary), repetition / "report.html",
        summary,
    )  # fmt: skip


def lines(outcomes: Sequence[Outcome]) -> list[str]:
    """The numbers of all repetitions. A line is left out if one of its quantities is missing."""
    texts = []
    for line, quantities in LINES.items():
        if line in SINGLE and len(outcomes) > 1:
            continue
        parts = [_spread(q.unit, [o.values[q.name] for o in outcomes if q.name in o.values]) for q in quantities]
        if all(parts):
            labels = [f"{part}{q.label}" for part, q in zip(parts, quantities, strict=True)]
            texts.append(f"  {line:<12} {', '.join(labels)}")
        if line == "goodput":
            texts += _share_lines(outcomes)
    return texts


def _spread(unit: Unit, values: Sequence[float]) -> str:
    """The number, or the mean and the range of several numbers; "" without any."""
    if not values:
        return ""
    mean, least, most = (unit.text(value) for value in (sum(values) / len(values), min(values), max(values)))
    return mean + (f" ({least.split()[0]} to {most.split()[0]})" if least != most else "")


def _share_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """A line for each algorithm; none if there is only one."""
    texts = []
    for mine in outcomes[0].shares if len(outcomes[0].shares) > 1 else ():
        each = [share for outcome in outcomes for share in outcome.shares if share.cc == mine.cc]
        fractions = [share.fraction for share in each if share.fraction is not None]
        rates = [share.goodput_bps for share in each]
        parts = [_spread(RATE_BPS, rates)]
        parts += [f"{_spread(FRACTION, fractions)} of the goodput"] if fractions else []
        equal = mine.flows / sum(share.flows for share in outcomes[0].shares)
        texts.append(
            f"  {mine.name:<12} {', '.join(parts)}, by {mine.flows} flow{'s' * (mine.flows > 1)} "
            f"(equal shares: {100 * equal:.3g} %)"
        )
    return texts


def warn(outcome: Outcome, label: str = "") -> None:
    """Reports that a repetition is not valid, which of its results still hold, and every reason."""
    complain(f"NOT VALID{label}: do not draw conclusions from this run")
    for line in outcome.still_true:
        complain(f"  still true: {line}" if not line.startswith(("Not true", "Nothing is known")) else f"  {line}")
    for reason in outcome.reasons:
        complain(f"  because: {reason}")


def show_one(outcome: Outcome, took: str) -> None:
    """Prints a single repetition. If the repetition is not valid, the warning comes first."""
    if not outcome.valid:
        warn(outcome)
    say(outcome.sentence)
    for line in lines([outcome]):
        say(line)
    say(f"  {'took':<12} {took}")
    say(f"  {'report':<12} {outcome.report}")


def show_all(outcomes: Sequence[Outcome]) -> None:
    """Prints several repetitions: first the valid ones together, then each. If none is valid, all count together."""
    ordered = sorted(outcomes)
    valid = [outcome for outcome in ordered if outcome.valid]
    counted = valid or ordered
    for outcome in ordered:
        if not outcome.valid:
            warn(outcome, f", repetition {outcome.number}")
    which = f"{len(counted)} {'valid ' * (0 < len(valid) < len(ordered))}repetitions"
    one_only = len(counted) == 1
    say(f"Repetition {counted[0].number}, the only valid one:" if one_only else f"{which}, mean (least to most):")
    for line in lines(counted):
        say(line)
    say(_sentence_of(counted))
    say("each repetition: utilization, delay median, p99, packets dropped" + _names(ordered))
    for outcome in ordered:
        values = [BY_NAME[name].unit.text(outcome.values[name]) for name in EACH_REPETITION if name in outcome.values]
        values += [
            FRACTION.text(share.fraction) for share in outcome.shares if share.fraction is not None and _many(outcome)
        ]
        verdict = "" if outcome.valid else "  NOT VALID"
        say(f"  {outcome.number:<4} {'  '.join(f'{value:>9}' for value in values)}   {outcome.report}{verdict}")


def median(outcomes: Sequence[Outcome]) -> Outcome:
    """The repetition whose utilization is the median."""
    ranked = sorted(outcomes, key=lambda outcome: outcome.values.get("utilization_mean", 0.0))
    return ranked[(len(ranked) - 1) // 2]


def _sentence_of(outcomes: Sequence[Outcome]) -> str:
    """The sentence of the repetition whose utilization is the median."""
    middle = median(outcomes)
    return middle.sentence if len(outcomes) == 1 else f"Repetition {middle.number}, the median: {middle.sentence}"


def _many(outcome: Outcome) -> bool:
    return len(outcome.shares) > 1


def _names(outcomes: Sequence[Outcome]) -> str:
    first = outcomes[0]
    return "".join(f", {share.name}'s share" for share in first.shares) if _many(first) else ""
