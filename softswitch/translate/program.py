# SPDX-License-Identifier: MIT
"""A compiled P4 program as p4c-bm2-ss writes it (behavioral-model, docs/JSON_format.md), ready to translate.

Headers, fields and their C names are resolved here; expressions, parser states, actions, tables and control flow stay
JSON and are read by the module that writes their C.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from lib.places import CHECKOUT

from .errors import BadProgram, Unsupported
from .names import Names
from .source_lines import SourceLines

Json = Any

# v1model's standard metadata in struct intrinsic: name -> bits. Other fields are not supported.
STANDARD_FIELDS = {
    "ingress_port": 9,
    "egress_spec": 9,
    "egress_port": 9,
    "instance_type": 32,
    "packet_length": 32,
    "enq_timestamp": 32,
    "enq_qdepth": 19,
    "deq_timedelta": 32,
    "deq_qdepth": 19,
    "ingress_global_timestamp": 48,
    "egress_global_timestamp": 48,
    "mcast_grp": 16,
    "egress_rid": 16,
    "checksum_error": 1,
    "parser_error": 32,
}
# These two are as wide as the v1model in use has them: priority has 3 bits, or 5 in changed ones, which also have qid.
QUEUE_FIELDS = ("priority", "qid")
MAX_QUEUE_BITS = 8

# This field of the metadata struct asks for time in ns (README.md). p4c flattens the struct: it calls the field
# `metadata_t.ns_per_tick`, or, if the struct has structs in it, `metadata_t._ns_per_tick7`.
_UNIT_FIELD = re.compile(r"[^.]+\.(ns_per_tick|_ns_per_tick\d+)")
# Where a policy of a user's says its packet's queue (p4src/compile/link.py puts this struct into our program).
_QUEUE_FIELD = re.compile(r"[^.]+\._verdict_queue\d+")
NS_PER_TICK = 1000  # without this field: simple_switch's us


@dataclass(frozen=True)
class HeaderField:
    name: str
    c_name: str
    bits: int  # of a varbit field: 0
    signed: bool
    varbit_bytes: int = 0  # the most that a varbit field can have


def _is_supported(field: HeaderField) -> bool:
    """Whether the switch has this field of standard metadata."""
    if field.name in QUEUE_FIELDS:
        return field.bits <= MAX_QUEUE_BITS
    return STANDARD_FIELDS.get(field.name) == field.bits


@dataclass(frozen=True)
class Header:
    """A header or metadata instance. `c_text` is the C expression for its struct."""

    name: str
    c_type: str
    c_text: str
    metadata: bool
    standard: bool
    fields: dict[str, HeaderField]

    @property
    def bits(self) -> int:
        return sum(field.bits for field in self.fields.values())

    @property
    def bytes(self) -> int:
        """Without its varbit field."""
        return self.bits // 8

    @property
    def varbit(self) -> HeaderField | None:
        return next((field for field in self.fields.values() if field.varbit_bytes), None)

    @property
    def max_bytes(self) -> int:
        return self.bytes + (self.varbit.varbit_bytes if self.varbit else 0)

    @property
    def bytes_text(self) -> str:
        """The C of its length now."""
        return f"({self.bytes} + {self.c_text}.{self.varbit.c_name}_bytes)" if self.varbit else str(self.bytes)


@dataclass(frozen=True)
class Stack:
    """A header stack. `c_text` is the C array of its headers, `next` the C lvalue of the index to extract next."""

    name: str
    c_text: str
    elements: tuple[Header, ...]

    @property
    def next(self) -> str:
        return self.c_text + "_next"

    @property
    def size(self) -> int:
        return len(self.elements)

    def at(self, index: str) -> Header:
        """The header at an index that is known only when the program runs."""
        return replace(self.elements[0], name=f"{self.name}[]", c_text=f"{self.c_text}[{index}]")

    def last(self) -> Header:
        """The header that the parser extracted last."""
        return self.at(f"p4_last({self.next})")


class Program:
    def __init__(self, json: Json) -> None:
        if not isinstance(json, dict) or "pipelines" not in json or "header_types" not in json:
            raise BadProgram("it has no `pipelines` and `header_types`")
        self.json = json
        self.source = json.get("program") or "program.p4"
        self.lines = SourceLines(self.source, CHECKOUT)  # not where the user is: equal programs give equal C
        self.problems: list[Unsupported] = []
        self.wide_bits = 0  # of the widest value, if more than 128
        self.functions = Names()  # of the C file: functions, and structs of header types
        self.members = Names("valid", "length_in", "length", "truncate_bytes", "port_in", "exited", members=True)
        self.types: dict[str, tuple[str, dict[str, HeaderField]]] = {}
        self.headers: dict[str, Header] = {}
        self.stacks: dict[str, Stack] = {}
        self._read_types()
        self._read_headers()
        self.unit_field = self._metadata_field(_UNIT_FIELD)
        self.queue_field = self._metadata_field(_QUEUE_FIELD)
        self.actions = {action["id"]: action for action in json["actions"]}
        self.errors = dict(json.get("errors", []))

    @property
    def base_name(self) -> str:
        return posixpath.splitext(posixpath.basename(self.source))[0]

    def where(self, *things: Json) -> str:
        """FILE:LINE of the first of `things` that has one; else the program's file."""
        for thing in things:
            info = thing.get("source_info") if isinstance(thing, dict) else None
            if info and info.get("filename"):
                return f"{info['filename']}:{info['line']}"
        return self.source

    def where_action(self, action: Json) -> str:
        """FILE:LINE of an action's declaration; for an action that the compiler made, of its first statement."""
        infos = [item["source_info"] for item in action["primitives"] if item.get("source_info")]
        # A statement with a constant may name the constant's .def file as its source: prefer a .p4 file.
        info = next((item for item in infos if item["filename"].endswith(".p4")), infos[0] if infos else None)
        if info is None:
            return self.lines.find(r"\baction\s+", action["name"].split(".")[-1])
        declared = self.lines.find(r"\baction\s+", action["name"].split(".")[-1], only_in=info["filename"])
        return declared if declared != info["filename"] else f"{info['filename']}:{info['line']}"

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Collects an Unsupported error and continues, so that the user gets all errors at once."""
        try:
            yield
        except Unsupported as problem:
            self.problems.append(problem)

    def field(self, reference: Json, where: str) -> tuple[Header, HeaderField]:
        """The field of a reference ["header", "field"], except `$valid$` (see expressions)."""
        header_name, field_name = reference
        header = self.header(header_name, where)
        if field_name in header.fields:
            return header, header.fields[field_name]
        if header.standard:
            raise Unsupported(where, f"standard_metadata.{field_name}", "the switch does not have this field")
        raise BadProgram(f"header {header_name} has no field {field_name}")

    def _metadata_field(self, pattern: re.Pattern[str]) -> str | None:
        """The C lvalue of the metadata field of this name."""
        for header in self.headers.values():
            for name, field in header.fields.items():
                if header.metadata and pattern.fullmatch(name):
                    return f"{header.c_text}.{field.c_name}"
        return None

    def header(self, name: str, where: str) -> Header:
        if name not in self.headers and not self.json.get("header_unions"):
            raise BadProgram(f"no header {name}")
        if name not in self.headers:
            raise Unsupported(where, f"header {name}", "it is part of a header union")
        return self.headers[name]

    def stack(self, name: str, where: str) -> Stack:
        if name not in self.stacks:
            raise Unsupported(where, f"stack {name}", "it is a stack of header unions")
        return self.stacks[name]

    def _read_types(self) -> None:
        for header_type in self.json["header_types"]:
            names = Names("valid", members=True)
            fields = {}
            fixed = sum(bits for _, bits, *_ in header_type["fields"] if bits != "*")
            before = 0
            for name, bits, *rest in header_type["fields"]:
                if bits == "*":
                    if before % 8:
                        where = self.lines.find(r"\b", name, r"\s*;")
                        why = f"it begins at bit {before}: put it at a whole byte"
                        self.problems.append(Unsupported(where, f"varbit field {name}", why))
                    c_name = names.unique(name)
                    names.unique(name + "_bytes")
                    fields[name] = HeaderField(name, c_name, 0, False, header_type["max_length"] - fixed // 8)
                    continue
                before += bits
                if bits > 128:
                    self.wide_bits = max(self.wide_bits, bits + 1)
                fields[name] = HeaderField(name, names.unique(name), bits, bool(rest and rest[0]))
            self.types[header_type["name"]] = (self.functions.unique(header_type["name"]), fields)

    def _read_headers(self) -> None:
        places: dict[int, str] = {}  # header id of a stack's element -> its C text
        for stack in self.json.get("header_stacks", []):
            c_text = "phv->" + self.members.unique(stack["name"])
            self.members.unique(stack["name"] + "_next")
            places |= {number: f"{c_text}[{index}]" for index, number in enumerate(stack["header_ids"])}
        for union in self.json.get("header_unions", []):
            where = self.lines.find(r"\bheader_union\s+", union["union_type"])
            why = "use separate headers, one of them valid"
            self.problems.append(Unsupported(where, f"header union {union['name']}", why))
        for header in self.json["headers"]:
            c_type, fields = self.types[header["header_type"]]
            standard = header["name"] == "standard_metadata"
            if standard:
                fields = {name: field for name, field in fields.items() if _is_supported(field)}
                c_text = "packet->std"
            else:
                c_text = places.get(header["id"]) or "phv->" + self.members.unique(header["name"])
            self.headers[header["name"]] = Header(
                header["name"], c_type, c_text, bool(header["metadata"]), standard, fields
            )
        by_id = {header["id"]: self.headers[header["name"]] for header in self.json["headers"]}
        for stack in self.json.get("header_stacks", []):
            elements = tuple(by_id[number] for number in stack["header_ids"])
            self.stacks[stack["name"]] = Stack(stack["name"], elements[0].c_text.removesuffix("[0]"), elements)
