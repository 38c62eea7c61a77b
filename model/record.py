# SPDX-License-Identifier: MIT
"""Records are typed and frozen, and are checked when they are made. Defaults are not written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from lib.terminal import one_line

T = TypeVar("T")
MOST = 1 << 60
Positive = Annotated[int, Field(gt=0, lt=MOST)]
NotNegative = Annotated[int, Field(ge=0, lt=MOST)]
Several = Annotated[tuple[T, ...], Field(strict=False)]  # a list in a file


def one_of(*allowed: str) -> AfterValidator:
    return checked(lambda value: value in allowed, " or ".join(allowed))


def checked(is_allowed: Callable[[Any], bool], allowed: str) -> AfterValidator:
    """A check of a field; `allowed` describes the allowed values."""

    def check(value: Any) -> Any:
        if not is_allowed(value):
            raise ValueError(f"must be {allowed}")
        return value

    return AfterValidator(check)


class Record(BaseModel):
    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", allow_inf_nan=False, validate_by_name=True, serialize_by_alias=True
    )

    def dump(self) -> dict[str, Any]:
        """All values but defaults, in the types of JSON and YAML."""
        return self.model_dump(mode="json", exclude_defaults=True)


def problems(error: ValidationError) -> str:
    """What is wrong, and what is allowed, in one line: "rate_bps must be greater than 0, is -1"."""
    return "; ".join(_problem(each) for each in error.errors() if each["type"] != "default_factory_not_called")


def _problem(error: Any) -> str:
    where, value = ".".join(map(str, error["loc"])), one_line(repr(error["input"]))
    if error["type"] == "missing":
        return f"{where} is missing"
    if error["type"] == "extra_forbidden":
        return f"{where} is not known to this version"
    if error["type"] == "value_error":
        problem = str(error["ctx"]["error"])
    else:
        problem = error["msg"].replace("Input should be", "must be")
    return f"{where} {problem}, is {value}" if where else problem
