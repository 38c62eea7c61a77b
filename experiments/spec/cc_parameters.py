# SPDX-License-Identifier: MIT
"""CC_PARAMETERS=cubic.beta=800,dctcp.dctcp_shift_g=5: parameters of congestion controls, named as in their modules.

The virtual-time kernel gets the parameters at boot, because most modules compute constants from them when they start.
In real time a parameter would apply to the whole machine and change other connections, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from virtual.kernel import config

WORD = re.compile(r"([a-z][a-z0-9_]{0,14})\.([a-z][a-z0-9_]{0,39})=([0-9A-Za-z_-]{1,20})")
FORM = "ALGORITHM.PARAMETER=VALUE, several with commas: cubic.beta=800,dctcp.dctcp_shift_g=5"
NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,9})")
MIN_INT, MAX_INT = -(1 << 31), (1 << 31) - 1
BOOLEANS = {"y": "1", "n": "0", "true": "1", "false": "0"}
Parameters = Mapping[str, Mapping[str, str]]  # algorithm -> parameter -> value


def read_parameters(value: object) -> dict[str, str]:
    """Returns {algorithm.parameter: value}. Raises ValueError; its message has no subject, because BadValue prints
    KEY=value before it.
    """
    if isinstance(value, Mapping):  # from a resolved experiment
        return {str(name): str(given) for name, given in value.items()}
    result: dict[str, str] = {}
    for word in str(value).split(","):
        match = WORD.fullmatch(word.strip())
        if not match:
            raise ValueError(f"cannot be read at {word.strip()!r}; allowed: {FORM}")
        name = f"{match[1]}.{match[2]}"
        if name in result:
            raise ValueError(f"sets {name} twice; allowed: once")
        result[name] = match[3]
    return result


def module(algorithm: str) -> str:
    """The name of an algorithm's module, which the kernel has built in."""
    return f"tcp_{algorithm}" if algorithm in config.OF_LINUX else algorithm


def boot_parameters(given: Mapping[str, str] | None) -> dict[str, str]:
    """The parameters in the form of the kernel's command line."""
    words = [(*name.split("."), value) for name, value in (given or {}).items()]
    return {f"{module(algorithm)}.{parameter}": value for algorithm, parameter, value in words}


def malformed(given: Mapping[str, str], before_boot: Parameters) -> str | None:
    """The problem of the first value that is not of its parameter's type. The types follow from the default values.

    A kernel that cannot read a parameter drops the rest of its command line, including the program to start. So the
    values are checked before boot.
    """
    for name, value in given.items():
        algorithm, parameter = name.split(".")
        has = before_boot.get(algorithm, {}).get(parameter, "")
        if has in ("Y", "N"):
            if value.lower() not in (*BOOLEANS, "1", "0"):
                return f"CC_PARAMETERS={name}={value} is not a boolean; allowed: Y or N"
        elif NUMBER.fullmatch(has) and not (NUMBER.fullmatch(value) and MIN_INT <= int(value) <= MAX_INT):
            return f"CC_PARAMETERS={name}={value} is not a whole number of 32 bits; allowed: as {has}, its default"
        elif NUMBER.fullmatch(has) and value.startswith("-") and not has.startswith("-"):
            return f"CC_PARAMETERS={name}={value} is negative; allowed: 0 and more (default {has})"
    return None


def refused(given: Mapping[str, str], after_boot: Parameters) -> str | None:
    """The problem of the first parameter that the kernel lacks, or that differs from the given value after boot."""
    for name, value in given.items():
        algorithm, parameter = name.split(".")
        kept = after_boot.get(algorithm, {})
        if parameter not in kept:
            allowed = f"allowed: {', '.join(sorted(kept))}" if kept else "that algorithm has none"
            return f"CC_PARAMETERS={name}={value} sets no parameter of {algorithm}; {allowed} (make cc)"
        if not _same(value, kept[parameter]):
            return f"CC_PARAMETERS={name}={value} is refused by the kernel; it keeps {kept[parameter]}"
    return None


def _same(given: str, has: str) -> bool:
    """The kernel prints numbers in decimal and booleans as Y and N."""
    numbers = []
    for text in (given.lower(), has.lower()):
        try:
            numbers.append(int(BOOLEANS.get(text, text), 0))
        except ValueError:
            return given == has
    return numbers[0] == numbers[1]
