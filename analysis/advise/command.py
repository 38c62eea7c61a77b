# SPDX-License-Identifier: MIT
"""The part of the command `advise` that reads stored runs. The measurement (MEASURE=1) is in
experiments/commands/advise.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.advise.parameters import Asked as AdviseKeys
from analysis.advise.parameters import Question
from lib.terminal import say

if TYPE_CHECKING:
    from analysis.advise.brief import Answer, Measurement

Measure = Callable[["Answer"], "Measurement"]
Check = Callable[[Question, "Measurement | None"], str]  # the line that says how to check the answer
CHECKOUT = Path(__file__).resolve().parents[2]
PUBLISHED = CHECKOUT / "docs/results"


def run(asked: AdviseKeys, check: Check, measure: Measure | None = None) -> int:
    """Prints the advice; returns the exit status. `measure` makes a measurement."""
    directory = asked.evidence if "evidence" in asked.model_fields_set else CHECKOUT / asked.evidence
    try:
        _answer(asked, directory, asked.json_, asked.advise == "full", check, measure)
    except SystemExit:  # raised by rich if the reader of stdout has ended
        raise BrokenPipeError from None
    return 0


def _answer(
    question: Question, directory: Path, as_json: bool, full: bool, check: Check, measure: Measure | None
) -> None:
    from analysis.advise import brief, evidence, judge, rules, show, transfers

    runs = evidence.load(directory)
    answer = None if question.is_about_transfers else brief.answer(question, runs)
    if not as_json:
        if answer is None:
            lines = transfers.lines(question, directory)
        else:
            measured = measure(answer) if measure else None
            lines = brief.lines(answer, check(question, measured), measured)
            if question.from_:
                lines = _of_capture(question.from_, question, answer, lines)
        for line in lines:
            say(line)
    if not (as_json or full):
        return
    rows = [
        show.AdviceRow(advice, judge.judge(advice.rule, question.link, runs.runs))
        for advice in rules.advise(question.link)
    ]
    if as_json:
        print(show.as_json(question, rows, runs, answer))
    else:
        say("")
        show.print_table(question, rows, runs)


def _of_capture(directory: Path, question: Question, answer: Answer, brief_lines: list[str]) -> list[str]:
    """Five lines: the capture, and what brief says; then a table of buffers, and the check."""
    from analysis.advise import of_capture
    from analysis.advise.captured import Captured

    captured = Captured(directory)
    found = of_capture.advise(captured, question, answer)
    first = len(brief_lines) - 5  # BUF's lines: the table has it
    lines = [captured.line(), *brief_lines[first:-1], *of_capture.lines(captured, found, question.link)]
    return [*lines, brief_lines[-1]]
