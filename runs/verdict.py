# SPDX-License-Identifier: MIT
"""summary.json: whether a repetition is valid, and why not. One rule defines a usable summary, so that figures can be
drawn from every run that a sweep counts as done.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from lib import regular
from lib.terminal import complain, one_line
from model.experiment import Experiment
from model.record import problems
from runs import record
from runs.names import JOB_NAME, SUMMARY, SWEEP_RUNS


class Area(StrEnum):
    """The subject of a reason why a run is not valid: the word before the colon. Programs search for these subjects."""

    LEDGER = "ledger"
    FIDELITY = "fidelity"
    DELAY = "delay"

    def is_in(self, reasons: str) -> bool:
        """Whether the reasons of a row of the run table include one of this area."""
        return f"{self}: " in reasons


class Summary(BaseModel):
    """The values that every reader of a summary needs."""

    reasons: list[Any] | None = None
    utilization: dict[str, Any]
    spec: Experiment


class Misplaced(record.Damaged):
    """The directory of a sweep's job holds the run of another job."""


def read(repetition: Path) -> dict[str, Any]:
    """The summary: `check` accepts it, and it is of this job. Raises ValueError with the problem, OSError."""
    try:
        summary = json.loads(regular.read_text(repetition / SUMMARY))
    except RecursionError:
        raise ValueError("is nested too deep") from None
    if damage := record.damage(repetition, derived=[SUMMARY]):
        raise record.Damaged(str(damage[0]))
    job, name = repetition.parent, check(summary).name or ""
    if job.parent.name == SWEEP_RUNS and JOB_NAME.fullmatch(name) and name != job.name:
        raise Misplaced(
            f"is the run of job {name[:100]!a}, not of {job.name}; move it to its own directory, or remove it"
        )
    return dict(summary)


def check(summary: object) -> Experiment:
    """The experiment of a summary. Raises ValueError if the summary cannot be used."""
    try:
        return Summary.model_validate(summary).spec
    except ValidationError as error:
        raise ValueError(f"is not a summary of this version: {problems(error)}") from None


def experiment(summary: Mapping[str, Any]) -> Experiment:
    """The experiment of a summary that `check` accepts."""
    return Experiment.model_validate(summary["spec"])


def reasons(summary: dict[str, Any]) -> list[str]:
    """Why a run is not valid; empty if it is."""
    if summary.get("valid") is True:
        return []
    return [str(reason) for reason in summary.get("reasons") or ["its summary gives no reason"]]


def unread(error: OSError | ValueError) -> str:
    """The reason of a run whose summary cannot be read."""
    if isinstance(error, record.Damaged):
        return str(error)
    return f"{SUMMARY} cannot be read: {one_line(error)}; make replay writes it anew from raw files"


def doubt(repetition: Path) -> str | None:
    """A warning if a run is not known to be valid, for results that are derived from it."""
    try:
        why_not = reasons(read(repetition))
    except FileNotFoundError:
        return f"{repetition}: is not analysed, so its validity is unknown"
    except (OSError, ValueError) as error:
        return f"{repetition}: {unread(error)}"
    more = f" (and {len(why_not) - 1} more)" if len(why_not) > 1 else ""
    return f"{repetition}: NOT VALID: {why_not[0]}{more}" if why_not else None


def say_doubts(repetition: Path) -> None:
    """Prints the warning of `doubt` on stderr, and a note if the run has no digests to exclude damage."""
    if said := doubt(repetition):
        complain(said)
    if unknown := record.unrecorded(repetition):
        complain(f"note: {unknown}")
