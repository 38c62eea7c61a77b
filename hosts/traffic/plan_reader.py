# SPDX-License-Identifier: MIT
"""Reads the values of a plan, and collects all errors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

AnyPlan = TypeVar("AnyPlan")

MOST_NS = 10**15  # upper bound of each duration: 11.6 days
SERVER = re.compile(r"[0-9A-Za-z:][0-9A-Za-z.:%_-]{0,254}")
CC_NAME = re.compile(r"[a-z0-9_]{1,15}")  # TCP_CA_NAME_MAX is 16, with the final NUL


class PlanError(ValueError):
    """All errors of a plan, one line each."""

    def __init__(self, errors: list[str]):
        super().__init__("\n".join(errors))
        self.errors = errors


class Reader:
    """Reads values of an object and collects their errors."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def refused(self, path: str) -> bool:
        """Whether an error about the value at `path` was recorded."""
        return any(error.startswith(f"{path}: ") for error in self.errors)

    def number(self, values: dict[str, Any], key: str, low: int, high: int, path: str = "", default: Any = None) -> int:
        value = values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self.errors.append(f"{path}{key}: {value!r} is not a whole number from {low} to {high}")
            return low
        return value

    def text(self, values: dict[str, Any], key: str, pattern: re.Pattern[str], what: str, path: str = "") -> str:
        value = values.get(key)
        if not isinstance(value, str) or not pattern.fullmatch(value):
            self.errors.append(f"{path}{key}: {value!r} is not {what}")
            return ""
        return value

    def flag(self, values: dict[str, Any], key: str, path: str = "", default: bool = False) -> bool:
        value = values.get(key, default)
        if not isinstance(value, bool):
            self.errors.append(f"{path}{key}: {value!r} is not true or false")
            return default
        return value

    def choice(self, values: dict[str, Any], key: str, choices: tuple[str, ...], path: str = "") -> str:
        """One of `choices`; the first if the key is missing."""
        value = values.get(key, choices[0])
        if value not in choices:
            self.errors.append(f"{path}{key}: {value!r} is not one of {', '.join(choices)}")
            return choices[0]
        return str(value)

    def unknown(self, values: dict[str, Any], known: set[str], path: str = "") -> None:
        for key in sorted(values.keys() - known):
            self.errors.append(f"{path}{key}: no such key; known are {', '.join(sorted(known))}")


def read_json(path: Path, parse: Callable[[Any], AnyPlan]) -> AnyPlan:
    """Reads a plan from a JSON file with `parse`. Raises PlanError with the file's name in each line."""
    try:
        return parse(json.loads(path.read_text()))
    except OSError as error:
        raise PlanError([f"reading {path}: {error.strerror}"]) from error
    except ValueError as error:
        if isinstance(error, PlanError):
            raise PlanError([f"{path}: {line}" for line in error.errors]) from error
        raise PlanError([f"{path}: this is not JSON: {error}"]) from error
