# SPDX-License-Identifier: MIT
"""Measures: values that a paper's figures take from the tables of a run. They are stored beside the run, because a
published run has no tables.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from lib import files, regular
from lib.errors import InputError
from runs import lock, record
from runs.names import MEASURES
from runs.thinned import SUMMARY, kept


def measure(directory: Path, name: str, kind: Any, compute: Callable[[], Any]) -> Any:
    """The value of `compute()`, which reads tables of the repetition; without the tables, the stored value. `kind` is
    the value's type, one that JSON can express. If `compute` gets another definition, it needs another `name`, because
    published runs keep their stored values. Raises InputError.
    """
    if kept(directory) != SUMMARY:
        value = json.loads(json.dumps(compute()))  # the same types as from the file
        _store(directory, name, value)
    else:
        value = _stored(directory, name)
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        what = error.errors()[0]["msg"]
        raise InputError(f"{directory / MEASURES}: {name}: {what}; {_remedy(directory)}") from None


def _remedy(directory: Path) -> str:
    return f"remove {directory.parent}, and run the sweep again"


def _stored(directory: Path, name: str) -> Any:
    if damage := record.derived_damage(directory, MEASURES):
        raise InputError(f"{directory / MEASURES}: {damage[0].what}; {_remedy(directory)}")
    known = _read(directory)
    if name not in known:
        raise InputError(f"{directory / MEASURES}: has no value of {name}; {_remedy(directory)}")
    return known[name]


def _store(directory: Path, name: str, value: Any) -> None:
    """Stores nothing if the results directory cannot be written; PUBLISH=1 then counts its runs as not published."""
    with contextlib.suppress(OSError), lock.in_turn(directory):
        is_sound = (directory / MEASURES).exists() and not record.derived_damage(directory, MEASURES)
        known = _read(directory) if is_sound else {}
        if name not in known or known[name] != value:
            files.write_text(directory / MEASURES, json.dumps(known | {name: value}, sort_keys=True) + "\n")
            record.add_derived(directory, MEASURES)


def _read(directory: Path) -> dict[str, Any]:
    try:
        known = json.loads(regular.read_text(directory / MEASURES))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{directory / MEASURES}: {error}; {_remedy(directory)}") from None
    return known if isinstance(known, dict) else {}
