# SPDX-License-Identifier: MIT
"""P4 and POLICY: a queue policy of the user's own, and its parameters. p4src/compile/policy.py compiles it.

A parameter's name says its unit: a value of target_ns may be given as target=5ms.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from lib import units
from model.experiment import Program, Source
from p4src.compile import policy
from p4src.compile.policy import P4Program, Parameter
from p4src.compile.sources import CannotCompile

# The end of a parameter's name -> its dimension, and base units in one of its units.
UNITS = {"_ns": ("time", 1), "_us": ("time", 1000), "_bytes": ("bytes", 1), "_packets": ("packets", 1),
         "_bps": ("rate", 1)}  # fmt: skip
FORM = "NAME=VALUE, several with spaces: target=5ms interval=100ms"
DIRECTORY = "p4"  # of the program, in the directory of a repetition


class OwnP4(P4Program):
    """`parameters` is None for a whole program."""

    parameters: Mapping[str, Parameter] | None

    def __str__(self) -> str:
        return self.name


def read(value: object) -> OwnP4:
    """The program that a user named. Raises ValueError; its message continues a sentence that begins with the value."""
    try:
        compiled = policy.read(str(value))
    except CannotCompile as error:
        raise ValueError(str(error)) from None
    content = compiled.json
    if not policy.is_policy(content):
        raise ValueError("is a whole program, no policy in ours; give a policy (docs/your-aqm.md)")
    if policy.outdated(content):
        raise ValueError("was composed with another version of bufferscope's P4 program; compile it again from its .p4")
    program = OwnP4(compiled.name, compiled.text)
    object.__setattr__(program, "parameters", policy.parameters(content))
    return program


def read_parameters(value: object) -> dict[str, str]:
    if isinstance(value, Mapping):
        return {str(name): str(given) for name, given in value.items()}
    result: dict[str, str] = {}
    for word in str(value).replace(",", " ").split():
        name, equals, given = word.partition("=")
        if not (re.fullmatch(r"[A-Za-z_]\w*", name) and equals and given):
            raise ValueError(f"cannot be read at {word!r}; allowed: {FORM}")
        if name in result:
            raise ValueError(f"sets {name} twice; allowed: once")
        result[name] = given
    return result


def resolve(program: OwnP4 | None, given: Mapping[str, str] | None) -> Program | None:
    """The program with all its parameters; a wrong one has its default (see `wrong`)."""
    if not program:
        return None
    source = Source(name=program.name, file=f"{program.name}.json", sha256=program.digest, text=program.text)
    if program.parameters is None:
        return Program(compiled=source)
    values = {name: known.default for name, known in program.parameters.items()}
    for name, text in (given or {}).items():
        found = _find(program.parameters, name)
        try:
            values |= {found: value(found, program.parameters[found], name, text)} if found else {}
        except ValueError:
            continue
    return Program(compiled=source, parameters=values)


def default_actions(program: Program) -> dict[tuple[str, str], dict[str, int]]:
    """(table, action) -> arguments, of the tables with a policy's parameters."""
    return policy.default_actions(json.loads(program.compiled.text or ""), program.parameters or {})


def wrong(program: OwnP4, given: Mapping[str, str]) -> Iterator[str]:
    """The problems of POLICY's words."""
    known = program.parameters or {}
    for name, text in given.items():
        found = _find(known, name)
        try:
            if found:
                value(found, known[found], name, text)
            else:
                names = f"it has {', '.join(known)}" if known else "it has none"
                yield f"sets {name}, no parameter of {program.name}; {names}"
        except ValueError as error:
            yield str(error)


def _find(known: Mapping[str, Any], name: str) -> str | None:
    return next((each for each in (name, *(name + end for end in UNITS)) if each in known), None)


def value(name: str, parameter: Parameter, given: str, text: str) -> int:
    """The value of parameter `name`, which the user calls `given`. Raises ValueError."""
    dimension, each = next((UNITS[end] for end in UNITS if name.endswith(end)), (None, 1))
    if re.fullmatch(r"[0-9]+|0x[0-9a-fA-F]+", text) and (dimension is None or given == name):
        number = int(text, 0) if not text.isdigit() else int(text)
    elif dimension is None:
        raise ValueError(f"sets {given} to {text}, which is not a whole number; allowed: 0 to {2**parameter.bits - 1}")
    else:
        try:
            number = units.nearest(units.parse(text, (dimension,)).amount / each)
        except ValueError as error:
            raise ValueError(f"sets {given} to {text}, which {error}") from None
    if not 0 <= number < 2**parameter.bits:
        raise ValueError(
            f"sets {given} to {text}, which does not fit in the {parameter.bits} bits of {name}; allowed: 0 to "
            f"{2**parameter.bits - 1}"
        )
    return number
