# SPDX-License-Identifier: MIT
"""Keys of commands and specs. A command's keys are the fields of a model; a field has the key's type, meaning, allowed
values and scope. `read` makes the model of words and reports all errors at once; help, completion and docs/keys.md list
the same fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from lib.errors import BadValue, SpecError
from lib.values import choice
from lib.words import PATHS, SWITCH, unknown

# Scopes of an experiment's key: the whole run; each group of `groups`; each group, with the run's value as the groups'
# default; a sweep, which derives the values of its runs.
RUN, GROUP, BOTH, SWEEP = "run", "group", "both", "sweep"
Wrong = Callable[[str, str], None]  # called with a key and its problem, which continues KEY=VALUE


@dataclass(frozen=True)
class Key:
    """The metadata of a field. `read` makes the field's value of a user's value and raises ValueError with the problem;
    without `read` the field's type does. `default` is as a user would write it. Completion offers `values`; without
    `read` no other word is allowed. `kinds`: the kinds of traffic that have the key; (): all.
    """

    meaning: str
    read: Callable[[Any], Any] | None = None
    default: str = ""
    values: tuple[str, ...] = ()
    scope: str = RUN
    kinds: tuple[str, ...] = ()

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        types = _types(source)
        read = self.read or _reader(types[0], self.values)
        is_optional = NoneType in types
        return core_schema.no_info_plain_validator_function(
            lambda value: None if value is None and is_optional else read(value)
        )


def field(
    meaning: str, read: Callable[[Any], Any] | None = None, default: str | None = "", *, values: tuple[str, ...] = (),
    scope: str = RUN, kinds: tuple[str, ...] = (),
) -> Any:  # fmt: skip
    """A field with the metadata of a Key. `default` is read like a user's value; "" means None, and None that the key
    is required.
    """
    info: FieldInfo = Field(... if default is None else default or None, validate_default=True)
    info.metadata.append(Key(meaning, read, default or "", values, scope, kinds))
    return info


def flag(meaning: str, default: str = "0") -> Any:
    """The field of a key with the values 0 and 1."""
    return field(meaning, default=default, values=SWITCH)


class Keys(BaseModel):
    """The base of all models of keys. A field whose name is a word of Python ends with an underscore: `from_`."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=lambda name: name.rstrip("_"))

    def check(self, wrong: Wrong) -> None:
        """Calls `wrong` for each key whose value is not possible beside the others."""

    @classmethod
    def unknown_key(cls, key: str) -> str:
        """The problem of a key that does not exist."""
        return f"is not a parameter; {unknown(key.upper(), map(str.upper, table(cls)))}"


class NoKeys(Keys):
    """A command without keys."""


Model = TypeVar("Model", bound=Keys)
FOREIGN = flag("1: replace results in a directory of another user, too (lib/files.py)")


def table(model: type[BaseModel]) -> dict[str, Key]:
    """Key -> metadata, in the order of the fields. PATHS are the values of a path."""
    rows = {}
    for name, info in model.model_fields.items():
        (row,) = (each for each in info.metadata if isinstance(each, Key))
        is_path = Path in _types(info.annotation)
        rows[info.alias or name] = replace(row, values=PATHS) if is_path and not row.values else row
    return rows


def parse(model: type[Model], given: Mapping[str, Any]) -> tuple[Model | None, dict[str, BadValue]]:
    """The model, and the errors by key. A wrong key gets its default, so that the other keys can be checked; the model
    is None if a key without a default is wrong or missing.
    """
    errors: dict[str, BadValue] = {}
    try:
        return model.model_validate(given), errors
    except ValidationError as failure:
        for error in failure.errors(include_url=False):
            key = str(error["loc"][0])
            if error["type"] == "extra_forbidden":
                errors[key] = BadValue(key.upper(), None, model.unknown_key(key))
            elif error["type"] == "missing":
                errors[key] = BadValue(key.upper(), None, f"is missing; give {table(model)[key].meaning}")
            else:
                errors[key] = BadValue(key.upper(), given[key], str(error["ctx"]["error"]))
    required = {info.alias or name for name, info in model.model_fields.items() if info.is_required()}
    if required & errors.keys():
        return None, errors
    return parse(model, {key: value for key, value in given.items() if key not in errors})[0], errors


def read(model: type[Model], given: Mapping[str, Any], errors: list[BadValue]) -> Model:
    """The model of `given`. Raises SpecError with `errors`, which the words have, and all errors of the keys."""
    asked, found = parse(model, given)
    if asked is not None:
        asked.check(lambda key, problem: found.setdefault(key, BadValue(key.upper(), given.get(key), problem)) and None)
    named = {error.key.lower() for error in errors}
    if (all_errors := [*errors, *(error for key, error in found.items() if key not in named)]) or asked is None:
        raise SpecError(all_errors)
    return asked


def take(model: type[Model], words: MutableMapping[str, Any], errors: list[BadValue]) -> Model:
    """Like `read`, for a command that also has keys of an experiment: takes the model's keys out of `words`. Adds their
    errors to `errors`, and raises SpecError only if a key without a default is wrong.
    """
    given = {key: words.pop(key) for key in table(model) if key in words}
    asked, found = parse(model, given)
    errors += found.values()
    if asked is None:
        raise SpecError(errors)
    return asked


def _types(source: Any) -> tuple[Any, ...]:
    return get_args(source) if get_origin(source) in (Union, UnionType) else (source,)


def _reader(kind: Any, values: tuple[str, ...]) -> Callable[[Any], Any]:
    """The reader of a type, or of words."""
    if kind is bool:
        return lambda value: choice(*SWITCH)(value) == "1"
    reader: Callable[[Any], Any] = kind if values in ((), PATHS) else choice(*values)
    return reader
