# SPDX-License-Identifier: MIT
"""plan.json of a sweep: its spec and its jobs (experiments/sweep/plan.py). The file has a digest of itself.

Users' own files (fields of a model.experiment.Source), which many jobs share, stand once in the file: `texts` has each
by its SHA-256.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from lib import files, regular
from model.experiment import Experiment
from model.record import Record, problems
from runs import record
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
    texts: dict[str, str] = Field(default_factory=dict)  # only in the file


def write(directory: Path, plan: Plan) -> None:
    """Replaces the plan. Raises OSError."""
    texts: dict[str, str] = {}
    content = {"format_version": plan.format_version, **_without_texts(plan.dump(), texts)}
    files.write_json(directory / PLAN, record.signed(content | ({"texts": texts} if texts else {})))


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
    jobs = {name: job.model_copy(update={"spec": _with_texts(job.spec, plan.texts)}) for name, job in plan.jobs.items()}
    return plan.model_copy(update={"jobs": jobs, "texts": {}})


def _without_texts(part: Any, texts: dict[str, str]) -> Any:
    """`part` with the texts of its sources moved into `texts`."""
    if isinstance(part, list):
        return [_without_texts(each, texts) for each in part]
    if not isinstance(part, dict):
        return part
    if isinstance(part.get("text"), str) and "sha256" in part:
        texts[part["sha256"]] = part["text"]
        return {key: value for key, value in part.items() if key != "text"}
    return {key: _without_texts(value, texts) for key, value in part.items()}


def _with_texts(part: Any, texts: Mapping[str, str]) -> Any:
    if isinstance(part, list):
        return [_with_texts(each, texts) for each in part]
    if not isinstance(part, dict):
        return part
    whole = {key: _with_texts(value, texts) for key, value in part.items()}
    text = texts.get(str(part.get("sha256")))
    return whole if text is None else whole | {"text": text}


def misplaced(directory: Path, plan: Plan) -> str | None:
    """One line if the plan is of a sweep with another name than the directory's."""
    name = plan.sweep.name
    if name is None or name in (directory.absolute().name, directory.resolve().name):
        return None
    return f"is the plan of sweep {name[:100]!a}, not of {directory.absolute().name}"
