# SPDX-License-Identifier: MIT
"""The allowed content of a switch.yaml: single values, and settings that must or must not stand together. desired.py
checks port names and units against the switch. All scalars of the file are text. An error is one line: file, key, the
problem and, as far as they apply, value and allowed values.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from controlplane.policy import MODES
from controlplane.targets import TARGETS
from controlplane.threshold import DIMENSIONS
from lib import strict_yaml, values
from lib.terminal import printable
from lib.values import whole_number
from lib.words import unknown
from wire.wire import POSTCARD

MTU_BYTES = (64, 10_000)
MAX_SHOWN = 100  # characters of a value, in a message
WORDS = {"on": True, "yes": True, "true": True, "off": False, "no": False, "false": False}
FECS = ("none", "firecode", "reed-solomon")
NEGOTIATIONS = ("default", "on", "off")


quantity = partial(values.quantity, positive=True, exact=False)


def _one_of(allowed: Collection[str]) -> Callable[[object], str]:
    def read(value: object) -> str:
        if value not in tuple(allowed):
            raise ValueError(f"is not known; {unknown(str(value), allowed)}")
        return str(value)

    return read


def _mac(value: object) -> str:
    if not re.fullmatch(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}", str(value)):
        raise ValueError("is not a MAC address; allowed: six bytes as in 02:bf:00:00:00:01")
    return str(value).lower()


def _ipv4(value: object) -> str:
    try:
        return str(ipaddress.IPv4Address(str(value)))
    except ValueError:
        raise ValueError("is not an IPv4 address; allowed: as in 10.78.0.2") from None


def _once(value: object) -> object:
    """Refuses a mapping with the same MAC address in upper and in lower case."""
    if isinstance(value, dict):
        spelled = [str(mac).lower() for mac in value]
        if twice := sorted({mac for mac in spelled if spelled.count(mac) > 1}):
            raise ValueError(f"has {twice[0]} twice, in two spellings")
    return value


def _switch(value: object) -> bool:
    if str(value).lower() not in WORDS:
        raise ValueError("is neither on nor off")
    return WORDS[str(value).lower()]


def _switch_id(value: object) -> int | None:
    if str(value).lower() == "off":
        return None
    try:
        return whole_number(0, 2**16 - 1)(value)
    except ValueError:
        raise ValueError("is neither a switch id from 0 to 65535 nor off") from None


Read = BeforeValidator
Rate = Annotated[Any, Read(quantity("rate"))]
Mac = Annotated[str, Read(_mac)]
Depth = Annotated[Any, Read(quantity(*DIMENSIONS))]


class SpecFileError(Exception):
    """The file cannot be applied. `lines`: one line per error."""

    def __init__(self, *lines: str) -> None:
        self.lines = [printable(line) for line in lines]
        super().__init__("; ".join(self.lines))


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class PolicySpec(_Strict):
    """`hard_limit` belongs to ecn; `mark` lets egress-threshold mark ECN-capable packets instead of dropping them."""

    mode: Annotated[str, Read(_one_of(MODES))]
    threshold: Depth = None
    hard_limit: Depth = None
    mark: Annotated[bool, Read(_switch)] = False

    @model_validator(mode="after")
    def _fits_its_mode(self) -> PolicySpec:
        if (self.threshold is None) != (self.mode == "unwatched"):
            raise ValueError("needs a threshold" if self.threshold is None else "has a threshold, but is unwatched")
        if (self.hard_limit is None) != (self.mode != "ecn"):
            raise ValueError("needs a hard_limit" if self.mode == "ecn" else "has a hard_limit, which only ecn takes")
        if self.mark and self.mode != "egress-threshold":
            raise ValueError("has `mark`, which only egress-threshold takes: ecn always marks")
        return self


class PortSpec(_Strict):
    """Without `rate` and `limit` the queue keeps its settings; if only one is given, the queue has no bound of the
    other kind. Without `speed` the cable keeps its settings. Without `policy` or `postcards` these are off.
    """

    rate: Rate = None
    limit: Annotated[Any, Read(quantity("packets", "bytes", "cells"))] = None
    speed: Rate = None
    fec: Annotated[str, Read(_one_of(FECS))] | None = None
    auto_negotiation: Annotated[str, Read(_one_of(NEGOTIATIONS))] | None = None
    policy: PolicySpec | None = None
    postcards: Annotated[int | None, Read(_switch_id)] = None

    @model_validator(mode="after")
    def _cable_has_a_speed(self) -> PortSpec:
        if self.speed is None and (self.fec or self.auto_negotiation):
            raise ValueError("has fec or auto_negotiation without a speed")
        return self


class CollectorSpec(_Strict):
    port: str
    switch_mac: Mac
    collector_mac: Mac
    switch_addr: Annotated[str, Read(_ipv4)]
    collector_addr: Annotated[str, Read(_ipv4)]
    src_port: Annotated[int, Read(whole_number(1, 65535))] = POSTCARD.const["POSTCARD_UDP_PORT"]
    dst_port: Annotated[int, Read(whole_number(1, 65535))] = POSTCARD.const["POSTCARD_UDP_PORT"]


class SwitchSpec(_Strict):
    """A whole switch.yaml. `forwarding`: MAC -> port name, the whole table. If absent, the switch's table stays.

    `deflect` (tofino): one port per pipe, for the packets that the traffic manager refuses. A number that is no port
    name is a device port.
    """

    version: Literal["1"] = "1"
    target: Annotated[str, Read(_one_of(TARGETS))]
    address: Annotated[str, Field(min_length=1)]
    mtu: Annotated[int, Read(whole_number(*MTU_BYTES))] | None = None
    rtt: Annotated[Any, Read(quantity("time"))] = None
    ports: dict[str, PortSpec] = Field(default_factory=dict)
    forwarding: Annotated[dict[Mac, str] | None, Read(_once)] = None
    collector: CollectorSpec | None = None
    deflect: list[str] = Field(default_factory=list)


def load(path: Path) -> SwitchSpec:
    """Raises SpecFileError with one line per mistake. A syntax error hides all other mistakes, and a wrong value hides
    mistakes in the combination of its group's settings.
    """
    try:
        content = strict_yaml.load(path)
    except OSError as error:
        raise SpecFileError(f"{path}: cannot be read: {error.strerror}") from None
    except strict_yaml.FormError as error:
        raise SpecFileError(f"{path}: {error}") from None
    if content is None:
        raise SpecFileError(f"{path}: is not a mapping; see controlplane/switch.example.yaml")
    return validate(content, str(path))


def validate(content: Mapping[str, Any], origin: str) -> SwitchSpec:
    """Parses `content`. Each line of SpecFileError begins with `origin`."""
    try:
        return SwitchSpec.model_validate(_empty_is_nothing(content))
    except ValidationError as failure:
        raise SpecFileError(*(_line(origin, error) for error in failure.errors())) from None


def _empty_is_nothing(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """`"1":` with nothing after it is a port without settings."""
    ports = content.get("ports")
    if not isinstance(ports, dict):
        return content
    return {**content, "ports": {name: {} if port in ("", None) else port for name, port in ports.items()}}


def _line(origin: str, error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"] if part != "[key]") or "file"
    value = error["input"]
    shown = f"={_short(value)}" if isinstance(value, (str, int, float)) and str(value) not in error["loc"] else ""
    if error["type"] == "extra_forbidden":
        problem, shown = _unknown_key(error["loc"]), ""
    elif error["type"] == "missing":
        problem, shown = "is missing", ""
    elif error["type"] == "literal_error":
        problem = "is a version that this bufferscope does not read; allowed: 1"
    elif "error" in error.get("ctx", {}):
        problem = str(error["ctx"]["error"])
    elif error["type"] in ("model_type", "dict_type"):
        problem = "is not a mapping"
    elif error["type"] == "string_too_short":
        problem = "is empty"
    elif error["type"] == "list_type":
        problem = "is not a list"
    else:
        problem = "is not text"
    return f"{origin}: {where}{shown} {problem}"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}... ({len(text)} characters)"


def _unknown_key(location: tuple[Any, ...]) -> str:
    models: dict[str, type[BaseModel]] = {"policy": PolicySpec, "collector": CollectorSpec}
    within = SwitchSpec if len(location) == 1 else models.get(str(location[-2]), PortSpec)
    return f"is not known; {unknown(str(location[-1]), within.model_fields)}"
