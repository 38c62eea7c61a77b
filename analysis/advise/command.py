# SPDX-License-Identifier: MIT
"""`python -m analysis advise KEY=VALUE...`: the command line behind `make advise`.

Exit status: 0 advised; 1 not, and why is on stderr, one line a mistake.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lib.errors import BadValue, SpecError, fail
from lib.words import made, read_words

if TYPE_CHECKING:
    from analysis.advise.parameters import Question

USAGE = """\
usage: python -m analysis advise [KEY=VALUE]... [--key VALUE]... [--json]
       python -m analysis advise --make          take KEY=VALUE from the command line of the make that calls
       python -m analysis advise parameters      explain every KEY, with its default"""
CHECKOUT = Path(__file__).resolve().parents[2]


def main(words: list[str]) -> int:
    """Prints what each rule asks for; returns the exit status."""
    from analysis.advise import parameters

    if {"-h", "--help", "help"} & set(words):
        print(USAGE)
        return 0
    if words == ["parameters"]:
        print(parameters.explain())
        return 0
    as_json = "--json" in words
    words = [word for word in words if word != "--json"]
    try:
        given, options, errors = read_words(made() if words == ["--make"] else words)
        given |= options
        as_json = _switch(given, errors) or as_json
        if errors:
            raise SpecError([*errors, *_more_errors(given)])
        question = parameters.read(given)
        directory = Path(question.evidence) if "evidence" in given else CHECKOUT / question.evidence
        if "evidence" in given and not directory.is_dir():
            raise SpecError(
                [BadValue("EVIDENCE", question.evidence, "is no directory; allowed: one with runs or tables")]
            )
    except SpecError as error:
        return fail(error.lines())
    try:
        _answer(question, directory, as_json)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # the latter is rich's; whoever reads may stop (`| head`)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _switch(given: dict[str, object], errors: list[BadValue]) -> bool:
    """JSON=1 or 0, taken out of `given`."""
    value = str(given.pop("json", "0")).strip()
    if value not in ("0", "1"):
        errors.append(BadValue("JSON", value, "is not known; allowed: 0, 1"))
    return value == "1"


def _more_errors(given: dict[str, object]) -> list[BadValue]:
    from analysis.advise import parameters

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
