# SPDX-License-Identifier: MIT
"""What an experiment is asked to be: one value a key, each checked by itself. Rules between keys are in resolve.py.

The same keys come from `KEY=VALUE` words (make, any case), long options (`--rtt-spread 2ms`) and YAML files.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from controlplane.policy import WATCHED_MODES
from controlplane.targets import TARGETS
from hosts.traffic.open_loop import ARRIVALS, SIZES
from lib import strict_yaml, units
from lib.errors import BadValue, SpecError

SPEC_VERSION = 1
STREAMS_PER_PROCESS = 128  # iperf3's own limit
MAX_FLOWS = 1024
TRAFFIC = ("long", "open-loop")
GENERATORS = ("iperf3", "epoll")
RUN_TARGETS = tuple(name for name in TARGETS if name != "fake")  # which forwards nothing: it is for tests


class Group(NamedTuple):
    """Flows that share a congestion control; `flows` is None where FLOWS says how many."""

    cc: str
    flows: int | None


def _quantity(*dimensions: str, low: str = "", high: str = "", why: str = "") -> Callable[[object], units.Quantity]:
    """A reader of quantities of `dimensions`; `low` and `high` bound those of the first one, `why` says why."""

    def read(value: object) -> units.Quantity:
        quantity = units.parse(value, dimensions)
        if quantity.dimension == dimensions[0]:
            too_low = low and quantity.amount < units.parse(low, dimensions).amount
            if too_low or (high and quantity.amount > units.parse(high, dimensions).amount):
                raise ValueError(f"is out of bounds; allowed: {low} to {high}{why and f' ({why})'}")
            if quantity.dimension != "bdp":
                units.whole(quantity)
        return quantity

    return read


def _positive(*dimensions: str) -> Callable[[object], units.Quantity]:
    def read(value: object) -> units.Quantity:
        quantity = units.parse(value, dimensions)
        if quantity.amount == 0:
            raise ValueError(f"is zero; allowed: more than that, in {units.allowed(dimensions)}")
        if quantity.dimension in ("bytes", "packets", "time"):
            units.whole(quantity)
        return quantity

    return read


def _whole(low: int, high: int, why: str = "") -> Callable[[object], int]:
    def read(value: object) -> int:
        text = str(value).strip()
        if isinstance(value, bool) or not re.fullmatch(r"[+-]?[0-9]{1,20}", text):
            raise ValueError(f"is not a whole number; allowed: {low} to {high}{why and f' ({why})'}")
        if not low <= int(text) <= high:
            raise ValueError(f"is out of bounds; allowed: {low} to {high}{why and f' ({why})'}")
        return int(text)

    return read


def _share(low: str, high: str) -> Callable[[object], Fraction]:
    """A reader of decimal numbers of at most six decimals, kept exact."""

    def read(value: object) -> Fraction:
        text = str(value).strip()
        if isinstance(value, bool) or not re.fullmatch(r"[+-]?[0-9]{1,9}(\.[0-9]{1,6})?", text):
            raise ValueError(f"is not a number of at most six decimals; allowed: {low} to {high}")
        if not Fraction(low) <= Fraction(text) <= Fraction(high):
            raise ValueError(f"is out of bounds; allowed: {low} to {high}")
        return Fraction(text)

    return read


def _or_none(read: Callable[[object], Any]) -> Callable[[object], Any]:
    return lambda value: value if value is None else read(value)


def _one_of(*choices: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        text = str(value).strip().lower()
        if text not in choices:
            raise ValueError(f"is not known; allowed: {', '.join(choices)}")
        return text

    return read


def _groups(value: object) -> tuple[Group, ...]:
    form = "one congestion control (cubic), or several with their flows (cubic:8,bbr:8)"
    words = [word.strip() for word in value.split(",")] if isinstance(value, str) else []
    groups = []
    for word in words:
        match = re.fullmatch(r"([a-z][a-z0-9_]{0,14})(?::([0-9]{1,9}))?", word.lower())
        if not match:
            raise ValueError(f"cannot be read at {word!r}; allowed: {form}" if word else f"is empty; allowed: {form}")
        groups.append(Group(match[1], int(match[2]) if match[2] else None))
    if not groups:
        raise ValueError(f"is not text; allowed: {form}")
    if len(groups) > 1 and any(group.flows is None for group in groups):
        raise ValueError("mixes without saying how many flows of each; allowed: cubic:8,bbr:8")
    if any(group.flows == 0 for group in groups):
        raise ValueError("has a group of zero flows; allowed: 1 or more of each, as in cubic:8,bbr:8")
    names = [group.cc for group in groups]
    if len(set(names)) < len(names):
        raise ValueError("names a congestion control twice; allowed: each once, with its flows")
    return tuple(groups)


def _name(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", value):
        raise ValueError(
            "cannot name a directory; allowed: 1 to 64 letters, digits, '.', '_' and '-', the first a letter or digit"
        )
    return value


def _version(value: object) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,9}", str(value)) or int(str(value)) < 1:
        raise ValueError(f"is not a version; allowed: 1 to {SPEC_VERSION}")
    if int(str(value)) > SPEC_VERSION:
        raise ValueError(f"is newer than this bufferscope, which reads up to {SPEC_VERSION}: update bufferscope")
    return int(str(value))


Read = BeforeValidator
_FLOWS_WHY = "so many client ports are kept for them"
_RATE_WHY = "below, a packet takes seconds; above, no time stamp of this machine means anything"
_RTT_WHY = "below, the switch's own lateness is larger"


class Spec(BaseModel):
    """The parameters as given, read but not resolved. Each default is what `make experiment` alone runs."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, arbitrary_types_allowed=True)

    spec_version: Annotated[int, Read(_version)] = SPEC_VERSION
    cc: Annotated[Any, Read(_groups)] = "cubic"
    flows: Annotated[int | None, Read(lambda v: v if v is None else _whole(1, MAX_FLOWS, _FLOWS_WHY)(v))] = None
    rate: Annotated[Any, Read(_quantity("rate", low="64kbit", high="100gbit", why=_RATE_WHY))] = "200mbit"
    rtt: Annotated[Any, Read(_quantity("time", low="100us", high="10s", why=_RTT_WHY))] = "10ms"
    rtt_spread: Annotated[Any, Read(_quantity("time", low="0ns", high="10s"))] = "0ns"
    buf: Annotated[Any, Read(_positive("bdp", "packets", "bytes", "time"))] = "1bdp"
    mtu: Annotated[int, Read(_whole(576, 9000, "bytes; below, IPv4 hosts may refuse; above, no jumbo frame"))] = 1500
    duration: Annotated[Any, Read(_positive("time", "rtt"))] = "1000rtt"
    # Long enough for slow start and its losses, and for one whole sawtooth of the slowest case that the defaults can
    # make: one Reno flow with one BDP of buffer grows by a packet an RTT from 163 to 326 packets.
    warmup: Annotated[Any, Read(_quantity("time", "rtt", low="0ns", high="3600s"))] = "200rtt"
    mode: Annotated[str, Read(_one_of(*WATCHED_MODES))] = "tail-drop"
    ecn_threshold: Annotated[
        Any, Read(lambda v: v if v is None else _positive("bdp", "packets", "bytes", "time")(v))
    ] = None
    traffic: Annotated[str, Read(_one_of(*TRAFFIC))] = "long"
    generator: Annotated[str | None, Read(_or_none(_one_of(*GENERATORS)))] = None
    start_spread: Annotated[Any, Read(_or_none(_quantity("time", "rtt", low="0ns", high="3600s")))] = None
    load: Annotated[Any, Read(_or_none(_share("0.001", "2")))] = None
    sizes: Annotated[str | None, Read(_or_none(_one_of(*SIZES)))] = None
    arrivals: Annotated[str | None, Read(_or_none(_one_of(*ARRIVALS)))] = None
    delay: Annotated[str | None, Read(_or_none(_one_of("switch", "tc")))] = None
    reps: Annotated[int, Read(_whole(1, 1000))] = 1
    seed: Annotated[int, Read(_whole(0, 2**32 - 1))] = 1
    name: Annotated[str | None, Read(lambda v: v if v is None else _name(v))] = None
    target: Annotated[str, Read(_one_of(*RUN_TARGETS))] = "soft"
    clock: Annotated[str | None, Read(lambda v: v if v is None else _one_of("real", "virtual")(v))] = None
    switch: Annotated[str | None, Read(lambda v: v if v is None else _one_of("process", "driver")(v))] = None


KEYS = tuple(Spec.model_fields)


def validate(given: Mapping[str, object]) -> tuple[Spec, dict[str, BadValue]]:
    """The spec that `given` says, and what is wrong by key. A wrong key has its default, so others can be checked."""
    try:
        return Spec.model_validate(given), {}
    except ValidationError as failure:
        errors: dict[str, BadValue] = {}
        for error in failure.errors():
            key = str(error["loc"][0])
            if error["type"] == "extra_forbidden":
                problem = unknown_key(key)
                errors[key] = BadValue(key.upper(), None, problem)
            else:
                errors[key] = BadValue(key.upper(), given.get(key), str(error["ctx"]["error"]))
        if "spec_version" in errors:  # a newer version may mean anything by the rest
            errors = {"spec_version": errors["spec_version"]}
            return Spec(), errors
        return Spec.model_validate({key: value for key, value in given.items() if key not in errors}), errors


def unknown_key(key: str) -> str:
    """What to say of a key that does not exist: the nearest that does, else all."""
    if key.lower() in ("kernel_package", "kernel_source"):
        return f"is no parameter of an experiment; choose the kernel before it: make kernel {key.upper()}=..."
    near = difflib.get_close_matches(key.lower(), KEYS, n=1)
    shown = [name.upper() for name in KEYS if name != "spec_version"]
    return "is no parameter; " + (f"did you mean {near[0].upper()}?" if near else f"allowed: {', '.join(shown)}")


def load_yaml(path: Path) -> dict[str, object]:
    """Key -> value as written in a spec file, as text; keys in lower case. Raises SpecError for what is no spec."""

    def refuse(problem: object) -> SpecError:
        return SpecError([BadValue("spec file", None, str(problem), str(path))])

    try:
        content = strict_yaml.load(path, str.lower)
    except OSError as error:
        raise refuse(f"cannot be read: {error.strerror}; give the path of a file in experiments/specs/") from None
    except strict_yaml.FormError as error:
        raise refuse(error) from None
    if content is None:
        raise refuse("is not a mapping of parameters; allowed: lines such as `rtt: 10ms`")
    return content
