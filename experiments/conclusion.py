# SPDX-License-Identifier: MIT
"""The results of one or several repetitions on the terminal: the verdict sentence, numbers, and the report's path. With
several repetitions each number is a mean (least to most), and a line for each repetition follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from analysis import in_words
from analysis.in_words import Share
from lib.terminal import complain, say

Values = Mapping[str, float]


class Outcome(NamedTuple):
    """The part of a repetition's summary that the terminal needs. `values` has the measured numbers by their paths."""

    number: int
    values: Values
    shares: list[Share]
    sentence: str
    valid: bool
    reasons: list[str]
    still_true: list[str]
    report: Path


class ShownQuantity(NamedTuple):
    """A number of Outcome.values: its path in the summary, and how people read it."""

    name: str
    path: str
    factor: float
    form: str  # the format of the number
    label: str  # printed after the number


class ConclusionRow(NamedTuple):
    """A line of the terminal. The line is left out if one of its quantities is missing."""

    name: str
    quantities: tuple[ShownQuantity, ...]
    single: bool = False  # shown for a single repetition only


def _quantity(path: str, form: str, label: str = "", factor: float = 1.0) -> ShownQuantity:
    return ShownQuantity(path, path, factor, form, label)


def _lateness(path: str, most: str) -> tuple[ShownQuantity, ...]:
    named = (("p50", " median"), ("p99", " p99"), ("max", most))
    return tuple(_quantity(f"{path}.{name}", "{:.0f} us", label) for name, label in named)


ROWS = (
    ConclusionRow("utilization", (
        _quantity("utilization.mean", "{:.2f} %", " mean", 100),
        _quantity("utilization.p01", "{:.2f} %", " in the worst 1 % of windows", 100),
    )),
    ConclusionRow("delay", (
        _quantity("queue_delay_ns.p50", "{:.4g} ms", " median", 1e-6),
        _quantity("queue_delay_ns.p99", "{:.4g} ms", " p99", 1e-6),
        _quantity("queue_delay_ns.max", "{:.4g} ms", " most, in the queue", 1e-6),
    )),
    ConclusionRow("queue", (
        _quantity("queue_depth_packets.p01", "{:.0f}", " p1"),
        _quantity("queue_depth_packets.p50", "{:.0f}", " median"),
        _quantity("queue_depth_packets.p99", "{:.0f}", " p99"),
        _quantity("queue_depth_packets.max", "{:.0f}", " most packets"),
    )),
    ConclusionRow("theory", (
        _quantity("open_loop.mean_depth_packets.measured", "{:.3f}", " packets mean depth"),
        _quantity("open_loop.mean_depth_packets.theory", "{:.3f}", " expected"),
        _quantity("open_loop.mean_depth_packets.standard_error", "{:.2g}", " standard error"),
    )),
    ConclusionRow("goodput", (_quantity("goodput_bps", "{:.4g} Mb/s", "", 1e-6),)),
    ConclusionRow("fairness", (_quantity("jain_index", "{:.3f}", " (Jain: 1 is equal)"),)),
    ConclusionRow("drops", (
        _quantity("drops", "{:.0f}", " packets"),
        _quantity("drop_fraction", "{:.3g} %", " of all", 100),
    )),
    ConclusionRow("marks", (
        _quantity("marks", "{:.0f}", " packets"),
        _quantity("mark_fraction", "{:.3g} %", " of all", 100),
    )),
    ConclusionRow("postcards", (
        _quantity("ledger.postcards_sent", "{:.0f}", " sent"),
        _quantity("ledger.postcards_rows", "{:.0f}", " analysed"),
    ), single=True),
    ConclusionRow("trace", (
        _quantity("ledger.tcp_events", "{:.0f}", " records"),
        _quantity("ledger.tcp_events_lost", "{:.0f}", " lost"),
    ), single=True),
    ConclusionRow("lateness", _lateness("fidelity.lateness_us", " most, of frames"), single=True),
    ConclusionRow("kept rate", (
        _quantity("rate.kept_pps", "{:.0f}", " packets/s"),
        _quantity("rate.measured_pps", "{:.1f}", " packets/s measured back to back"),
    ), single=True),
    ConclusionRow("delay line", _lateness("fidelity.line.lateness_us", " most late"), single=True),
    ConclusionRow("rate error", (_quantity("fidelity.rate_error_fraction", "{:.4f} %", "", 100),), single=True),
)  # fmt: skip
BRIEF = ("utilization.mean", "queue_delay_ns.p50", "queue_delay_ns.p99", "drop_fraction")  # for each repetition
BY_PATH = {quantity.path: quantity for row in ROWS for quantity in row.quantities}


def outcome(number: int, summary: dict[str, Any], repetition: Path) -> Outcome:
    """The outcome of repetition `number`."""
    values = {}
    arrivals, marks = summary.get("arrivals"), summary.get("marks")
    whole = summary | {"mark_fraction": marks / arrivals if arrivals and marks is not None else None}
    for path in BY_PATH:
        value: Any = whole
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, (int, float)):
            values[path] = float(value)
    if not marks:  # without marks the line would say nothing
        values.pop("marks", None)
    valid = bool(summary.get("valid"))
    return Outcome(
        number, values, in_words.shares(summary), in_words.sentence(summary), valid,
        [] if valid else [str(reason) for reason in summary.get("reasons") or ["the summary gives no reason"]],
        [] if valid else in_words.still_true(summary), repetition / "report.html",
    )  # fmt: skip


def lines(outcomes: Sequence[Outcome]) -> list[str]:
    """The numbers of all repetitions, a line for each row."""
    texts = []
    for row in ROWS:
        if row.single and len(outcomes) > 1:
            continue
        parts = [_spread(q, [o.values[q.path] for o in outcomes if q.path in o.values]) for q in row.quantities]
        if all(parts):
            texts.append(f"  {row.name:<12} {', '.join(parts)}")
        if row.name == "goodput":
            texts += _share_lines(outcomes)
    return texts


def _spread(quantity: ShownQuantity, values: Sequence[float]) -> str:
    """The number, or the mean and the range of several numbers; "" without any."""
    if not values:
        return ""
    mean, least, most = (
        quantity.form.format(quantity.factor * value) for value in (sum(values) / len(values), min(values), max(values))
    )
    between = f" ({least.split()[0]} to {most.split()[0]})" if least != most else ""
    return f"{mean}{between}{quantity.label}"


def _share_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """A line for each algorithm; none if there is only one."""
    texts = []
    for mine in outcomes[0].shares if len(outcomes[0].shares) > 1 else ():
        each = [share for outcome in outcomes for share in outcome.shares if share.cc == mine.cc]
        fractions = [share.fraction for share in each if share.fraction is not None]
        rates = [share.goodput_bps for share in each]
        parts = [_spread(ShownQuantity("", "", 1e-6, "{:.4g} Mb/s", ""), rates)]
        parts += [_spread(ShownQuantity("", "", 100, "{:.1f} %", " of the goodput"), fractions)] if fractions else []
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
        values = [BY_PATH[path].form.format(BY_PATH[path].factor * outcome.values[path]) for path in BRIEF
                  if path in outcome.values]  # fmt: skip
        values += [
            f"{100 * share.fraction:.1f} %" for share in outcome.shares if share.fraction is not None and _many(outcome)
        ]
        verdict = "" if outcome.valid else "  NOT VALID"
        say(f"  {outcome.number:<4} {'  '.join(f'{value:>9}' for value in values)}   {outcome.report}{verdict}")


def _sentence_of(outcomes: Sequence[Outcome]) -> str:
    """The sentence of the repetition whose utilization is the median."""
    ranked = sorted(outcomes, key=lambda outcome: outcome.values.get("utilization.mean", 0.0))
    middle = ranked[(len(ranked) - 1) // 2]
    return middle.sentence if len(outcomes) == 1 else f"Repetition {middle.number}, the median: {middle.sentence}"


def _many(outcome: Outcome) -> bool:
    return len(outcome.shares) > 1


def _names(outcomes: Sequence[Outcome]) -> str:
    first = outcomes[0]
    return "".join(f", {share.name}'s share" for share in first.shares) if _many(first) else ""
