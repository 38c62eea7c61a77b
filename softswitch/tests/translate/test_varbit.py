# SPDX-License-Identifier: MIT
"""Headers with a varbit field: parsed, copied, compared, hashed, removed, deparsed."""

import zlib
from pathlib import Path

from .conftest import Switch
from .fragments import ERRORS, assign, cut, do, extract, field, is_, named, number, op, program, state, std, when

REMOVE, COPY, COMPARE, HASH, MOVE, COMPARE_DATA = range(1, 7)
MAX_BYTES = 12


def write() -> Path:
    """head (bytes of its data in 4-byte words), then options: a kind, the data, a mark behind it."""
    what, result = field("head", "what"), field("head", "result")
    data, other = field("options", "data"), field("other", "data")
    length = {"type": "expression", "value": op("*", field("head", "words"), number(8))}
    return program(
        "varbit",
        {
            "head_h": [("what", 8), ("words", 8), ("result", 32), ("length", 16)],
            "options_h": [("kind", 8), ("data", "*"), ("mark", 8)],
        },
        {"head": "head_h", "options": "options_h", "other": "options_h"},
        [
            state("start", [extract("head")], [field("head", "words")], {0xFF: None, None: "options"}),
            state("options", [{"op": "extract_VL", "parameters": [named("regular", "options"), length]}]),
        ],
        [
            assign(std("egress_spec"), number(2)),
            assign(result, std("parser_error")),
            *when(is_(what, number(REMOVE)), do("remove_header", named("header", "options"))),
            *when(
                is_(what, number(COPY)),
                do("assign_header", named("header", "other"), named("header", "options")),
                assign(field("other", "mark"), number(0x99)),
            ),
            *when(
                is_(what, number(COMPARE)),
                do("assign_header", named("header", "other"), named("header", "options")),
                assign(result, op("b2d", None, op("==h", named("header", "other"), named("header", "options")))),
            ),
            *when(
                is_(what, number(COMPARE_DATA)),
                do("assign_header", named("header", "other"), named("header", "options")),
                assign(field("other", "mark"), number(0x99)),
                assign(result, op("b2d", None, op("and", is_(data, other), is_(field("other", "kind"), number(7))))),
            ),
            *when(
                is_(what, number(HASH)),
                do("modify_field_with_hash_based_offset", result, number(0), named("calculation", "sum"),
                   number(1 << 32)),
            ),
            *when(
                is_(what, number(MOVE)),
                do("add_header", named("header", "other")),
                do("assign_VL", other, data),
            ),
        ],
        [assign(field("head", "length"), cut(std("packet_length"), 16))],
        max_length=MAX_BYTES + 2,
        calculations=[
            {"name": "sum", "id": 0, "algo": "crc32",
             "input": [field("options", "kind"), data, field("options", "mark")]}
        ],
    )  # fmt: skip


def frame(what: int, data: bytes, result: int = 0, length: int = 0, words: int | None = None) -> bytes:
    size = len(data) if words is None else words
    return bytes([what, size]) + result.to_bytes(4, "big") + length.to_bytes(2, "big") + b"\x07" + data + b"\x08"


def expected(what: int, data: bytes, change: int = 0, **values: int) -> bytes:
    """`change`: of the length that egress sees."""
    return frame(what, data, length=len(frame(what, data)) + 3 + change, **values)


def test_header__has_the_length_that_the_parser_gives(switch: Switch) -> None:
    for size in range(MAX_BYTES + 1):
        data = bytes(range(size))
        assert switch.send_one(frame(0, data) + b"end") == expected(0, data) + b"end"


def test_length__too_long_for_the_header_or_the_frame_is_an_error(switch: Switch) -> None:
    data = bytes(MAX_BYTES + 1)
    assert switch.send_one(frame(0, data) + b"end") == expected(0, data, result=ERRORS.index("HeaderTooShort")) + b"end"
    error = ERRORS.index("PacketTooShort")
    assert switch.send_one(frame(0, b"12", words=6) + b"end") == expected(0, b"12", result=error, words=6) + b"end"


def test_header__is_copied_compared_moved_and_removed(switch: Switch) -> None:
    data = b"abcde"
    copy = b"\x07" + data + b"\x99"
    assert switch.send_one(frame(COPY, data) + b"end") == expected(COPY, data) + copy + b"end"
    both = expected(COMPARE, data, result=1) + b"\x07" + data + b"\x08"
    assert switch.send_one(frame(COMPARE, data) + b"end") == both + b"end"
    same = expected(COMPARE_DATA, data, result=1) + copy
    assert switch.send_one(frame(COMPARE_DATA, data) + b"end") == same + b"end"
    assert switch.send_one(frame(MOVE, data) + b"end") == expected(MOVE, data, 2) + b"\0" + data + b"\0" + b"end"
    whole = expected(REMOVE, data, -2 - len(data))
    assert switch.send_one(frame(REMOVE, data) + b"end") == whole[: -2 - len(data)] + b"end"


def test_hash__takes_the_bytes_that_are_there(switch: Switch) -> None:
    for data in (b"", b"x", b"abcdefghijkl"):
        sum_ = zlib.crc32(b"\x07" + data + b"\x08")
        assert switch.send_one(frame(HASH, data) + b"end") == expected(HASH, data, result=sum_) + b"end"
