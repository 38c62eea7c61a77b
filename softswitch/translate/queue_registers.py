# SPDX-License-Identifier: MIT
"""Registers that the switch fills: a program that declares them by these names reads the length of each port's queue.

A program that also counts by itself, for targets that fill nothing, asks queue_registers_filled which of the two it is.
"""

from __future__ import annotations

from .errors import Unsupported
from .program import Json, Program

PORTS = 512  # PIPELINE_PORTS
LENGTHS = {"queue_packets": "packets", "queue_bytes": "bytes"}  # to members of struct pipeline_queue_registers
FLAG = "queue_registers_filled"
FORMS = {**dict.fromkeys(LENGTHS, (32, PORTS)), FLAG: (1, 1)}  # bits, elements


def find(program: Program, arrays: list[Json]) -> dict[str, str]:
    """Full name of each such register -> the name by which it is known. Others of the form go to `program.problems`."""
    found: dict[str, str] = {}
    for array in arrays:
        name = array["name"].split(".")[-1]
        if name not in FORMS:
            continue
        given, wanted = (_form(*form) for form in ((array["bitwidth"], array["size"]), FORMS[name]))
        why = f"the switch fills registers of this name: declare {wanted} {name}, once, or choose another name"
        if given != wanted or name in found.values():
            program.problems.append(Unsupported(program.where(array), f"{given} {name}", why))
        found[array["name"]] = name
    return found


def _form(bits: int, size: int) -> str:
    return f"register<bit<{bits}>>({size})"
