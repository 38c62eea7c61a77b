# SPDX-License-Identifier: MIT
"""Registers that the switch fills: a program that declares registers with the names in FORMS reads the queue lengths.

A program that also runs on other targets reads queue_registers_filled: 0 means that it must count the lengths itself.
"""

from __future__ import annotations

from .errors import Unsupported
from .program import Json, Program

PORTS = 512  # PIPELINE_PORTS
# One element for all queues of a port, or one for each queue: index `port ++ priority`.
LENGTH_FORMS = [(32, PORTS), (32, PORTS * 8), (32, PORTS * 32)]
LENGTHS = {"queue_packets": "packets", "queue_bytes": "bytes"}  # name -> member of struct pipeline_queue_registers
FLAG = "queue_registers_filled"
FORMS = {**dict.fromkeys(LENGTHS, LENGTH_FORMS), FLAG: [(1, 1)]}  # bits, elements


def find(program: Program, arrays: list[Json]) -> dict[str, str]:
    """Full name -> name in FORMS, of each register that the switch fills. A wrong form is added to `problems`."""
    filled: dict[str, str] = {}
    forms = dict(FORMS)
    for array in arrays:
        name = array["name"].split(".")[-1]
        if name not in FORMS:
            continue
        form = array["bitwidth"], array["size"]
        if form not in forms[name] or name in filled.values():
            wanted = " or ".join(_form(*each) for each in forms[name])
            why = f"the switch fills registers of this name: declare {wanted} {name}, once, or choose another name"
            program.problems.append(Unsupported(program.where(array), f"{_form(*form)} {name}", why))
        elif name in LENGTHS:
            forms.update({length: [form] for length in LENGTHS})  # both lengths have as many elements
        filled[array["name"]] = name
    return filled


def _form(bits: int, size: int) -> str:
    return f"register<bit<{bits}>>({size})"
