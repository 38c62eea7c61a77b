# SPDX-License-Identifier: MIT
"""Makes the records of a plan from JSON.

A plan is a part of an experiment that the runner's model has checked, so programs do not check it again. They refuse
what is no such plan, such as a file of another version: a missing or unknown key, a value of another type.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

AnyPlan = TypeVar("AnyPlan")
# Python 3.9 cannot evaluate `int | None`, so a field's type is compared as the word that it is.
_PLAIN = {
    "int": (int,), "float": (int, float), "bool": (bool,), "str": (str,), "Path": (str,), "dict[str, str]": (dict,)
}  # fmt: skip


class PlanError(ValueError):
    """Something that is no plan, in one line."""


def an_object(values: Any, where: str = "the plan") -> dict[str, Any]:
    """A copy of an object. Raises PlanError."""
    if not isinstance(values, dict):
        raise PlanError(f"{where} is not an object")
    return dict(values)


def a_list(value: Any, where: str) -> list[Any]:
    """A list; null is an empty one. Raises PlanError."""
    if not isinstance(value, (list, type(None))):
        raise PlanError(f"{where} is not a list")
    return value or []


def record(kind: type[AnyPlan], values: Any, where: str = "the plan", **parts: Any) -> AnyPlan:
    """The dataclass `kind` with the keys of an object as its fields. `parts` are its fields that are records
    themselves. Numbers are not negative. Raises PlanError.
    """
    given, known = an_object(values, where), {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    for name, field in known.items():
        if field.default is field.default_factory and name not in {**given, **parts}:  # both are MISSING
            raise PlanError(f"{where}: {name} is missing")
    for name in given.keys() - known.keys():
        raise PlanError(f"{where}: {name} is not known to this version")
    plain = {name: _plain(given[name], str(known[name].type), f"{where}: {name}") for name in given.keys() - parts}
    return kind(**plain, **parts)


def _plain(value: Any, kind: str, where: str) -> Any:
    if kind.startswith("tuple[") and isinstance(value, list):
        return tuple(_plain(each, kind[len("tuple[") : -len(", ...]")], where) for each in value)
    if type(value) not in _PLAIN.get(kind, ()) or (isinstance(value, int) and value < 0):
        raise PlanError(f"{where}: {value!r} is not of type {kind}")
    if isinstance(value, dict):
        return {key: _plain(each, "str", f"{where}.{key}") for key, each in value.items()}
    return Path(value) if kind == "Path" else value


def read_json(path: Path, parse: Callable[[Any], AnyPlan]) -> AnyPlan:
    """Reads a plan from a JSON file with `parse`. Raises PlanError with the file's name."""
    try:
        values = json.loads(path.read_text())
    except OSError as error:
        raise PlanError(f"reading {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise PlanError(f"{path}: this is not JSON: {error}") from error
    try:
        return parse(values)
    except ValueError as error:
        raise PlanError(f"{path}: {error}") from error
