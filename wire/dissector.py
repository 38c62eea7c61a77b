# SPDX-License-Identifier: MIT
"""Generates wire/postcard.lua, a Wireshark dissector, from postcard.def: `python -m wire.dissector`.

Every field is called bufferscope.<name>, and every flag bufferscope.flags.<name>. A field's comment in postcard.def is
its description. Codes and flags show their names.
"""

from __future__ import annotations

import re
from pathlib import Path

from wire.formats import HERE, POLICY, POSTCARD

OUTPUT = HERE / "postcard.lua"
ADDRESSES = ("src_addr", "dst_addr")
FLAGS = ("DROPPED", "CE_MARKED", "ECT", "AT_INGRESS", "HAS_PORTS", "HAS_TCP", "HAS_IP", "BYTE_THRESHOLD")
HEAD = """\
-- SPDX-License-Identifier: GPL-2.0 OR MIT
-- Wireshark dissector of bufferscope's postcards. `python -m wire.dissector` generates it from wire/postcard.def; a
-- test fails if it is stale. Use: wireshark -X lua_script:wire/postcard.lua postcards.pcapng, or copy it to Wireshark's
-- folder of personal plugins.
local bufferscope = Proto("bufferscope", "bufferscope postcard")
local f = bufferscope.fields
"""


def lua() -> str:
    """The dissector's text."""
    remarks = _remarks()
    lines = [HEAD]
    lines.append(_table("policies", {value: name.removeprefix("POLICY_").lower() for name, value in POLICY.items()}))
    units = {POSTCARD.const[f"POSTCARD_DEPTH_{name}"]: name.lower() for name in ("EXACT", "CELLS", "UNKNOWN")}
    lines.append(_table("depth_units", units))
    for name, bits in POSTCARD.fields:
        lines.append(f'f.{name} = {_kind(name, bits)}("bufferscope.{name}", "{name}"{_more(name, bits, remarks)})')
    for name in FLAGS:
        bit = POSTCARD.const[f"POSTCARD_{name}"]
        lines.append(
            f'f.flag_{name.lower()} = ProtoField.bool("bufferscope.flags.{name.lower()}", "{name}", 8, nil, {bit:#04x})'
        )
    lines.append("")
    lines.append("function bufferscope.dissector(buffer, packet, tree)")
    length, version = POSTCARD.length, POSTCARD.const["POSTCARD_VERSION"]
    lines.append(f"\tif buffer:len() < {length} or buffer(0, 1):uint() ~= {version} then return 0 end")
    lines.append('\tpacket.cols.protocol = "bufferscope"')
    lines.append(f"\tlocal card = tree:add(bufferscope, buffer(0, {length}))")
    at = 0
    for name, bits in POSTCARD.fields:
        size = bits // 8
        add = f"card:add(f.{name}, buffer({at}, {size}))"
        if name == "flags":
            lines.append(f"\tlocal flags = {add}")
            lines += [f"\tflags:add(f.flag_{flag.lower()}, buffer({at}, {size}))" for flag in FLAGS]
        else:
            lines.append(f"\t{add}")
        at += size
    dropped = POSTCARD.const["POSTCARD_DROPPED"]
    lines.append(
        f"\tlocal fate = buffer(1, 1):bitfield({7 - dropped.bit_length() + 1}, 1) == 1 and 'dropped' or 'departed'"
    )
    depth, unit_at = "string.format('%d {}', buffer({}, 4):uint())", _offset("depth_unit")
    lines.append(f"\tlocal depth = {depth.format('packets', _offset('depth_packets'))}")
    lines.append(f"\tlocal unit = buffer({unit_at}, 1):uint()")
    cells, unknown = (POSTCARD.const[f"POSTCARD_DEPTH_{name}"] for name in ("CELLS", "UNKNOWN"))
    lines.append(f"\tif unit == {cells} then depth = {depth.format('cells', _offset('depth_cells'))} end")
    lines.append(f"\tif unit == {unknown} then depth = 'unknown' end")
    lines.append("\tpacket.cols.info = string.format('%s, depth %s', fate, depth)")
    lines += [f"\treturn {length}", "end", ""]
    lines.append(f'DissectorTable.get("udp.port"):add({POSTCARD.const["POSTCARD_UDP_PORT"]}, bufferscope)')
    return "\n".join(lines) + "\n"


def _offset(field: str) -> int:
    at = 0
    for name, bits in POSTCARD.fields:
        if name == field:
            return at // 8
        at += bits
    raise KeyError(field)


def _remarks() -> dict[str, str]:
    matches = re.findall(r"^FIELD\(\d+, (\w+)\)\s*// (.*)$", (HERE / "postcard.def").read_text(), re.M)
    return {name: remark.replace('"', "'") for name, remark in matches}


def _table(name: str, values: dict[int, str]) -> str:
    return f"local {name} = {{{', '.join(f'[{value}] = {text!r}' for value, text in sorted(values.items()))}}}"


def _kind(name: str, bits: int) -> str:
    if name in ADDRESSES:
        return "ProtoField.ipv6"
    size = 64 if bits > 32 else 24 if bits == 24 else bits  # ProtoField has no 48 bits; uint64 takes shorter values
    return f"ProtoField.uint{size}"


def _more(name: str, bits: int, remarks: dict[str, str]) -> str:
    remark = f'"{remarks[name]}"' if name in remarks else "nil"
    if name in ADDRESSES:
        return f", {remark}"
    base = "base.HEX" if name in ("flags", "tcp_flags") else "base.DEC"
    table = {"policy": "policies", "depth_unit": "depth_units"}.get(name, "nil")
    return f", {base}, {table}, nil, {remark}"


def main() -> None:
    OUTPUT.write_text(lua())
    print(f"wrote {OUTPUT.relative_to(Path.cwd()) if OUTPUT.is_relative_to(Path.cwd()) else OUTPUT}")


if __name__ == "__main__":
    main()
