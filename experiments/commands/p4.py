# SPDX-License-Identifier: MIT
"""The command `p4`: compiles our P4 program again. `p4 check x.p4` says what a program of the user's is, and whether
its tables fit, as a run would.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from controlplane.schema import short
from controlplane.schema_files import from_bmv2
from controlplane.switch import SwitchError
from experiments.machine import p4_program
from experiments.spec import own_p4, own_program
from experiments.spec.own_program import OwnProgramKeys
from lib import regular
from lib.errors import RunError
from lib.keys import field
from lib.places import IS_INSTALLED
from lib.terminal import counted, say
from model.experiment import Program
from p4src.compile import command, policy
from p4src.compile.policy import P4Program
from p4src.compile.sources import without_comments


class Asked(OwnProgramKeys):
    do: str | None = field("check: say what a program of your own is, and run nothing", values=("check",))

    def check(self, wrong: Any) -> None:
        given = self.model_fields_set
        if given and not {"do", "p4"} <= given:
            wrong("p4", "and `check` belong together; allowed: p4, or p4 check my_aqm.p4")
            return
        for key, problem in own_program.wrong(self, given):
            wrong(key, problem)


def run(asked: Asked) -> int:
    """Returns the exit status. Raises RunError."""
    program = own_p4.resolve(asked)
    if asked.p4 is None or program is None:
        if IS_INSTALLED:
            raise RunError("p4 alone compiles the sources of a checkout; allowed here: p4 check my_aqm.p4")
        return command.run()
    try:
        for line in lines(asked.p4, program):
            say(line)
    except SwitchError as error:
        raise RunError(str(error)) from None
    return 0


def lines(program: P4Program, model: Program) -> Iterator[str]:
    """What the program is. Raises RunError if it cannot be translated, SwitchError if its tables do not fit."""
    content = program.json
    is_policy = program.parameters is not None
    c_lines = p4_program.translated(model).c_text.count("\n")
    kind = "a queue policy in bufferscope's program" if is_policy else "a whole v1model program"
    yield f"{program.name}: {kind}; compiles, and translates to {c_lines} lines of C"
    for name, parameter in (program.parameters or {}).items():
        given = (model.parameters or {})[name]
        yield f"parameter {name}: {parameter.bits} bits, {given}" + " if POLICY does not say" * (
            given == parameter.default
        )
    schema = from_bmv2(content, model.compiled.file)
    places = policy.PLACES if is_policy else ("",)
    for table in (each for each in schema.tables.values() if any(place in f".{each.name}" for place in places)):
        if not table.name.startswith("tbl_"):
            keys = ", ".join(f"{key.name} ({key.bits} bits)" for key in table.keys) or "no key"
            yield f"table {short(table.name)}: {keys}; {', '.join(map(short, table.actions))}"
    ours = from_bmv2(policy.P4Program("", policy.OURS.read_text()).json, "").registers if is_policy else {}
    for register in (each for name, each in schema.registers.items() if name not in ours):
        yield f"register {short(register.name)}: {register.size} x {register.bits} bits"
    yield from _reads(program.source, content, is_policy)
    if model.tables:
        requests = own_program.requests(model)
        p4_program.check_tables(model, requests, own_program.ports(model))
        yield f"{model.tables.file}: {counted(len(requests), 'request')} to the switch, which takes all of them"


def _reads(source: Path | None, content: Mapping[str, Any], is_policy: bool) -> Iterator[str]:
    """The fields that the program reads: a policy's of `seen`, from its source; others' of standard_metadata."""
    if not is_policy:
        found = sorted({name for name in _standard_fields(content) if not name.startswith("_")})
        yield f"reads standard_metadata: {', '.join(found) or 'nothing'}"
        return
    if source is None:
        return
    text = without_comments(regular.read_text(source))
    for control in policy.CONTROLS:
        found_control = re.search(rf"\bcontrol\s+{control}\s*\(\s*in\s+\w+\s+(\w+)(.*?)(?=\bcontrol\b|\Z)", text, re.S)
        if found_control:
            fields = sorted({*re.findall(rf"\b{found_control[1]}\.(\w+)", found_control[2])})
            yield f"{control} reads: {', '.join(fields) or 'nothing'}"


def _standard_fields(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if (
            part.get("type") == "field"
            and isinstance(part.get("value"), list)
            and part["value"][0] == "standard_metadata"
        ):
            yield part["value"][1]
        for value in part.values():
            yield from _standard_fields(value)
    elif isinstance(part, list):
        for value in part:
            yield from _standard_fields(value)
