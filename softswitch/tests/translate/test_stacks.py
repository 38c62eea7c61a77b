# SPDX-License-Identifier: MIT
"""Header stacks, and loops in the parser."""

from pathlib import Path

import pytest

from softswitch.translate.__main__ import main as translate

from .conftest import Switch
from .fragments import ERRORS, assign, cut, do, extract, field, is_, meta, named, number, op, program, state, std, when

TYPES = {"head_h": [("what", 8), ("count", 8), ("result", 16)], "tag_h": [("kind", 8), ("value", 8)]}
LAST = {"type": "stack_field", "value": ["tags", "kind"]}
PUSH_1, PUSH_2, POP_1, POP_9, COPY, FILL, PICK = range(1, 8)


def tag(at: int, name: str):
    return field(f"tags[{at}]", name)


def write() -> Path:
    """head, then tags up to one whose kind is 0. Asked for by `what`, tags are pushed, popped, copied."""
    stack = named("header_stack", "tags")
    at = op("dereference_header_stack", stack, cut(field("head", "count"), 8))
    return program(
        "stacks",
        TYPES,
        {"head": "head_h"},
        [
            state("start", [extract("head")], [field("head", "what")], {0xFF: "endless", 0xFE: "second", None: "more"}),
            state("more", [extract("tags", "stack")], [LAST], {0: None, 7: "second", None: "more"}),
            state("second", [do("set", meta("seen"), number(1))], [LAST], {7: "more", None: None}),
            state("endless", [], [field("head", "count")], {1: "more", None: "endless"}),
        ],
        [
            assign(std("egress_spec"), number(2)),
            assign(field("head", "result"), cut(std("parser_error"), 16)),
            *when(is_(field("head", "what"), number(PUSH_1)), do("push", stack, number(1))),
            *when(
                is_(field("head", "what"), number(PUSH_2)),
                do("push", stack, number(2)),
                do("add_header", named("header", "tags[0]")),
                do("add_header", named("header", "tags[1]")),
                assign(tag(1, "value"), number(0x77)),
            ),
            *when(is_(field("head", "what"), number(POP_1)), do("pop", stack, number(1))),
            *when(is_(field("head", "what"), number(POP_9)), do("pop", stack, number(9))),
            *when(
                is_(field("head", "what"), number(COPY)),
                do("assign_header_stack", named("header_stack", "others"), stack),
                do("pop", stack, number(1)),
            ),
            *when(
                is_(field("head", "what"), number(FILL)),
                assign(field("head", "result"), op("last_stack_index", None, stack)),
                assign(field("head", "count"), op("size_stack", None, stack)),
            ),
            *when(
                is_(field("head", "what"), number(PICK)),
                assign(field("head", "result"), op("access_field", at, 1)),
                assign(op("access_field", at, 0), number(0xEE)),
            ),
        ],
        metadata=[("seen", 8)],
        stacks={"tags": ("tag_h", 3), "others": ("tag_h", 3)},
    )  # fmt: skip


def frame(what: int, *tags: int, count: int = 0, result: int = 0) -> bytes:
    """Tags by their kind; the value of each is its place, from 1 on."""
    rest = b"".join(bytes([kind, place]) for place, kind in enumerate(tags, 1))
    return bytes([what, count]) + result.to_bytes(2, "big") + rest


def test_next__takes_headers_until_the_last_says_so(switch: Switch) -> None:
    for tags in ((0,), (1, 0), (1, 2, 0), (7, 1, 0), (7, 7, 0)):
        assert switch.send_one(frame(0, *tags) + b"payload") == frame(0, *tags) + b"payload"


def test_next__beyond_the_stack_and_beyond_the_frame_are_errors(switch: Switch) -> None:
    too_many, short = frame(0, 1, 2, 3, 0), frame(0, 1) + b"\x01"
    assert switch.send_one(too_many) == frame(0, 1, 2, 3, 0, result=ERRORS.index("StackOutOfBounds"))
    assert switch.send_one(short) == frame(0, 1, result=ERRORS.index("PacketTooShort")) + b"\x01"


def test_push_and_pop__move_the_headers_and_what_leaves_is_gone(switch: Switch) -> None:
    assert switch.send_one(frame(PUSH_1, 1, 0)) == frame(PUSH_1, 1, 0)
    assert switch.send_one(frame(PUSH_1, 1, 2, 0)) == frame(PUSH_1, 1, 2)
    assert switch.send_one(frame(PUSH_2, 1, 0)) == frame(PUSH_2) + b"\0\0\0\x77\x01\x01"
    assert switch.send_one(frame(POP_1, 1, 2, 0)) == frame(POP_1) + b"\x02\x02\x00\x03"
    assert switch.send_one(frame(POP_9, 1, 2, 0)) == frame(POP_9)


def test_stack_copy__has_the_headers_of_its_source(switch: Switch) -> None:
    assert switch.send_one(frame(COPY, 5, 0)) == frame(COPY) + b"\x00\x02" + b"\x05\x01\x00\x02"


def test_last_index_and_size__count_what_the_parser_took(switch: Switch) -> None:
    assert switch.send_one(frame(FILL, 4, 0)) == frame(FILL, 4, 0, count=2, result=1)


def test_index__that_varies_reads_and_writes_that_header(switch: Switch) -> None:
    assert switch.send_one(frame(PICK, 4, 5, 0, count=1)) == frame(PICK, 4, 0xEE, 0, count=1, result=2)


def test_loop__is_entered_in_its_middle(switch: Switch) -> None:
    assert switch.send_one(frame(0xFE)) == frame(0xFE)


def test_loop__that_reads_nothing_ends(switch: Switch) -> None:
    assert switch.send_one(frame(0xFF)) == frame(0xFF, result=ERRORS.index("ParserTimeout"))
    assert switch.send_one(frame(0xFF, 0, count=1)) == frame(0xFF, 0, count=1)


def test_union_stack__is_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    take = {"op": "extract", "parameters": [{"type": "union_stack", "value": ["either", "tag"]}]}
    path = program("unions", TYPES, {"head": "head_h"}, [state("start", [take])], [])
    assert translate([str(path), "--digest", "0" * 64, "-o", str(tmp_path / "out.c")]) == 1
    assert "unions.p4: a header union is not supported" in capsys.readouterr().err


def test_headers__may_take_more_room_than_the_frame_had() -> None:
    """384 bytes of headers leave before a frame of 2 bytes: the packet has room for all that the deparser can write."""
    valid = [do("add_header", named("header", f"blocks[{at}]")) for at in range(6)]
    path = program(
        "room",
        {"head_h": [("what", 16)], "block_h": [(name, 128) for name in "abcd"]},
        {"head": "head_h"},
        [state("start", [extract("head")])],
        [assign(std("egress_spec"), number(2)), *valid, assign(field("blocks[5]", "d"), number(0xBEEF))],
        stacks={"blocks": ("block_h", 6)},
    )
    assert Switch(path).send_one(b"\x12\x34") == b"\x12\x34" + bytes(6 * 64 - 2) + b"\xbe\xef"
