# SPDX-License-Identifier: MIT
"""Headers as C structs, and C functions that read and write the bytes of each header type."""

from __future__ import annotations

from itertools import accumulate

from .cfile import Function, block, plain_function
from .expressions import mask, storage
from .program import HeaderField, Program

# (C expression, bits) of consecutive fields that together are whole bytes (the last chunk of a list: maybe not).
Chunk = list[tuple[str, int]]


def chunks(fields: list[tuple[str, int]]) -> list[tuple[int, Chunk]]:
    """Splits (text, bits) in wire order into the shortest runs of whole bytes, each with its byte offset."""
    result, run, at, start = [], [], 0, 0
    for text, bits in fields:
        run.append((text, bits))
        at += bits
        if at % 8 == 0:
            result.append((start // 8, run))
            run, start = [], at
    if run:
        result.append((start // 8, run))
    return result


def _layout(base: str, offset: int, chunk: Chunk) -> tuple[str, int, list[tuple[str, int, int]]]:
    """(C of `base + offset`; bits of the chunk, 0 if there is no p4_load and p4_store of that width; (text, bits, first
    bit) of each field).
    """
    firsts = accumulate((size for _, size in chunk), initial=0)
    fields = [(text, size, first) for (text, size), first in zip(chunk, firsts, strict=False)]
    bits = sum(size for _, size in chunk)
    has_integer = bits % 8 == 0 and (bits <= 64 or bits == 128)
    return f"{base} + {offset}" if offset else base, bits if has_integer else 0, fields


def store_bits(at: str, first: int | str, bits: int, text: str) -> str:
    return f"{'p4_store_bits' if bits <= 128 else 'p4_wide_store'}({at}, {first}, {bits}, {text});"


def load_bits(at: str, first: int, bits: int) -> str:
    """The C value, in the storage type of `bits`."""
    if bits > 128:
        return f"p4_wide_load({at}, {first}, {bits})"
    return f"({storage(bits)})p4_load_bits({at}, {first}, {bits})"


def store(base: str, offset: int, chunk: Chunk) -> list[str]:
    """The C that writes a chunk at `base + offset`."""
    at, bits, fields = _layout(base, offset, chunk)
    if not bits:
        return [store_bits(at, first, size, text) for text, size, first in fields]
    parts = []
    for text, size, first in fields:
        wide = f"(uint128_t){text}" if bits > 64 and size <= 64 else text
        left = bits - first - size
        parts.append(f"{wide} << {left}" if left else wide)
    return [f"p4_store{bits}({at}, {' | '.join(parts)});"]


def load(base: str, offset: int, chunk: Chunk) -> list[str]:
    """The C that reads a chunk into its lvalues."""
    at, bits, fields = _layout(base, offset, chunk)
    if not bits:
        return [f"{text} = {load_bits(at, first, size)};" for text, size, first in fields]
    value = f"p4_load{bits}({at})"
    if len(chunk) == 1:
        return [f"{chunk[0][0]} = {value};"]
    lines = []
    for text, size, first in fields:
        left = bits - first - size
        shifted = f"{value} >> {left}" if left else value
        lines.append(f"{text} = {shifted} & {mask(size):#x};" if first else f"{text} = {shifted};")
    return lines


def struct(c_name: str, fields: list[HeaderField], header: bool) -> list[str]:
    members: list[str] = []
    for field in fields:
        if field.varbit_bytes:
            members += [f"uint8_t {field.c_name}[{field.varbit_bytes}];", f"uint32_t {field.c_name}_bytes;"]
        else:
            members.append(f"{storage(field.bits)} {field.c_name};\t/* {field.bits} bits */")
    return block(f"struct {c_name} {{", (["bool valid;"] if header else []) + (members or ["char nothing;"]), "};")


def structs(program: Program) -> list[str]:
    """The types of all headers, and struct phv with all instances."""
    lines: list[str] = []
    for c_type, fields in dict.fromkeys((h.c_type, tuple(h.fields.values())) for h in instances(program)):
        header = any(not h.metadata for h in instances(program) if h.c_type == c_type)
        lines += [*struct(c_type, list(fields), header), ""]
    inside = {element.name for stack in program.stacks.values() for element in stack.elements}
    members = [
        f"struct {h.c_type} {h.c_text.removeprefix('phv->')};" for h in instances(program) if h.name not in inside
    ]
    for stack in program.stacks.values():
        name = stack.c_text.removeprefix("phv->")
        members += [f"struct {stack.elements[0].c_type} {name}[{stack.size}];", f"uint32_t {name}_next;"]
    state = [
        "uint32_t length_in;\t/* of the received frame; counters count it */",
        "uint32_t length;\t/* the same, plus headers added, minus headers removed: egress sees it */",
        "uint32_t truncate_bytes;\t/* UINT32_MAX: none */",
        "uint16_t port_in;",
        "bool exited;",
    ]
    lines.append("/* A packet's headers, metadata and state in the pipeline. */")
    return [*lines, *block("struct phv {", members + state, "};"), ""]


def _chunks(fields: tuple[HeaderField, ...]) -> list[tuple[int, Chunk]]:
    return chunks([("header->" + field.c_name, field.bits) for field in fields])


def instances(program: Program) -> list:
    """The header instances in struct phv."""
    return [header for header in program.headers.values() if not header.standard]


def accessors(program: Program, parsed: set[str], emitted: set[str]) -> list[Function]:
    """load_TYPE for each type with an extracted instance, store_TYPE for each type with an emitted instance."""
    made: list[Function] = []
    for prefix, names, make, pointer in (
        ("load_", parsed, load, "struct {} *header, const uint8_t *at"),
        ("store_", emitted, store, "uint8_t *at, const struct {} *header"),
    ):
        types = dict.fromkeys((h.c_type, tuple(h.fields.values())) for h in instances(program) if h.name in names)
        for c_type, fields in types:
            body = []
            cut = next((at for at, field in enumerate(fields) if field.varbit_bytes), len(fields))
            for offset, chunk in _chunks(fields[:cut]):
                body += make("at", offset, chunk)
            if cut < len(fields):
                data, length = f"header->{fields[cut].c_name}", f"header->{fields[cut].c_name}_bytes"
                offset = sum(field.bits for field in fields[:cut]) // 8
                body += [
                    *([f"at += {offset};"] if offset else []),
                    f"__builtin_memcpy({f'{data}, at' if prefix == 'load_' else f'at, {data}'}, {length});",
                ]
                body += [f"at += {length};"] if fields[cut + 1 :] else []
                for offset, chunk in _chunks(fields[cut + 1 :]):
                    body += make("at", offset, chunk)
            made.append(plain_function(prefix + c_type, body, "", "void", pointer.format(c_type)))
    return made
