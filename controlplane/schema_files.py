# SPDX-License-Identifier: MIT
"""Schemas from compilers' output: p4c's JSON for BMv2, and bf-rt.json (the Tofino compiler and its driver)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from controlplane.program import PROGRAM
from controlplane.schema import Array, Field, Schema, Table
from controlplane.switch import SwitchError
from lib.terminal import one_line
from p4src.compile.sources import read_digest

BUILD = Path(__file__).resolve().parents[1] / "p4src/build"


def from_bmv2(content: Mapping[str, Any], origin: str) -> Schema:
    """`content`: the program as p4c compiles it for BMv2, parsed. Raises SwitchError."""
    try:
        return _from_bmv2(content, origin)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        reason = f"{type(error).__name__}: {one_line(error)}"
        raise SwitchError(f"{origin}: is not what p4c-bm2-ss writes ({reason}); compile it again") from None


def _from_bmv2(content: Mapping[str, Any], origin: str) -> Schema:
    types = {kind["name"]: {name: bits for name, bits, *_ in kind["fields"]} for kind in content["header_types"]}
    headers = {header["name"]: types[header["header_type"]] for header in content["headers"]}

    def key(content: Mapping[str, Any]) -> Field:
        header, name = content["target"]
        bits = headers[header].get(name, 1)  # isValid() is a bit, and no field
        named = content.get("name") or name  # a table that p4c made of a `switch` has keys without names
        return Field(named, bits, content["match_type"])

    actions = {
        action["id"]: (action["name"], tuple(Field(data["name"], data["bitwidth"]) for data in action["runtime_data"]))
        for action in content["actions"]
    }
    tables = {
        table["name"]: Table(
            table["name"], tuple(map(key, table["key"])), dict(actions[number] for number in table["action_ids"]),
            table["max_size"],
        )
        for pipeline in content["pipelines"]
        for table in pipeline["tables"]
        if not table["name"].startswith("tbl_")  # p4c's own, of statements in an apply block
    }  # fmt: skip
    counters = {array["name"]: Array(array["name"], array.get("size")) for array in content["counter_arrays"]}
    registers = {
        array["name"]: Array(array["name"], array["size"], array["bitwidth"]) for array in content["register_arrays"]
    }
    meters = {array["name"]: Array(array["name"], array.get("size")) for array in content["meter_arrays"]}
    return Schema(origin, tables, counters, registers, meters)


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


def committed_bmv2() -> Schema:
    """The schema of our program, as compiled for BMv2 and the soft switch."""
    path = BUILD / f"{PROGRAM}.json"
    return from_bmv2(json.loads(path.read_text()), path.name)


def committed_tofino(chip: str) -> tuple[Schema | None, str | None]:
    """(schema, digest of the P4 sources) of our program compiled for tf1 or tf2. (None, None): not compiled."""
    directory = BUILD / {"tf1": "tofino", "tf2": "tofino2"}[chip]
    tables, digest = directory / "bf-rt.json", directory / f"{PROGRAM}.sha256"
    if not tables.exists() or not digest.exists():
        return None, None
    return from_bfrt(json.loads(tables.read_text()), f"{directory.name}/{tables.name}"), read_digest(digest)


def bits_of(kind: Mapping[str, Any]) -> int:
    """The width of a bf-rt.json type: from its `width` (type `bytes`) or its name (`uint16`). 0: not a number."""
    if kind["type"] == "bytes":
        return int(kind["width"])
    if kind["type"] == "bool":
        return 1
    match = re.fullmatch(r"u?int(\d+)", kind["type"])
    return int(match[1]) if match else 0
