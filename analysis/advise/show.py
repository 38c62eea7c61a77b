# SPDX-License-Identifier: MIT
"""Prints advice as a table with assumptions for people, and as JSON for programs."""

from __future__ import annotations

import json
import math
import shutil
import sys
from typing import Any, NamedTuple

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from analysis.advise import rules
from analysis.advise.brief import Answer
from analysis.advise.estimates import Estimate
from analysis.advise.evidence import Evidence
from analysis.advise.judge import NEAR, Verdict, span_of
from analysis.advise.link import Link
from analysis.advise.memory import SOURCE, memory_class, ram_bits
from analysis.advise.parameters import Question
from analysis.advise.rule import MEAN, NONEMPTY, P01, Advice
from analysis.wording.formats import round_up, si
from lib.terminal import counted
from lib.units import show as show_units

MARKS = {True: "yes", False: "NO", None: "?"}
LEAST_WIDTH = 120  # columns; also used if stdout is not a terminal
MOST_PROBLEMS = 5  # problems in the table; the JSON has all
INDENT = (0, 0, 0, 5)
OBJECTIVES = {NONEMPTY: "full use", MEAN: "UTIL", P01: "UTIL"}


class AdviceRow(NamedTuple):
    """One rule's advice, and the verdict of stored runs on the rule."""

    advice: Advice
    verdict: Verdict


def print_table(question: Question, rows: list[AdviceRow], runs: Evidence) -> None:
    """Prints the link, the table, the assumptions and the sources of evidence to stdout."""
    width = shutil.get_terminal_size((0, 0)).columns if sys.stdout.isatty() else 0
    console = Console(width=max(width, LEAST_WIDTH), highlight=False)
    link = question.link
    for line in _headline(link):
        console.print(Text(line))
    console.print()
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name, justify in (
        ("", "right"), ("rule", "left"), ("buffer", "right"), ("", "right"), ("packets", "right"), ("time", "right"),
        ("memory", "left"), ("holds", "left"), ("our runs", "left"),
    ):  # fmt: skip
        table.add_column(name, justify=justify, no_wrap=name in ("buffer", "", "packets", "time", "memory"))  # type: ignore[arg-type]
    for number, (advice, verdict) in enumerate(rows, 1):
        cells = _cells(question, advice)
        judged = _verdict_text(verdict, link) if advice.rule.promise else "-"
        table.add_row(str(number), Text(advice.rule.name), *cells, MARKS[advice.holds], Text(judged))
    console.print(table)
    console.print()
    for number, (advice, verdict) in enumerate(rows, 1):
        console.print(Text(f"{number:>2} {advice.rule.formula}  ({advice.rule.source})"), style="bold")
        for assumption in advice.assumptions:
            console.print(Padding(Text(f"{MARKS[assumption.holds]:<4} {assumption.text}"), INDENT, expand=False))
        if advice.rule.promise:
            for text in _evidence_lines(verdict, advice.rule.promise(link).text, link):
                console.print(Padding(Text(text), INDENT, expand=False))
    console.print()
    for line in _footnotes(question, runs):
        console.print(Text(line))


def as_json(question: Question, rows: list[AdviceRow], runs: Evidence, answer: Answer | None) -> str:
    """The answer as JSON, with units in the names; an infinite buffer is null. `answer` is None for transfers."""
    link = question.link
    document = {
        **({} if answer is None else _answer_document(answer)),
        "link": {
            "rate_bps": link.rate_bps, "rtt_ns": link.rtt_ns, "flows": link.flows if question.flows else None,
            "cc": link.cc,
            "utilization": link.utilization, "mtu_bytes": link.mtu_bytes, "wire_bytes": link.wire_bytes,
            "bdp_packets": link.bdp, "bdp_bits": link.rate_bps * link.rtt_ns / 1e9, "delta": link.delta,
            "losing": link.losing, "risk": link.risk, "window_bytes": link.window_bytes, "input_bps": link.input_bps,
            "load": link.load, "flow_packets": [list(size) for size in link.flow_packets],
        },
        "memory": {**question.limits._asdict(), "source": SOURCE},
        "rules": [_row_document(question, row) for row in rows],
        "not_asked": rules.not_asked(link),
        "evidence": {
            "runs": len(runs.runs), "left_out": runs.left_out, "sources": runs.sources, "problems": runs.problems
        },
    }  # fmt: skip
    return json.dumps(document, indent=2, allow_nan=False)


def _answer_document(answer: Answer) -> dict[str, Any]:
    """Intervals as objects with `value`, `low` and `high`; null without enough runs."""

    def plain(interval: Estimate | None) -> dict[str, float] | None:
        return interval and interval._asdict()

    return {
        "start_packets": answer.packets,
        "least_packets": {
            P01: plain(answer.least), MEAN: plain(answer.least_mean),
            "by_flows": {flows: plain(each) for flows, each in answer.by_flows.items()},
        },
        "buffer_packets": answer.question.buffer_packets,
        "buffer_gives": {
            flows: {name: plain(each) for name, each in outcome._asdict().items()}
            for flows, outcome in answer.outcomes.items()
        },
    }  # fmt: skip


def _row_document(question: Question, row: AdviceRow) -> dict[str, Any]:
    advice, verdict = row
    rule, size = advice.rule, question.link.bytes(advice.packets)
    endless = math.isinf(advice.packets)
    promise = rule.promise(question.link) if rule.promise else None
    return {
        "key": rule.key,
        "name": rule.name,
        "source": rule.source,
        "objective": OBJECTIVES[promise.measure] if promise else "other",
        "buffer": None
        if endless
        else {
            "packets": advice.packets,
            "whole_packets": round_up(advice.packets),
            "bytes": size,
            "wire_bits": advice.packets * question.link.wire_bytes * 8,  # rate x time, as the literature counts
            "time_s": question.link.time_s(advice.packets),
            "ram_bits": ram_bits(size),
        },
        "memory": memory_class(size if endless else question.link.bytes(round_up(advice.packets)), question.limits),
        "holds": advice.holds,
        "conditions": [assumption._asdict() for assumption in advice.assumptions],
        "promise": promise._asdict() if promise else None,
        "measured": {"verdict": verdict.word, **verdict._asdict()} if promise else None,
    }


def _headline(link: Link) -> list[str]:
    n = counted(link.flows, "flow")
    rate, rtt = show_units(link.rate_bps, "rate"), show_units(link.rtt_ns, "time")
    size = link.bdp_wire_bytes
    packets = f"{link.bdp:,.{1 if link.bdp < 1000 else 0}f} packets"
    bdp = f"BDP {si(size, 'B')} = {si(size * 8, 'bit')} on the wire = {packets}"
    return [
        f"{rate}, RTT {rtt}, {n} of {link.cc}, UTIL {link.utilization:g}, MTU {link.mtu_bytes}",
        f"{bdp}, BDP/n = {link.fair_window:.4g} packets",
    ]


def _cells(question: Question, advice: Advice) -> tuple[str, str, str, str, str]:
    if math.isinf(advice.packets):
        return "infinite", "", "", "", ""
    packets = round_up(advice.packets)
    size = question.link.bytes(packets)
    return (
        si(size, "B"),
        si(size * 8, "bit"),
        f"{packets}p",
        si(question.link.time_s(packets), "s"),
        memory_class(size, question.limits),
    )


def _verdict_text(verdict: Verdict, link: Link) -> str:
    if not verdict.counted:
        return verdict.word
    text = f"{verdict.word} ({verdict.kept} of {verdict.counted})"
    if elsewhere := verdict.elsewhere(link):
        text += f" at {elsewhere}"
    if verdict.unfair and verdict.deltas:
        text += f", with Delta {span_of(*verdict.deltas)} measured, not {link.delta:g}"
    elif verdict.many_losing:
        text += ", with more flows losing packets on average than the rule assumes"
    return text


def _evidence_lines(verdict: Verdict, promised: str, link: Link) -> list[str]:
    """Lines on the runs counted and not counted, and on the measured assumptions of the rule."""
    parts, lines = [], []
    if verdict.counted and verdict.ratios and verdict.flows and verdict.bdp:
        where = f"n = {span_of(*verdict.flows)}, BDP = {span_of(*map(round, verdict.bdp))} packets"
        parts.append(
            f"{verdict.kept} of {verdict.counted} with {span_of(*verdict.ratios)} x the rule's buffer ({where})"
        )
    if verdict.more:
        parts.append(f"{verdict.more} with more than {NEAR:g} x, which supports nothing")
    if verdict.less:
        parts.append(f"{verdict.less_kept} of {verdict.less} with a smaller buffer")
    if verdict.outside_counted or (verdict.outside and not parts):
        parts.append(
            f"of the {counted(verdict.outside, 'run')} that break the rule's assumptions, {verdict.outside_kept} of "
            f"{verdict.outside_counted} with its buffer"
        )
    if parts:
        lines.append(f"runs that kept the promise ({promised}): {'; '.join(parts)}")
    if verdict.deltas:
        text = f"measured Delta: {span_of(*verdict.deltas)}"
        if verdict.unfair:
            text += f", above the row's {link.delta:g} in {verdict.unfair} of {verdict.counted}"
            text += ": the runs test the row's number, not the theorem"
        lines.append(text)
    if verdict.losing:
        lines.append(
            f"measured flows that lose in an RTT with losses, mean: {span_of(*verdict.losing)}, above the bound in "
            f"{verdict.many_losing} of {verdict.counted}; the bound holds for every RTT: a mean above the bound breaks "
            "it, a mean below does not prove it"
        )
    return lines


def _footnotes(question: Question, runs: Evidence) -> list[str]:
    lines = [
        "Bytes of a buffer: frames of MTU + 14, as in BUF=300kB. Times and the BDP: packets of MTU + 38 on the wire.",
        f"Memory: {SOURCE}.",
        "holds: yes: all assumptions hold; NO: at least one does not; ?: these inputs do not decide.",
        f"Our runs: {len(runs.runs)} counted, {runs.left_out} left out (not valid, not only long flows of one "
        "algorithm, not tail-drop, paced, behind access links or a window limit, or repeated)"
        + ("" if runs.runs else f"; no run in {question.evidence}, so nothing supports a rule")
        + ". A dash in this column: runs of long flows do not measure this rule's promise.",
    ]
    missing = rules.not_asked(question.link)
    if missing:
        lines.append(f"More rules with {', '.join(missing)}; make advise-parameters explains all.")
    lines += [f"Not read: {problem}" for problem in runs.problems[:MOST_PROBLEMS]]
    if len(runs.problems) > MOST_PROBLEMS:
        lines.append(f"Not read: {len(runs.problems) - MOST_PROBLEMS} more")
    return lines
