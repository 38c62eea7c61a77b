# SPDX-License-Identifier: MIT
"""Schemas from compilers' output: P4Info in text form (p4c), and bf-rt.json (the Tofino compiler and its driver).

A small parser here reads P4Info's text form: we need only tables, actions, counters and registers. For these the
protobuf classes would add a dependency with hundreds of files.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from controlplane.program import PROGRAM
from controlplane.schema import Array, Field, Schema, Table
from p4src.compile.sources import read_digest

BUILD = Path(__file__).resolve().parents[1] / "p4src/build"
_TOKEN = re.compile(r'(?:\s|#[^\n]*\n)*([{}:]|"(?:[^"\\\n]|\\.)*"|[-+.\w]+)')


def from_p4info(text: str, origin: str) -> Schema:
    """ValueError if `text` is not a protobuf message in text form."""
    info = _parse_text(text)
    actions: dict[str, tuple[str, tuple[Field, ...]]] = {}
    for action in info["actions"]:
        (preamble,) = action["preamble"]
        actions[preamble["id"][0]] = (preamble["name"][0], tuple(map(_p4info_field, action["params"])))
    tables = {}
    for table in info["tables"]:
        name = table["preamble"][0]["name"][0]
        allowed = dict(actions[reference["id"][0]] for reference in table["action_refs"])
        tables[name] = Table(name, tuple(map(_p4info_field, table["match_fields"])), allowed, int(table["size"][0]))
    counters = {array.name: array for array in map(_p4info_array, info["counters"])}
    registers = {array.name: array for array in map(_p4info_array, info["registers"])}
    return Schema(origin, tables, counters, registers)


def from_bfrt(content: Mapping[str, Any], origin: str) -> Schema:
    """`content`: a bf-rt.json, parsed. Its counters and registers are tables, with the cell's index as key."""
    tables, counters, registers = {}, {}, {}
    for table in content["tables"]:
        name = table["name"]
        keys = tuple(Field(key["name"], bits_of(key["type"])) for key in table["key"])
        if table["table_type"] == "Counter":
            counters[name] = Array(name, table["size"])
        elif table["table_type"] == "Register":
            widths = [bits_of(data["singleton"]["type"]) for data in table["data"] if "singleton" in data]
            registers[name] = Array(name, table["size"], max(widths, default=0))
        else:
            actions = {
                action["name"]: tuple(Field(data["name"], bits_of(data["type"])) for data in action["data"])
                for action in table.get("action_specs", [])
            }
            tables[name] = Table(name, keys, actions, table.get("size"))
    return Schema(origin, tables, counters, registers)


def load_bfrt(text: str, origin: str) -> Schema:
    return from_bfrt(json.loads(text), origin)


def committed_schemas() -> list[Schema]:
    """The schemas of our program in p4src/build: P4Info, and the bf-rt.json of each Tofino compilation."""
    info = BUILD / f"{PROGRAM}.p4info.txtpb"
    schemas = [from_p4info(info.read_text(), info.name)]
    for path in sorted(BUILD.rglob("*bf-rt.json")):
        schemas.append(load_bfrt(path.read_text(), str(path.relative_to(BUILD))))
    return schemas


def committed_tofino(chip: str) -> tuple[Schema | None, str | None]:
    """(schema, digest of the P4 sources) of our program compiled for tf1 or tf2. (None, None): not compiled."""
    directory = BUILD / {"tf1": "tofino", "tf2": "tofino2"}[chip]
    tables, digest = directory / "bf-rt.json", directory / f"{PROGRAM}.sha256"
    if not tables.exists() or not digest.exists():
        return None, None
    return load_bfrt(tables.read_text(), f"{directory.name}/{tables.name}"), read_digest(digest)


def bits_of(kind: Mapping[str, Any]) -> int:
    """The width of a bf-rt.json type: from its `width` (type `bytes`) or its name (`uint16`). 0: not a number."""
    if kind["type"] == "bytes":
        return int(kind["width"])
    if kind["type"] == "bool":
        return 1
    match = re.fullmatch(r"u?int(\d+)", kind["type"])
    return int(match[1]) if match else 0


def _p4info_field(message: Mapping[str, Any]) -> Field:
    return Field(message["name"][0], int(message["bitwidth"][0]))


def _p4info_array(message: Mapping[str, Any]) -> Array:
    bits = 0
    if message["type_spec"]:
        bits = int(message["type_spec"][0]["bitstring"][0]["bit"][0]["bitwidth"][0])
    return Array(message["preamble"][0]["name"][0], int(message["size"][0]), bits)


def _parse_text(text: str) -> dict[str, list[Any]]:
    """A protobuf message in text form: each field's values in order; numbers and enums as text."""
    top: dict[str, list[Any]] = defaultdict(list)
    open_messages = [top]
    tokens = iter(_tokens(text))
    for token in tokens:
        if token == "}":
            open_messages.pop()
            if not open_messages:
                raise ValueError("has one } too many")
        elif next(tokens, "") == "{":
            inner: dict[str, list[Any]] = defaultdict(list)
            open_messages[-1][token].append(inner)
            open_messages.append(inner)
        else:
            open_messages[-1][token].append(next(tokens, "").strip('"'))
    if len(open_messages) != 1:
        raise ValueError("ends within {")
    return top


def _tokens(text: str) -> Iterator[str]:
    position = 0
    while match := _TOKEN.match(text, position):
        yield match[1]
        position = match.end()
    if text[position:].strip():
        raise ValueError(f"is not protobuf text at {text[position : position + 20]!r}")
