# SPDX-License-Identifier: MIT
"""Every operation against Python's integers, for random operands and for the ends of their ranges."""

import random
from collections.abc import Callable

from .conftest import Switch

PROGRAM = "expressions"

OPERANDS = {
    "a8": 8, "b8": 8, "a16": 16, "b16": 16, "a32": 32, "b32": 32, "a48": 48, "b48": 48, "a64": 64, "b64": 64,
    "a128": 128, "b128": 128, "a13": 13, "b3": 3, "shift": 8,
    "i8": -8, "j8": -8, "i32": -32, "j32": -32, "i64": -64, "j64": -64,
}  # fmt: skip

# name, bits, value before it is cut to its width
RESULTS: list[tuple[str, int, Callable[..., int]]] = [
    ("add8", 8, lambda v: v.a8 + v.b8),
    ("sub16", 16, lambda v: v.a16 - v.b16),
    ("mul32", 32, lambda v: v.a32 * v.b32),
    ("add48", 48, lambda v: v.a48 + v.b48),
    ("mul64", 64, lambda v: v.a64 * v.b64),
    ("add128", 128, lambda v: v.a128 + v.b128),
    ("sub128", 128, lambda v: v.a128 - v.b128),
    ("mul128", 128, lambda v: v.a128 * v.b128),
    ("and32", 32, lambda v: v.a32 & v.b32),
    ("or32", 32, lambda v: v.a32 | v.b32),
    ("xor32", 32, lambda v: v.a32 ^ v.b32),
    ("not32", 32, lambda v: ~v.a32),
    ("not128", 128, lambda v: ~v.a128),
    ("neg16", 16, lambda v: -v.a16),
    ("shl32", 32, lambda v: v.a32 << v.shift),
    ("shr32", 32, lambda v: v.a32 >> v.shift),
    ("shl64", 64, lambda v: v.a64 << v.shift),
    ("shr64", 64, lambda v: v.a64 >> v.shift),
    ("shl128", 128, lambda v: v.a128 << v.shift),
    ("shr128", 128, lambda v: v.a128 >> v.shift),
    ("shl_const", 32, lambda v: v.a32 << 7),
    ("shr_const", 32, lambda v: v.a32 >> 7),
    ("concat", 16, lambda v: v.a13 << 3 | v.b3),
    ("concat128", 128, lambda v: v.a64 << 64 | v.a48 << 16 | v.b16),
    ("mixed", 24, lambda v: v.a8 << 16 | v.b8 << 8 | v.b3),
    ("slice", 8, lambda v: v.a48 >> 23),
    ("written_slice", 48, lambda v: v.a48 & ~(0xFFF << 9) | (v.a13 >> 1) << 9),
    ("choose", 32, lambda v: v.a32 if v.a8 < v.b8 else v.b32),
    ("sat_add", 8, lambda v: min(v.a8 + v.b8, 255)),
    ("sat_sub", 8, lambda v: max(v.a8 - v.b8, 0)),
    ("isat_add", 8, lambda v: max(-128, min(v.i8 + v.j8, 127))),
    ("isat_sub", 8, lambda v: max(-128, min(v.i8 - v.j8, 127))),
    ("iadd", 8, lambda v: v.i8 + v.j8),
    ("isub", 32, lambda v: v.i32 - v.j32),
    ("imul", 32, lambda v: v.i32 * v.j32),
    ("ineg", 32, lambda v: -v.i32),
    ("ishr", 32, lambda v: v.i32 >> v.shift),
    ("iadd64", 64, lambda v: v.i64 + v.j64),
    ("widen", 64, lambda v: v.i8),
    ("narrow", 32, lambda v: v.a128),
    ("chain", 16, lambda v: ((v.a16 + v.b16 - 3) * 5) ^ ((v.a16 >> 3) + (~v.b16 & 0xFFFF))),
    ("lt", 1, lambda v: v.a32 < v.b32),
    ("le", 1, lambda v: v.a32 <= v.b32),
    ("gt", 1, lambda v: v.a8 > v.b8),
    ("ge", 1, lambda v: v.a8 >= v.b8),
    ("eq", 1, lambda v: v.a8 == v.b8),
    ("ne", 1, lambda v: v.a8 != v.b8),
    ("lt128", 1, lambda v: v.a128 < v.b128),
    ("ilt", 1, lambda v: v.i8 < v.j8),
    ("ige", 1, lambda v: v.i64 >= v.j64),
    ("both", 1, lambda v: v.a8 < 100 and v.b8 < 100),
    ("either", 1, lambda v: v.a8 < 100 or v.b8 < 100),
    ("neither", 1, lambda v: not (v.a8 < 100 or v.b8 < 100)),
    ("wrapped_lt", 1, lambda v: (v.a8 + v.b8) % 256 < v.a8),
    ("minus_lt", 1, lambda v: (v.a64 - v.b64) % 2**64 < v.a64),
    ("pad", 2, lambda v: 0),
]


class Values:
    def __init__(self, **values: int) -> None:
        self.__dict__.update(values)


def draw(rng: random.Random, bits: int) -> int:
    width = abs(bits)
    ends = [0, 1, 2**width - 1, 2 ** (width - 1), 2 ** (width - 1) - 1]
    raw = rng.choice([*ends, rng.getrandbits(width), rng.getrandbits(4)]) % 2**width
    return raw - 2**width if bits < 0 and raw >> (width - 1) else raw


def test_expressions__equal_python_integers(switch: Switch) -> None:
    rng = random.Random(20240229)
    for _ in range(600):
        values = {name: draw(rng, bits) for name, bits in OPERANDS.items()}
        if rng.random() < 0.3:
            values["b8"], values["j8"], values["b128"] = values["a8"], values["i8"], values["a128"]
        total = count = 0
        for name, bits in OPERANDS.items():
            total = total << abs(bits) | values[name] % 2 ** abs(bits)
            count += abs(bits)
        out = int.from_bytes(switch.send_one(total.to_bytes(count // 8, "big")), "big")
        given = Values(**values)
        left = sum(bits for _, bits, _ in RESULTS)
        for name, bits, expected in RESULTS:
            left -= bits
            assert out >> left & (2**bits - 1) == int(expected(given)) % 2**bits, f"{name} of {values}"
