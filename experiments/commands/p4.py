# SPDX-License-Identifier: MIT
"""The command `p4`: compiles our P4 program again. `p4 check x.p4` says what a program of the user's is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from controlplane.schema import short
from controlplane.schema_files import from_bmv2
from experiments.machine import p4_program
from experiments.spec import own_p4
from lib import regular
from lib.errors import BadValue, SpecError
from lib.keys import Keys, field
from lib.terminal import say
from lib.words import PATHS
from p4src.compile import command, policy
from p4src.compile.sources import CannotCompile, without_comments


class Asked(Keys):
    do: str | None = field("check: say what a program of your own is, and run nothing", values=("check",))
    program: str | None = field("with check: a .p4 file, p4c's JSON, or template", values=PATHS)

    def check(self, wrong: Any) -> None:
        if (self.do is None) != (self.program is None):
            wrong("program", "and `check` belong together; allowed: p4, or p4 check my_aqm.p4")


def run(asked: Asked) -> int:
    """Returns the exit status. Raises SpecError, RunError."""
    if asked.program is None:
        return command.run()
    try:
        program = policy.read(asked.program)
    except CannotCompile as error:
        raise SpecError([BadValue("P4", asked.program, str(error))]) from None
    for line in lines(program, Path(asked.program)):
        say(line)
    return 0


def lines(program: policy.P4Program, path: Path) -> Iterator[str]:
    """What the program is. Raises RunError if it cannot be translated."""
    content = program.json
    is_policy = policy.is_policy(content)
    model = own_p4.program_of(program)
    c_lines = p4_program.translated(model).count("\n")
    kind = "a queue policy in bufferscope's program" if is_policy else "a whole v1model program"
    yield f"{program.name}: {kind}; compiles, and translates to {c_lines} lines of C"
    if is_policy and policy.outdated(content):
        yield "but it was composed with another version of bufferscope's program: compile it again from its .p4"
    known = policy.parameters(content)
    for name, parameter in known.items():
        yield f"parameter {name}: {parameter.bits} bits, {parameter.default} if POLICY does not say"
    schema = from_bmv2(content, path.name)
    places = policy.PLACES if is_policy else ("",)
    for table in (each for each in schema.tables.values() if any(place in f".{each.name}" for place in places)):
        if not table.name.startswith("tbl_"):
            keys = ", ".join(f"{key.name} ({key.bits} bits)" for key in table.keys) or "no key"
            yield f"table {short(table.name)}: {keys}; {', '.join(map(short, table.actions))}"
    ours = from_bmv2(policy.P4Program("", policy.OURS.read_text()).json, "").registers if is_policy else {}
    for register in (each for name, each in schema.registers.items() if name not in ours):
        yield f"register {short(register.name)}: {register.size} x {register.bits} bits"
    yield from _reads(path, content, is_policy)


def _reads(path: Path, content: Mapping[str, Any], is_policy: bool) -> Iterator[str]:
    """The fields that the program reads: a policy's of `seen`, from its source; others' of standard_metadata."""
    if not is_policy:
        found = sorted({name for name in _standard_fields(content) if not name.startswith("_")})
        yield f"reads standard_metadata: {', '.join(found) or 'nothing'}"
        return
    source = policy.POLICIES / f"{path}.p4" if path.suffix == "" else path
    if source.suffix != ".p4":
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
