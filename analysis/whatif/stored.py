# SPDX-License-Identifier: MIT
"""The what-ifs stored beside a repetition, and its report, which lists them. A new what-if replaces the report; a
replay writes the same report.
"""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import jinja2

from analysis.read.documents import Environment
from analysis.report.run_report import pictures, render
from lib import regular
from lib.errors import InputError
from runs import note, record, verdict
from runs.names import PAGE, RECORD, SUMMARY
from runs.quantities import BY_NAME, WHATIF, at, is_number

NAME = re.compile(r"whatif-([0-9]{1,9})")


def what_ifs(repetition: Path) -> list[dict[str, Any]]:
    """The summaries of the what-ifs by number, each with its directory's `name`. A summary that is unreadable, or lacks
    a value that the report shows, is left out. Raises InputError for a what-if of another run, for one without a record
    if the run has one, and for a summary that differs from its recorded digest.
    """
    numbered = [(int(match[1]), path) for path in repetition.glob("whatif-*") if (match := NAME.fullmatch(path.name))]
    result = []
    for _, path in sorted(numbered):
        if problem := record.what_if_damage(repetition, path):
            raise InputError(f"{path}: {problem}; remove this what-if, and ask for it again")
        try:
            summary = json.loads(regular.read_text(path / SUMMARY))
        except (OSError, ValueError, RecursionError):
            continue
        if _is_shown(summary):
            result.append(summary | {"name": path.name})
    return result


def _is_shown(summary: Any) -> bool:
    """Whether a summary has the values that the page shows (run_report.html.j2)."""
    measured = [at(summary, name) for name in ("run_measures", "whatif_measures")]
    values = [BY_NAME[name].of(measures) for measures in measured if measures for name in WHATIF.values()]
    return (
        all(isinstance(measures, dict) for measures in measured)
        and isinstance(at(summary, "asked"), dict)
        and isinstance(at(summary, "caveat"), str)
        and all(isinstance(at(summary, f"setting.{name}"), str) for name in ("run", "whatif"))
        and all(value is None or is_number(value) for value in values)
    )


def sources_of_page(repetition: Path) -> list[str]:
    """The derived files that `page` reads; empty if the repetition has no page. Raises InputError if the page
    cannot be written, and as `what_ifs` does.
    """
    if (repetition / PAGE).is_dir():
        raise InputError(f"{repetition / PAGE}: is in the way of the report; remove it")
    if not _has_page(repetition):
        return []
    what_ifs(repetition)
    with contextlib.suppress(OSError, ValueError):
        return [SUMMARY, *pictures(verdict.experiment(verdict.read(repetition)), repetition)]
    return [SUMMARY]


def _has_page(repetition: Path) -> bool:
    """Whether the repetition has a report, or its record names one."""
    with contextlib.suppress(ValueError):
        known = record.read(repetition)
        return (repetition / PAGE).exists() or bool(known and PAGE in (known.derived or ()))
    return True


def page(repetition: Path, environment: Environment, new: dict[str, Any]) -> dict[str, str]:
    """The report of an analysed repetition, made from its derived files and the what-if `new`, and the record with the
    report's digest: the texts by file name; none without a report. Raises OSError, ValueError if a derived file is
    unusable, and InputError as `what_ifs` does.
    """
    if not _has_page(repetition):
        return {}
    summary = verdict.read(repetition)
    try:
        shown = sorted([*what_ifs(repetition), new], key=lambda each: int(each["name"].removeprefix("whatif-")))
        text = render(summary, environment, repetition / "figures", shown, note.read(repetition.parent))
    except (jinja2.TemplateError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"is of another version, or damaged: {type(error).__name__}: {error}") from None
    with_page = record.with_file(repetition, PAGE, text.encode())
    return {PAGE: text} | ({RECORD: with_page} if with_page else {})
