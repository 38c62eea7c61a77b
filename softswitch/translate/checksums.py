# SPDX-License-Identifier: MIT
"""Calculations (hashes and checksums) as C functions, and the checksums that the program verifies and updates."""

from __future__ import annotations

from .actions import if_else
from .cfile import Function, block, function
from .errors import Unsupported
from .expressions import Expressions, constant, mask
from .headers import chunks, store, store_bits
from .names import comment
from .program import HeaderField, Json, Program

# algorithm -> result bits.
_ALGORITHMS = {
    "csum16": 16,
    "cksum16": 16,
    "crc16": 16,
    "crc16_custom": 16,
    "crc32": 32,
    "crc32_custom": 32,
    "xor16": 16,
    "identity": 64,
}

# The parameters with which a CRC starts, as in simple_switch, in the order of struct p4_crc.
CUSTOM_CRCS = {
    "crc16_custom": "0x8005, 0, 0, true, true",
    "crc32_custom": "0x04c11db7, 0xffffffff, 0xffffffff, true, true",
}

# Consecutive inputs that share a validity condition: (condition or "", [(C text, bits)]). A varbit field is a group of
# its own; the most bits that it can have are there as a negative number.
Group = tuple[str, list[tuple[str, int]]]


def with_payload(calculation: Json) -> bool:
    return any(item["type"] == "payload" for item in calculation["input"])


def _groups(program: Program, calculation: Json, where: str) -> list[Group]:
    groups: list[Group] = []
    for item in calculation["input"]:
        if item["type"] == "payload":
            continue
        if item["type"] == "hexstr":
            value = int(item["value"], 16) & mask(item["bitwidth"])
            text = str(constant(value))
            if item["bitwidth"] > 128 >= value.bit_length():
                text = f"p4_wide_from({text})"
            valid, inputs = "", [(text, item["bitwidth"])]
        elif item["type"] == "header":
            header = program.header(item["value"], where)
            valid = f"{header.c_text}.valid"
            inputs = [(f"{header.c_text}.{field.c_name}", _input_bits(field)) for field in header.fields.values()]
        elif item["type"] == "field":
            header, field = program.field(item["value"], where)
            valid = "" if header.metadata else f"{header.c_text}.valid"
            text = f"{header.c_text}.{field.c_name}"
            inputs = [(f"(uint64_t){text}" if header.standard else text, _input_bits(field))]
        else:
            raise Unsupported(where, f"an input of kind {item['type']} to a hash", "use fields, constants or headers")
        for text, bits in inputs:
            if groups and groups[-1][0] == valid and bits > 0 and groups[-1][1][-1][1] > 0:
                groups[-1][1].append((text, bits))
            else:
                groups.append((valid, [(text, bits)]))
    return groups


def _input_bits(field: HeaderField) -> int:
    return -8 * field.varbit_bytes or field.bits


def calculation(program: Program, json: Json, crc: str) -> tuple[Function, int]:
    """The C function of a calculation, and the width of its result. Fields of invalid headers are left out.
    crc: the C lvalue of the parameters of a custom CRC.
    """
    where = program.where(json)
    if json["algo"] not in _ALGORITHMS:
        known = ", ".join(sorted(_ALGORITHMS))
        raise Unsupported(where, f"hash algorithm {json['algo']}", f"the soft switch has {known}")
    groups = _groups(program, json, where)
    total = sum(abs(bits) for _, inputs in groups for _, bits in inputs)
    whole_bytes = all(sum(bits for _, bits in inputs) % 8 == 0 for _, inputs in groups)
    body = [f"uint8_t bytes[{max((total + 7) // 8, 1)}]{'' if whole_bytes else ' = { 0 }'};", "size_t count = 0;"]
    if not total:
        body.insert(1, "")
    lines: list[str] = []
    for valid, inputs in groups:
        inner: list[str] = []
        if inputs[0][1] < 0:
            text = inputs[0][0]
            if not whole_bytes:
                raise Unsupported(where, "a varbit field in a hash beside fields of odd width", "hash whole bytes")
            inner += [f"__builtin_memcpy(bytes + count, {text}, {text}_bytes);", f"count += {text}_bytes;"]
        elif whole_bytes:
            for offset, chunk in chunks(inputs):
                inner += store("bytes + count", offset, chunk)
            inner.append(f"count += {sum(bits for _, bits in inputs) // 8};")
        else:
            for text, bits in inputs:
                inner += [store_bits("bytes", "count", bits, text), f"count += {bits};"]
        lines += block(f"if ({valid}) {{", inner) if valid else inner
    if not whole_bytes:
        lines.append("count = (count + 7) / 8;")
    lines += _result(json["algo"], with_payload(json), crc)
    if json["algo"] in ("csum16", "cksum16"):
        body.append("struct p4_csum16 sum = { 0 };")
    name = program.functions.prefixed("compute_", json["name"])
    made = function(name, [*body, "", *lines], comment=f"{where} {json['algo']}", returns="uint64_t")
    return made, _ALGORITHMS[json["algo"]]


def _result(algorithm: str, payload: bool, crc: str) -> list[str]:
    rest, rest_bytes = "packet->frame + packet->payload_offset", "packet->frame_bytes - packet->payload_offset"
    if algorithm in ("csum16", "cksum16"):
        lines = ["p4_csum16_add(&sum, bytes, count);"]
        if payload:
            lines.append(f"p4_csum16_add(&sum, {rest}, {rest_bytes});")
        return [*lines, "return p4_csum16_end(&sum);"]
    if algorithm in CUSTOM_CRCS:
        head = f"&{crc}, {_ALGORITHMS[algorithm]}"
        value = f"p4_crc_custom({head}, {crc}.initial, bytes, count)"
        if payload:
            value = f"p4_crc_custom({head}, {value}, {rest}, {rest_bytes})"
        return [f"return p4_crc_custom_end({head}, {value});"]
    if algorithm.startswith("crc"):
        name = "p4_" + algorithm
        value = f"{name}(0, bytes, count)"
        return [f"return {name}({value}, {rest}, {rest_bytes});" if payload else f"return {value};"]
    name = "p4_" + algorithm
    value = f"{name}(0, 0, bytes, count)"
    return [f"return {name}({value}, count, {rest}, {rest_bytes});" if payload else f"return {value};"]


def checksums(
    program: Program, expressions: Expressions, functions: dict[str, tuple[Function, int]], verify: bool
) -> list[str]:
    """Statements that verify (after the parser) or update (before the deparser) the program's checksums, in order."""
    lines: list[str] = []
    for checksum in program.json.get("checksums", []):
        if not checksum.get("verify" if verify else "update", True):
            continue
        where = program.where(checksum)
        with program.collect():
            header, field = program.field(checksum["target"], where)
            target = f"{header.c_text}.{field.c_name}"
            if checksum["calculation"] not in functions:
                continue
            compute, bits = functions[checksum["calculation"]]
            call = compute.call()
            if not verify:
                statement = [
                    f"{target} = {call};"
                    if field.bits >= bits
                    else f"{target} = {call} & {constant(mask(field.bits))};"
                ]
            else:
                statement = [f"if ({call} != {target})", "\tpacket->std.checksum_error = 1;"]
            condition = checksum.get("if_cond")
            if condition is not None:
                code = expressions.boolean(expressions.read(condition, where), where)
                if verify and not header.metadata:
                    statement = if_else(code, statement, [])
                    statement = block(f"if ({header.c_text}.valid) {{", statement)
                else:
                    statement = if_else(code, statement, [])
            elif verify and not header.metadata:
                statement = block(f"if ({header.c_text}.valid) {{", statement)
            lines += [f"/* {comment(where)} */", *statement]
    return lines
