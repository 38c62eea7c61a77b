# SPDX-License-Identifier: MIT
"""environment.json: the versions and times of a run that other programs than the analysis need. The analysis reads its
counters (analysis/read/documents.py).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AliasPath, BaseModel, ConfigDict, Field, ValidationError, WrapValidator
from pydantic.functional_validators import ModelWrapValidatorHandler

from lib import regular
from runs.names import ENVIRONMENT

T = TypeVar("T")


def _or_none(value: object, check: ModelWrapValidatorHandler[object]) -> object:
    try:
        return check(value)
    except ValidationError:
        return None


Known = Annotated[T | None, WrapValidator(_or_none)]


def _in(*path: str) -> Any:
    return Field(None, validation_alias=AliasPath(*path))


class RunEnvironment(BaseModel):
    """None: environment.json does not say it, or not in this type. `document` is the whole file, for pages."""

    model_config = ConfigDict(strict=True, frozen=True)

    document: dict[str, Any] = {}
    has_digests: Known[bool] = None  # the raw files' digests were written when the run was made
    commit: Known[str] = _in("git", "commit")
    has_uncommitted_changes: Known[bool] = _in("git", "dirty")
    p4_digest: Known[str] = _in("program", "digest")
    kernel_release: Known[str] = _in("kernel", "release")
    virtual_machine: Known[dict[str, Any]] = None
    kernel_digest: Known[str] = _in("virtual_machine", "kernel", "binary_digest")  # of the virtual-time kernel
    phases_s: Known[dict[str, float]] = None

    @property
    def wall_s(self) -> float | None:
        """Wall time of the repetition without its analysis; virtual time does not count."""
        wall_times = [value for name, value in (self.phases_s or {}).items() if not name.startswith("virtual_")]
        return round(sum(wall_times), 3) if wall_times else None


def of(document: dict[str, Any]) -> RunEnvironment:
    return RunEnvironment.model_validate({**document, "document": document})


def read(directory: Path) -> RunEnvironment:
    """Of a repetition, unchecked; knows nothing if the file cannot be read."""
    try:
        content = json.loads(regular.read_text(directory / ENVIRONMENT))
    except (OSError, ValueError, RecursionError):
        content = {}
    return of(content if isinstance(content, dict) else {})
