# SPDX-License-Identifier: MIT
"""plan.json of a sweep: its spec and its jobs (experiments/sweep/plan.py). The file has a digest of itself."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from lib import regular
from model.experiment import Experiment
from model.record import Record, problems
from runs import record, results
from runs.names import PLAN

REMEDY = "run the sweep again to write it anew"
VERSION = 1


class PlannedJob(Record):
    """`point` has the parameters in the spec's words, `spec` the experiment as in spec.yaml."""

    point: dict[str, Any] = Field(default_factory=dict)
    repetition: int = 1
    spec: dict[str, Any] = Field(default_factory=dict)

    @cached_property
    def experiment(self) -> Experiment:
        """Raises ValueError."""
        return Experiment.model_validate(self.spec)

    @property
    def words(self) -> dict[str, str]:
        return {key.lower(): str(value) for key, value in self.point.items()}


class PlannedSweep(Record):
    name: str | None = None
    about: str | None = None
    keep: str | None = None
    reps: int | None = None
    seed: int | None = None
    base: dict[str, Any] = Field(default_factory=dict)
    points: list[dict[str, Any]] = Field(default_factory=list)
    search: dict[str, Any] | None = None
    file: str | None = None


class Plan(Record):
    format_version: int = VERSION
    sweep: PlannedSweep = PlannedSweep()
    jobs: dict[str, PlannedJob] = Field(default_factory=dict)


def write(directory: Path, plan: Plan) -> None:
    """Replaces the plan. Raises OSError."""
    results.write_json(directory / PLAN, record.signed({"format_version": plan.format_version, **plan.dump()}))


def read(directory: Path) -> Plan:
    """Raises ValueError if the file is damaged or of another version, OSError."""
    try:
        content = json.loads(regular.read_text(directory / PLAN))
    except RecursionError:
        raise ValueError("is nested too deep") from None
    record.check_signed(content)
    try:
        plan = Plan.model_validate({key: value for key, value in content.items() if key != "digest"})
    except ValidationError as error:
        raise ValueError(f"is not a plan of a sweep: {problems(error)}") from None
    if plan.format_version != VERSION:
        raise ValueError(f"has version {plan.format_version}, this program reads {VERSION}")
    return plan


def misplaced(directory: Path, plan: Plan) -> str | None:
    """One line if the plan is of a sweep with another name than the directory's."""
    name = plan.sweep.name
    if name is None or name in (directory.absolute().name, directory.resolve().name):
        return None
    return f"is the plan of sweep {name[:100]!a}, not of {directory.absolute().name}"
