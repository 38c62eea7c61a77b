# SPDX-License-Identifier: MIT
"""P4 and POLICY: a queue policy of the user's own, and its parameters. p4src/compile/policy.py compiles it.

A parameter's name says its unit: a value of target_ns may be given as target=5ms.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from model.experiment import Program, Source
from p4src.compile import policy
from p4src.compile.policy import P4Program
from p4src.compile.sources import CannotCompile

FORM = "NAME=VALUE, several with spaces: target=5ms interval=100ms"
SHELF = policy.shelf()
KEPT_MODE = "tail-drop"  # of a run whose policy is in P4: BUF is the limit behind it
DIRECTORY = "p4"  # of the program, in the directory of a repetition


def read(value: object) -> P4Program:
    """The program that a user named. Raises ValueError; its message continues a sentence that begins with the value."""
    try:
        program = policy.read(str(value))
    except CannotCompile as error:
        raise ValueError(str(error)) from None
    if program.parameters is not None and policy.outdated(program.json):
        raise ValueError("was composed with another version of bufferscope's P4 program; compile it again from its .p4")
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
    if not result:
        raise ValueError(f"is empty; allowed: {FORM}")
    return result


def of_mode(spec: Any, given: Mapping[str, object]) -> Any:
    """`spec` with the AQM of the shelf that MODE names as its program; the rules refuse such a MODE beside P4."""
    if spec.mode not in SHELF:
        return spec
    return spec.model_copy(update={"mode": KEPT_MODE, "p4": spec.p4 if "p4" in given else read(spec.mode)})


def resolve(spec: Any) -> Program | None:
    """The program of the keys P4, POLICY, TABLES, ... with all its parameters; a wrong one has its default (see
    `wrong`).
    """
    program, given = spec.p4, spec.policy
    if not program:
        return None
    known = program.parameters
    if known is not None:
        return program_of(program, policy.values(known, given or {})[0])
    scheduler = None if spec.scheduler == "fifo" else spec.scheduler
    needs = {"tables": spec.tables, "ports": spec.ports, "addresses": spec.addresses, "scheduler": scheduler}
    return program_of(program).model_copy(update=needs)


def program_of(program: P4Program, parameters: dict[str, int] | None = None) -> Program:
    source = Source(name=program.name, file=f"{program.name}.json", sha256=program.digest, text=program.text)
    return Program(compiled=source, parameters=parameters)


def wrong(program: P4Program, given: Mapping[str, str]) -> list[str]:
    """The problems of POLICY's words."""
    values, problems = policy.values(program.parameters or {}, given)
    return problems or list(policy.outside(program, values))


def queue_requests(program: Program, port: int) -> list[tuple[str | int, ...]]:
    """Of the queues and the scheduler that a policy asks for at the bottleneck."""
    return policy.requests(json.loads(program.compiled.text or ""), port) if program.parameters is not None else []


def default_actions(program: Program) -> dict[tuple[str, str], dict[str, int]]:
    """(table, action) -> arguments, of the tables with a policy's parameters."""
    return policy.default_actions(json.loads(program.compiled.text or ""), program.parameters or {})
