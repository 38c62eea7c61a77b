# SPDX-License-Identifier: MIT
"""Values of more than 128 bits: arithmetic, registers, hashes, selects."""

import random
import zlib
from pathlib import Path

import pytest

from .conftest import Switch
from .fragments import assign, cut, do, extract, field, is_, meta, named, number, op, program, state, std, when

A_BITS, B_BITS = 200, 256
MASK = (1 << B_BITS) - 1
A, B, BY, RESULT = (field("head", name) for name in ("a", "b", "by", "result"))
READ, HASH, EQUAL, MAGIC = 0xF0, 0xF1, 0xF2, 0x8123456789 << 216 | 0xABCDEF


def signed(value: int) -> int:
    return value - (1 << B_BITS) if value >> (B_BITS - 1) else value


def _signed(value):
    return op("two_comp_mod", value, number(B_BITS))


def _choose(condition, left, right):
    node = op("?", left, right)
    node["value"]["cond"] = condition
    return node


# What P4 calls an expression -> its value: P4 in JSON, Python.
EXPRESSIONS = [
    (op("+", A, B), lambda a, b, by: a + b),
    (op("-", A, B), lambda a, b, by: a - b),
    (op("*", A, B), lambda a, b, by: a * b),
    (op("*", op("*", B, B), op("-", BY, B)), lambda a, b, by: b * b * (by - b)),
    (op("~", None, B), lambda a, b, by: ~b),
    (op("-", None, B), lambda a, b, by: -b),
    (op("^", op("|", A, op("<<", BY, number(190))), B), lambda a, b, by: (a | by << 190) ^ b),
    (op("<<", B, BY), lambda a, b, by: b << by),
    (op("<<", A, number(64)), lambda a, b, by: a << 64),
    (op(">>", B, BY), lambda a, b, by: b >> by),
    (op("&", op(">>", B, number(192)), number(2**64 - 1)), lambda a, b, by: b >> 192 & 2**64 - 1),
    (op("&", op(">>", B, number(100)), number(2**100 - 1)), lambda a, b, by: b >> 100 & 2**100 - 1),
    (op(">>", _signed(B), BY), lambda a, b, by: signed(b) >> by),
    (op("usat_cast", op("+", A, B), number(B_BITS)), lambda a, b, by: min(a + b, MASK)),
    (op("usat_cast", op("-", A, B), number(B_BITS)), lambda a, b, by: max(a - b, 0)),
    (op("sat_cast", op("+", _signed(B), _signed(B)), number(B_BITS)),
     lambda a, b, by: min(max(2 * signed(b), -(2 ** (B_BITS - 1))), 2 ** (B_BITS - 1) - 1)),
    (_choose(op("<", A, B), A, B), lambda a, b, by: min(a, b)),
    (_choose(op("<", _signed(B), number(0)), number(5), BY), lambda a, b, by: 5 if signed(b) < 0 else by),
]  # fmt: skip


def write() -> Path:
    what, table = field("head", "what"), named("register_array", "table")
    return program(
        "wide",
        {"head_h": [("what", 8), ("a", A_BITS), ("b", B_BITS), ("by", 16), ("result", B_BITS)]},
        {"head": "head_h"},
        [
            state("start", [extract("head"), do("set", meta("copy"), B)], [B], {MAGIC: "magic", None: None}),
            state("magic", [do("set", meta("magic"), number(1))]),
        ],
        [
            assign(std("egress_spec"), number(2)),
            *[
                part
                for number_, (expression, _) in enumerate(EXPRESSIONS)
                for part in when(is_(what, number(number_)), assign(RESULT, cut(expression, B_BITS)))
            ],
            *when(is_(what, number(READ)), do("register_read", RESULT, table, number(1))),
            do("register_write", table, number(1), op("+", meta("copy"), number(1))),
            *when(
                is_(what, number(HASH)),
                do("modify_field_with_hash_based_offset", BY, number(0), named("calculation", "sum"), number(1 << 16)),
            ),
            *when(is_(what, number(EQUAL)), assign(RESULT, meta("magic"))),
        ],
        metadata=[("copy", 300), ("magic", 8)],
        register_arrays=[{"name": "table", "id": 0, "bitwidth": B_BITS, "size": 2}],
        calculations=[
            {
                "name": "sum", "id": 0, "algo": "crc32",
                "input": [A, B, {"type": "hexstr", "value": "0x" + "1".zfill(34), "bitwidth": 136}],
            }
        ],
    )  # fmt: skip


def frame(what: int, a: int = 0, b: int = 0, by: int = 0, result: int = 0) -> bytes:
    head = bytes([what]) + a.to_bytes(A_BITS // 8, "big") + b.to_bytes(B_BITS // 8, "big")
    return head + by.to_bytes(2, "big") + result.to_bytes(B_BITS // 8, "big")


def frames(number_: int, rng: random.Random) -> list[tuple[int, int, int]]:
    def value(bits: int) -> int:
        return rng.choice([0, 1, (1 << bits) - 1, 1 << (bits - 1), rng.getrandbits(bits), rng.getrandbits(bits // 2)])

    return [(value(A_BITS), value(B_BITS), rng.choice([0, 1, 63, 64, 65, 128, 200, 255, 256, 300])) for _ in range(20)]


@pytest.mark.parametrize("number_", range(len(EXPRESSIONS)))
def test_expression__gives_the_value_of_unbounded_integers(switch: Switch, number_: int) -> None:
    for a, b, by in frames(number_, random.Random(number_)):
        expected = EXPRESSIONS[number_][1](a, b, by) & MASK
        assert switch.send_one(frame(number_, a, b, by)) == frame(number_, a, b, by, expected), (hex(a), hex(b), by)


def test_register__keeps_the_value_and_requests_read_it(switch: Switch) -> None:
    switch.send_one(frame(0xFF, b=MAGIC))
    assert switch.do("register read table 0 2") == ["0 0x0", f"1 {MAGIC + 1:#x}"]
    assert switch.send_one(frame(READ)) == frame(READ, result=MAGIC + 1)
    switch.do(f"register write table 1 {2**127:#x}")
    assert switch.do("register read table 1") == [f"1 {2**127:#x}"]
    assert "128 bits" in switch.refused(f"register write table 1 {2**128:#x}")


def test_hash_and_select__take_all_bits(switch: Switch) -> None:
    a, b = 3 << 190, MAGIC
    data = frame(0, a, b)[1 : 1 + (A_BITS + B_BITS) // 8] + (1).to_bytes(17, "big")
    assert switch.send_one(frame(HASH, a, b)) == frame(HASH, a, b, zlib.crc32(data) & 0xFFFF)
    assert switch.send_one(frame(EQUAL, b=MAGIC)) == frame(EQUAL, b=MAGIC, result=1)
    assert switch.send_one(frame(EQUAL, b=MAGIC ^ 1 << 255)) == frame(EQUAL, b=MAGIC ^ 1 << 255)
