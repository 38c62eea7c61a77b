# SPDX-License-Identifier: MIT
"""Translates a compiled P4 program to one C file that implements softswitch/runtime/pipeline.h. `run` shows the order
of the parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lib.terminal import one_line

from . import queue_registers
from .actions import Actions
from .cfile import Function, block, function, indent
from .checksums import CUSTOM_CRCS, calculation, checksums, with_payload
from .control import Control
from .errors import BadProgram, ManyProblems, Unsupported
from .expressions import WIDE, Expressions, storage
from .headers import accessors, instances, structs
from .names import Names, comment, string, word
from .parser import Parser
from .program import NS_PER_TICK, Json, Program
from .tables import METER_BYTES, Tables

LEAST_HEADROOM_BYTES = 256
MOST_STATE_BYTES = 1 << 28  # a virtual machine has all of it in memory
COUNTER_BYTES = 16  # struct p4_counter
UINT32_MAX = 2**32 - 1
SIZES = (8, 16, 32, 64, 128)  # of C's integers, in bits
NUMBERS = {"id", "size", "bitwidth", "max_size", "action_id", "prefix_length", "priority", "rate_count", "max_length"}


@dataclass(frozen=True)
class Translation:
    """`state_bytes`: of registers, counters, meters and tables."""

    c_text: str
    warnings: list[str]
    state_bytes: int


def translate(json: Json, digest: str) -> Translation:
    """The C of a program. `digest`: of the P4 sources, in hex. Raises ManyProblems for unsupported constructs, and
    BadProgram for JSON that p4c-bm2-ss does not write.
    """
    try:
        _check_numbers(json)
        return _Translator(json, digest).run()
    except Unsupported as problem:
        raise ManyProblems([problem]) from problem
    except (LookupError, TypeError, ValueError, AssertionError, AttributeError, StopIteration, RecursionError) as error:
        raise BadProgram(f"{type(error).__name__}: {one_line(error)}") from error


def _check_numbers(part: Any, is_number: bool = False) -> None:
    """The C text has these values as they are: text in their place would be code. Raises BadProgram."""
    if is_number and (type(part) is not int or not 0 <= part < 2**31):
        raise BadProgram(f"{one_line(repr(part))} stands for a number from 0 to {2**31 - 1}")
    if isinstance(part, dict):
        for key, value in part.items():
            _check_numbers(value, key in NUMBERS)
        for _, number in part.get("errors", ()):
            _check_numbers(number, is_number=True)
    elif isinstance(part, list):
        for value in part:
            _check_numbers(value)


class _Translator:
    def __init__(self, json: Json, digest: str) -> None:
        self.json = json
        self.digest = digest
        self.program = Program(json)
        self.members = Names("random", members=True)
        self.expressions = Expressions(self.program)
        self.registers = self._arrays("register_arrays")
        self.counters = self._arrays("counter_arrays")
        self.meters = self._arrays("meter_arrays")
        custom = [item for item in json.get("calculations", []) if item["algo"] in CUSTOM_CRCS]
        self.crcs = {item["name"]: self.members.unique("crc_" + item["name"]) for item in custom}
        arrays = {**self.registers, **self.counters, **self.meters}
        self.filled = queue_registers.find(self.program, json.get("register_arrays", []))
        self.actions = Actions(self.program, self.expressions, arrays, set(self.filled))
        self.tables = Tables(self.program, self.actions, self.members)
        self.parser = Parser(self.program, self.expressions, self.actions, self.tables)
        unit = self.program.unit_field
        self.unit = [f"{unit} = 1;\t/* all stamps are in ns */"] if unit else []

    def _arrays(self, kind: str) -> dict[str, tuple[str, int, int]]:
        result = {}
        for array in self.json.get(kind, []):
            if array.get("is_direct"):
                continue
            self.expressions.reserve(array.get("bitwidth", 64))
            result[array["name"]] = (self.members.unique(array["name"]), array["size"], array.get("bitwidth", 64))
        return result

    def run(self) -> Translation:
        program = self.program
        self._refuse_externs()
        hashes = self._calculations()
        self.parser.translate()
        for action in self.json["actions"]:
            with program.collect():
                self.actions.translate(action)
            self.actions.functions.setdefault(action["id"], None)
        pipelines = {pipeline["name"]: pipeline for pipeline in self.json["pipelines"]}
        for pipeline in pipelines.values():
            self.tables.read(pipeline)
        state_bytes = self._state_bytes()
        order = self.json["deparsers"][0]["order"]
        seam = self._seam(pipelines, order)
        if program.problems:
            raise ManyProblems(program.problems)
        functions = [
            *accessors(program, self.parser.extracted, set(order)),
            *hashes,
            *self.tables.sets,
            *self.parser.made,
            *self.actions.made,
            *self.tables.made,
        ]
        sections = [
            self._head(),
            structs(program),
            self._storage(),
            [line for made in functions for line in made.lines],
            seam,
            self.tables.descriptions(),
            self._descriptions(),
            self._create(),
        ]
        text = "\n".join(line for section in sections for line in section)
        return Translation(text.rstrip() + "\n", self.actions.warnings, state_bytes)

    def _refuse_externs(self) -> None:
        problems = self.program.problems
        for meter in self.json.get("meter_arrays", []):
            if meter["rate_count"] != 2:
                why = "v1model's meters have two"
                construct = f"meter {meter['name']} with {meter['rate_count']} rates"
                problems.append(Unsupported(self.program.where(meter), construct, why))
        for extern in self.json.get("extern_instances", []):
            why = "it is not part of v1model"
            problems.append(Unsupported(self.program.where(extern), f"extern {extern['name']}", why))

    def _calculations(self) -> list[Function]:
        functions: list[Function] = []
        for json in self.json.get("calculations", []):
            with self.program.collect():
                made, bits = calculation(self.program, json, f"pipeline->{self.crcs.get(json['name'], '')}")
                self.actions.calculations[json["name"]] = (made, bits)
                functions.append(made)
        return functions

    def _head(self) -> list[str]:
        words = self._wide_words
        wide = [f"#define P4_WIDE_WORDS {words}", '#include "p4_wide.h"'] if words > 2 else []
        return [
            "/* SPDX-License-Identifier: GPL-2.0 OR MIT",
            f" * {comment(self.program.source)}, compiled by p4c-bm2-ss and softswitch/translate: do not edit.",
            " */",
            '#include "p4_checksum.h"',
            '#include "p4_control.h"',
            *(['#include "p4_stacks.h"'] if self.program.stacks else []),
            '#include "p4_state.h"',
            '#include "p4_tables.h"',
            '#include "p4_types.h"',
            *wide,
            '#include "pipeline.h"',
            "",
        ]

    def _storage(self) -> list[str]:
        members = ["uint64_t random;\t/* state of random() */"]
        if self.json.get("meter_arrays"):
            members.append("const uint64_t *now_ns;")
        for name, size, bits in self.registers.values():
            members.append(f"{_element(bits)} {name}[{size}];")
        members += [f"struct p4_counter {name}[{size}];" for name, size, _ in self.counters.values()]
        members += [f"struct p4_meter {name}[{size}];" for name, size, _ in self.meters.values()]
        members += [f"struct p4_crc {name};" for name in self.crcs.values()]
        members += self.tables.members()
        text = "/* Registers, counters and tables. */"
        return [text, *block("struct pipeline {", members, "};"), ""]

    # The functions of pipeline.h

    def _seam(self, pipelines: dict[str, Json], order: list[str]) -> list[str]:
        start, parse = self._start_packet(), self._parse_frame()
        lines = [*start.lines, *parse.lines]
        for name in ("ingress", "egress"):
            made = Control(self.program, self.expressions, self.actions, self.tables, pipelines[name]).function()
            lines += made.lines
            if name == "ingress":
                lines += self._run_ingress(start, parse, made)
            else:
                signature = "pipeline_egress(struct pipeline *pipeline, struct packet *packet)"
                lines += _public(signature, self._run_egress(made))
        deparse = self._deparse(order)
        lines += _public("pipeline_deparse(struct pipeline *pipeline, struct packet *packet)", deparse)
        signature = (
            "pipeline_clone(struct pipeline *pipeline, const struct packet *original, struct packet *copy,\n"
            "\t\t    enum instance_type kind, uint32_t fields)"
        )
        lines += _public(signature, self._clone(start, parse))
        return lines

    def _start_packet(self) -> Function:
        errors = self.program.errors
        body = [
            "__builtin_memset(phv, 0, sizeof(*phv));",
            "phv->length_in = phv->length = packet->std.packet_length;",
            "phv->truncate_bytes = UINT32_MAX;",
            "phv->port_in = packet->std.ingress_port;",
            "packet->payload_offset = 0;",
            f"packet->std.parser_error = {errors.get('NoError', 0)};",
            "packet->std.checksum_error = 0;",
            *self.unit,
        ]
        return function("start_packet", body, comment="No header is valid, all metadata is zero.")

    def _parse_frame(self) -> Function:
        body = [
            *self.parser.start,
            *checksums(self.program, self.expressions, self.actions.calculations, verify=True),
        ]
        return function("parse_frame", body, comment="Parser and checksum verification.")

    def _run_ingress(self, start: Function, parse: Function, control: Function) -> list[str]:
        std = "ingress_port", "packet_length", "ingress_global_timestamp"
        run = [
            f"{parse.call()};",
            f"{control.call()};",
            "packet->std.instance_type = INSTANCE_NORMAL;",
            "packet->std.truncate_bytes = phv->truncate_bytes;",
            *([f"packet->std.qid = {self.program.queue_field};"] if self.program.queue_field else []),
        ]
        first = [
            "struct phv *phv = packet->phv;",
            "",
            "packet->std = (struct intrinsic){",
            *[f"\t.{name} = packet->std.{name}," for name in std],
            "};",
            f"{start.call()};",
            *run,
        ]
        signature = (
            "pipeline_ingress_again(struct pipeline *pipeline, struct packet *packet, enum instance_type kind,\n"
            "\t\t\t    uint32_t fields)"
        )
        restart = [
            "packet->std = (struct intrinsic){ .instance_type = kind, .packet_length = packet->frame_bytes };",
            f"{start.call()};",
            "phv->port_in = port_in;",
        ]
        again = ["struct phv *phv = packet->phv;", "uint16_t port_in = phv->port_in;", ""]
        if self.actions.again:
            again += ["switch (fields) {"]
            for number in sorted(self.actions.again):
                kept = self._kept(number, set_by_the_switch=("instance_type", "packet_length"))
                save = [f"{kind} kept_{at} = {text};" for at, (kind, text) in enumerate(kept)]
                again += [f"case {number}: {{", *indent([*save, *([""] if save else []), *restart])]
                again += indent([*[f"{text} = kept_{at};" for at, (_, text) in enumerate(kept)], "break;"])
                again += ["}"]
            again += ["}", *run]
        return [
            *_public("pipeline_ingress(struct pipeline *pipeline, struct packet *packet)", first),
            *_public(
                signature, again if self.actions.again else ["/* The program neither resubmits nor recirculates. */"]
            ),
        ]

    def _absent(self, reference: Json) -> bool:
        """A field of standard_metadata that the switch does not have: older lists name all of them."""
        header = self.program.headers[reference[0]]
        return header.standard and reference[1] not in header.fields

    def _kept(self, number: int, set_by_the_switch: tuple[str, ...] = ()) -> list[tuple[str, str]]:
        """(C type, C lvalue) of each field of a field list."""
        kept = []
        for field_list in self.json.get("field_lists", []):
            for element in field_list["elements"] if field_list["id"] == number else []:
                if element["type"] != "field" or self._absent(element["value"]):
                    continue
                header, field = self.program.field(element["value"], self.program.where(field_list))
                if not header.standard or field.name not in set_by_the_switch:
                    kept.append((storage(field.bits), f"{header.c_text}.{field.c_name}"))
        return kept

    def _run_egress(self, control: Function) -> list[str]:
        return [
            "struct phv *phv = packet->phv;",
            "",
            "phv->exited = false;",
            "packet->std.egress_spec = 0;\t/* not the drop port, as in simple_switch */",
            "packet->std.packet_length = phv->length;",
            "packet->std.clone = false;",
            "packet->std.clone_session = 0;",
            "packet->std.clone_fields = 0;",
            f"{control.call()};",
            "packet->std.truncate_bytes = phv->truncate_bytes;",
        ]

    def _deparse(self, order: list[str]) -> list[str]:
        """Writes the headers right before the payload, which does not move."""
        headers = [self.program.header(name, self.program.where(self.json["deparsers"][0])) for name in order]
        total = sum(header.max_bytes for header in headers)
        self.headroom = max(LEAST_HEADROOM_BYTES, (total + 63) // 64 * 64)
        lines = ["struct phv *phv = packet->phv;", "uint32_t header_bytes = 0;", "uint8_t *at;", ""]
        lines += checksums(self.program, self.expressions, self.actions.calculations, verify=False)
        for primitive in self.json["deparsers"][0].get("primitives", []):
            with self.program.collect():
                lines += self.actions.statements([primitive], [], self.program.where(primitive))
        lines += [f"header_bytes += {h.c_text}.valid ? {h.bytes_text} : 0;" for h in headers]
        lines += [
            "at = packet->frame + packet->payload_offset - header_bytes;",
            "packet->frame_bytes += header_bytes - packet->payload_offset;",
            "packet->payload_offset = header_bytes;",
            "packet->frame = at;",
        ]
        for header in headers:
            lines += block(
                f"if ({header.c_text}.valid) {{",
                [f"store_{header.c_type}(at, &{header.c_text});", f"at += {header.bytes_text};"],
            )
        return [
            *lines,
            "if (packet->frame_bytes > phv->truncate_bytes)",
            "\tpacket->frame_bytes = phv->truncate_bytes;",
        ]

    def _clone(self, start: Function, parse: Function) -> list[str]:
        metadata = [header for header in instances(self.program) if header.metadata]
        cases: list[str] = []
        for field_list in self.json.get("field_lists", []):
            kept = [
                f"{text.replace('packet->', 'copy->')} = "
                f"{text.replace('packet->', 'original->').replace('phv->', 'from->')};"
                for _, text in self._kept(field_list["id"])
            ]
            if kept:
                cases += [f"case {field_list['id']}:", *["\t" + line for line in kept], "\tbreak;"]
        body = [
            "struct phv *phv = copy->phv;",
            "const struct phv *from = original->phv;",
            "",
            "copy->std = (struct intrinsic){ .ingress_port = from->port_in, .packet_length = from->length_in };",
            "if (kind == INSTANCE_INGRESS_CLONE) {",
            f"\t{start.call(packet='copy')};",
            f"\t{parse.call(packet='copy')};",
            "} else {",
            "\t*phv = *from;",
            "\tphv->truncate_bytes = UINT32_MAX;",
            "\tphv->exited = false;",
            "\tcopy->payload_offset = 0;",
            "}",
            *[f"{h.c_text} = (struct {h.c_type}){{ 0 }};" for h in metadata],
            *self.unit,
            "copy->std = (struct intrinsic){ .packet_length = phv->length, .truncate_bytes = UINT32_MAX };",
            *(["switch (fields) {", *cases, "}"] if cases else ["(void)fields;"]),
            "copy->std.instance_type = kind;",
        ]
        return body

    # For the control plane

    def _state_bytes(self) -> int:
        """The bytes of registers, counters, meters and tables; too many are a problem of the program."""
        cells = {"register": self.registers, "counter": self.counters, "meter": self.meters}
        parts = {
            (kind, name): size * {"counter": COUNTER_BYTES, "meter": METER_BYTES}.get(kind, self._element_bytes(bits))
            for kind, arrays in cells.items()
            for name, (_, size, bits) in arrays.items()
        }
        parts |= {("table", table.json["name"]): table.memory_bytes for table in self.tables.visible()}
        total = sum(parts.values())
        if total > MOST_STATE_BYTES:
            kind, name = max(parts, key=lambda part: parts[part])
            tables = [table for pipeline in self.json["pipelines"] for table in pipeline["tables"]]
            declared = tables if kind == "table" else self.json[f"{kind}_arrays"]
            where = self.program.where(*(each for each in declared if each["name"] == name))
            self.program.problems.append(
                Unsupported(
                    where,
                    f"{kind} {name} of {parts[kind, name]} bytes",
                    f"registers, counters, meters and tables of a program have {MOST_STATE_BYTES} bytes at most, here "
                    f"{total}",
                )
            )
        return total

    def _element_bytes(self, bits: int) -> int:
        return next((size // 8 for size in SIZES if bits <= size), 8 * self._wide_words)

    @property
    def _wide_words(self) -> int:
        return (self.program.wide_bits + 63) // 64

    def _descriptions(self) -> list[str]:
        lines: list[str] = []
        items = []
        for name, (c_name, size, bits) in self.registers.items():
            at = f"offsetof(struct pipeline, {c_name})"
            read_only = "true" if self.filled.get(name) in queue_registers.LENGTHS else "false"
            items.append(f"{{ {string(word(name))}, {bits}, sizeof({_element(bits)}), {size}, {at}, {read_only} }},")
        lines += [*block("static const struct p4_register_info register_infos[] = {", items or ["{ 0 },"], "};"), ""]
        visible = [table.json["name"] for table in self.tables.visible()]
        rows = []
        for counter in self.json.get("counter_arrays", []):
            name = string(word(counter["name"]))
            if counter.get("is_direct"):
                if counter["binding"] in visible:
                    rows.append(f"{{ {name}, 0, {visible.index(counter['binding']) + 1}, 0 }},")
            else:
                c_name, size, _ = self.counters[counter["name"]]
                rows.append(f"{{ {name}, {size}, 0, offsetof(struct pipeline, {c_name}) }},")
        lines += [*block("static const struct p4_counter_info counter_infos[] = {", rows or ["{ 0 },"], "};"), ""]
        meters = []
        for meter in self.json.get("meter_arrays", []):
            name = string(word(meter["name"]))
            if not meter["is_direct"]:
                c_name, size, _ = self.meters[meter["name"]]
                meters.append(f"{{ {name}, {size}, 0, offsetof(struct pipeline, {c_name}) }},")
            elif meter["binding"] in visible:
                offset = self.tables.tables[meter["binding"]].meter_offset
                meters.append(f"{{ {name}, 0, {visible.index(meter['binding']) + 1}, {offset} }},")
        if meters:
            lines += [*block("static const struct p4_meter_info meter_infos[] = {", meters, "};"), ""]
        calculations = {item["name"]: item["algo"] for item in self.json.get("calculations", [])}
        crcs = [
            f"{{ {string(word(name))}, {16 if calculations[name] == 'crc16_custom' else 32}, "
            f"offsetof(struct pipeline, {c_name}) }},"
            for name, c_name in self.crcs.items()
        ]
        if crcs:
            lines += [*block("static const struct p4_crc_info crc_infos[] = {", crcs, "};"), ""]
        values = {
            "tables": "table_infos",
            "registers": "register_infos",
            "counters": "counter_infos",
            **({"meters": "meter_infos", "meter_count": len(meters)} if meters else {}),
            **({"crcs": "crc_infos", "crc_count": len(crcs)} if crcs else {}),
            "table_count": len(visible),
            "register_count": len(items),
            "counter_count": len(rows),
            "random_offset": "offsetof(struct pipeline, random)",
        }
        fields = [f".{name} = {value}," for name, value in values.items()]
        return [*lines, *block("static const struct p4_program_info program_info = {", fields, "};"), ""]

    def _create(self) -> list[str]:
        furthest = self.parser.max_bytes
        filled = {name: self.registers[full][0] for full, name in self.filled.items()}
        if any(with_payload(json) for json in self.json.get("calculations", [])):
            furthest = UINT32_MAX
        create = [
            "struct pipeline *pipeline = memory;",
            "",
            "__builtin_memset(pipeline, 0, sizeof(*pipeline));",
            *(["pipeline->now_ns = now_ns;"] if self.json.get("meter_arrays") else []),
            *[
                f"pipeline->{self.crcs[item['name']]} = (struct p4_crc){{ {CUSTOM_CRCS[item['algo']]} }};"
                for item in self.json.get("calculations", [])
                if item["name"] in self.crcs
            ],
            *self.tables.initialisation(),
            *[f"pipeline->{member}[0] = 1;" for name, member in filled.items() if name == queue_registers.FLAG],
            "return pipeline;",
        ]
        lengths = [
            f".{member} = pipeline->{filled[name]},"
            for name, member in queue_registers.LENGTHS.items()
            if name in filled
        ]
        sizes = [self.registers[full][1] for full, name in self.filled.items() if name in queue_registers.LENGTHS]
        lengths.append(f".queues = {max(sizes, default=0) // queue_registers.PORTS},")
        registers = [*block("return (struct pipeline_queue_registers){", lengths, "};")]
        control = ["return p4_control(&program_info, pipeline, request, reply, reply_bytes);"]
        return [
            f"const char pipeline_program_name[] = {string(word(self.program.base_name))};",
            f"const char pipeline_program_digest[] = {string(self.digest)};",
            "const uint32_t pipeline_phv_bytes = sizeof(struct phv);",
            f"const uint32_t pipeline_headroom_bytes = {self.headroom};",
            f"const uint32_t pipeline_max_parse_bytes = {min(furthest, UINT32_MAX):#x};"
            if furthest >= UINT32_MAX
            else f"const uint32_t pipeline_max_parse_bytes = {furthest};",
            f"const uint32_t pipeline_ns_per_tick = {1 if self.unit else NS_PER_TICK};",
            f"const bool pipeline_sets_qid = {'true' if self.program.queue_field else 'false'};",
            "",
            *_public("pipeline_memory_bytes(void)", ["return sizeof(struct pipeline);"], "size_t "),
            *_public("pipeline_create(void *memory, const uint64_t *now_ns)", create, "struct pipeline *"),
            *_public(
                "pipeline_queue_registers(struct pipeline *pipeline)", registers, "struct pipeline_queue_registers "
            ),
            *_public(
                "pipeline_control(struct pipeline *pipeline, const char *request, char *reply, size_t reply_bytes)",
                control,
                "size_t ",
            ),
        ]


def _element(bits: int) -> str:
    return next((f"uint{size}_t" for size in SIZES if bits <= size), WIDE)


def _public(signature: str, body: list[str], returns: str = "void ") -> list[str]:
    return [returns + signature, "{", *["\t" + line if line else line for line in body], "}", ""]
