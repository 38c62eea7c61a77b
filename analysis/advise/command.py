# SPDX-License-Identifier: MIT
"""The part of the command `advise` that reads stored runs. experiments/advise.py adds the measurement (MEASURE=1)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.advise import parameters
from analysis.advise.parameters import FORMS, Question
from lib.errors import BadValue, SpecError
from lib.terminal import say

if TYPE_CHECKING:
    from analysis.advise.brief import Answer, Measurement

Measure = Callable[["Answer"], "Measurement"]
Check = Callable[[Question, "Measurement | None"], str]  # the line that says how to check the answer
CHECKOUT = Path(__file__).resolve().parents[2]
PUBLISHED = CHECKOUT / "docs/results"


def run(given: dict[str, Any], errors: list[BadValue], check: Check, measure: Measure | None = None) -> int:
    """Prints the advice; returns the exit status. `measure` makes a measurement. Raises SpecError."""
    as_json, form = given.pop("json", "0") == "1", given.pop("advise", FORMS[0])
    if form not in FORMS:
        errors.append(BadValue("ADVISE", form, f"is not known; allowed: {', '.join(FORMS)}"))
    if measure and as_json:
        errors.append(BadValue("JSON", "1", "cannot show a measurement; allowed: JSON=1 without MEASURE=1"))
    if errors:
        named = {error.key for error in errors}
        raise SpecError([*errors, *(error for error in _more_errors(given) if error.key not in named)])
    question = parameters.read(given)
    directory = Path(question.evidence) if "evidence" in given else CHECKOUT / question.evidence
    if "evidence" in given and not directory.is_dir():
        raise SpecError(
            [BadValue("EVIDENCE", question.evidence, "is not a directory; allowed: one with runs or tables")]
        )
    try:
        _answer(question, directory, as_json, form == "full", check, measure)
    except SystemExit:  # raised by rich if the reader of stdout has ended
        raise BrokenPipeError from None
    return 0


def _more_errors(given: dict[str, object]) -> list[BadValue]:
    try:
        parameters.read(given)
    except SpecError as error:
        return error.errors
    return []


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
