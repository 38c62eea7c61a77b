# SPDX-License-Identifier: MIT
"""The command `advise`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from analysis.advise import parameters
from analysis.advise.parameters import KEYS, Question
from lib.errors import BadValue, SpecError

__all__ = ["KEYS", "run"]
CHECKOUT = Path(__file__).resolve().parents[2]


def run(given: dict[str, Any], errors: list[BadValue]) -> int:
    """Prints what each rule asks for; returns the exit status. Raises SpecError."""
    as_json = given.pop("json", "0") == "1"
    if errors:
        raise SpecError([*errors, *_more_errors(given)])
    question = parameters.read(given)
    directory = Path(question.evidence) if "evidence" in given else CHECKOUT / question.evidence
    if "evidence" in given and not directory.is_dir():
        raise SpecError([BadValue("EVIDENCE", question.evidence, "is no directory; allowed: one with runs or tables")])
    try:
        _answer(question, directory, as_json)
    except SystemExit:  # raised by rich if the reader of stdout has ended
        raise BrokenPipeError from None
    return 0


def _more_errors(given: dict[str, object]) -> list[BadValue]:
    try:
        parameters.read(given)
    except SpecError as error:
        return error.errors
    return []


def _answer(question: Question, directory: Path, as_json: bool) -> None:
    from analysis.advise import evidence, judge, rules, show

    runs = evidence.load(directory)
    rows = [
        show.AdviceRow(advice, judge.judge(advice.rule, question.link, runs.runs))
        for advice in rules.advise(question.link)
    ]
    if as_json:
        print(show.as_json(question, rows, runs))
    else:
        show.print_table(question, rows, runs)
