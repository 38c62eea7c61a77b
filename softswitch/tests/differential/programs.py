# SPDX-License-Identifier: MIT
"""Programs of ours that both switches execute (programs/), each with its random states and packets.

A state is requests of docs/control-protocol.md. Left out is what simple_switch leaves to chance
(translate/README.md): an index out of range, a lookahead beyond the frame, meters that fill with time.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent / "programs"
PORTS = (1, 2, 3, 4)
HEAD_BYTES = 14 + 8  # of begin.p4; always there: a header that was never valid has fields of chance in BMv2
REPLICAS = (0, 1, 2, 0xFFFF)
Chance = random.Random


class Program(NamedTuple):
    """`state`: requests; `packet`: all that follows the Ethernet header."""

    state: Callable[[Chance], list[str]]
    packet: Callable[[Chance], bytes]


def frame(program: Program, chance: Chance) -> bytes:
    """One frame in eight is cut short."""
    whole = chance.randbytes(12) + b"\x88\xb5" + program.packet(chance)
    cut = chance.random() < 0.125 and program not in WHOLE
    return whole[: chance.randrange(HEAD_BYTES, len(whole) + 1)] if cut else whole


def head(chance: Chance, what: int | None = None, count: int | None = None, number: int | None = None) -> bytes:
    drawn = (value if value is not None else chance.randrange(256) for value in (what, count))
    number = edge(chance, 16) if number is None else number
    return struct.pack(">BBHI", *drawn, number, edge(chance, 32))


def edge(chance: Chance, bits: int) -> int:
    """A random value, often near an end of the range, or with few bits set."""
    top = (1 << bits) - 1
    few = chance.getrandbits(bits) & chance.getrandbits(bits) & chance.getrandbits(bits)
    return chance.choice(
        (0, 1, top, top - 1, 1 << (bits - 1), chance.randrange(16) & top, few, chance.getrandbits(bits))
    )


def number(chance: Chance, size: int) -> bytes:
    return edge(chance, 8 * size).to_bytes(size, "big")


def rest(chance: Chance) -> bytes:
    return chance.randbytes(chance.choice((0, 1, chance.randrange(60), chance.randrange(1200))))


def nothing(chance: Chance) -> list[str]:
    return []


def registers(**cells: tuple[int, int]) -> Callable[[Chance], list[str]]:
    """Random values in registers: name=(cells, bits of a value)."""
    every = [(f"register write {name} {at}", bits) for name, (size, bits) in cells.items() for at in range(size)]
    return lambda chance: [f"{request} {edge(chance, bits)}" for request, bits in every if chance.random() < 0.7]


def stacks(chance: Chance) -> bytes:
    kinds = chance.choices((0, 1, 5, 9, 10, 0x77, 0x80, 0xFF), (2, 2, 1, 1, 2, 0.2, 2, 1), k=chance.randrange(13))
    values = (chance.choice((0, 1, 0x800000, chance.randrange(1 << 24))) for _ in kinds)
    tags = b"".join((kind << 24 | value).to_bytes(4, "big") for kind, value in zip(kinds, values, strict=True))
    return head(chance, chance.randrange(9), chance.choice((0, 1, 2, 77, 255)) if tags else 0) + tags + rest(chance)


def loops(chance: Chance) -> bytes:
    kinds = (b"\x00", b"\x10", b"\x30", b"\x80", b"\x82", b"\xfe\xfe", chance.randbytes(1))
    options = b"".join(chance.choice(kinds) + chance.randbytes(5) for _ in range(chance.randrange(1, 9)))
    turns = chance.randrange(1, 12)  # each reads at most 6 bytes, so no lookahead reads beyond the frame
    return head(chance, None, turns) + options.ljust(6 * turns + 2, b"\x13") + rest(chance)


def labels(chance: Chance) -> bytes:
    count = chance.choice((0, 0, 0, 1, 2, 4, 5))
    passes = [b"\0\1"] * (count - 1) + [b"\0\0"] * (count > 0)
    return head(chance, None, count) + b"".join(each + chance.randbytes(10) for each in passes) + rest(chance)


def plain(chance: Chance) -> bytes:
    return head(chance) + rest(chance)


def groups(chance: Chance) -> list[str]:
    """Two to four multicast groups; a group has each pair of port and replica once."""
    requests = []
    for group in range(1, chance.randrange(3, 6)):
        drawn = chance.sample([f"{port} {replica}" for port in PORTS for replica in REPLICAS], chance.randrange(1, 6))
        requests.append(f"multicast set {group} {' '.join(drawn)}")
    return requests


def sessions(chance: Chance) -> list[str]:
    made = groups(chance)
    for session in range(1, 8):
        port, group = chance.choice(("-", *PORTS)), chance.randrange(len(made) + 1)
        if chance.random() < 0.8 and (port != "-" or group):
            made.append(f"mirror set {session} {port}" + f" group {group}" * (group > 0))
    return made


def flooding(chance: Chance) -> list[str]:
    made = groups(chance)
    for count in range(16):
        flood = f"flood {chance.randrange(1, len(made) + 1)} {edge(chance, 16)}"
        action = chance.choice((flood, flood, f"send {chance.choice(PORTS)}", "drop"))
        made.append(f"table set groups {count} = {action}")
    for replica in REPLICAS:
        for port in PORTS:
            rewrite = chance.choice((f"rewrite {edge(chance, 32)}", "prune", "NoAction", ""))
            made += [f"table set copies {replica} {port} = {rewrite}"] if rewrite else []
    return made


def wide_state(chance: Chance) -> list[str]:
    keys = dict.fromkeys(prefix(chance, 128, chance.choice(WIDE)) for _ in range(chance.randrange(6)))
    made = [f"table set prefixes {key} = found {edge(chance, 128)}" for key in keys]
    return made + registers(narrow_ones=(4, 62))(chance)


WIDE = [random.Random(7).getrandbits(128) for _ in range(4)]


def wide(chance: Chance) -> bytes:
    near = chance.choice(WIDE) ^ chance.getrandbits(chance.randrange(1, 100))
    numbers = (number(chance, 16), chance.choice((number(chance, 16), near.to_bytes(16, "big"))))
    return (
        head(chance, chance.randrange(9)) + b"".join(numbers) + number(chance, 32) + number(chance, 32) + rest(chance)
    )


def varbits(chance: Chance) -> bytes:
    words = chance.choice((0, 1, 2, 7, 10, 11, chance.randrange(256)))
    option = chance.randbytes(max(4 * words - 1, 0)) if chance.random() < 0.9 else b""
    return head(chance, chance.randrange(6), words) + option + rest(chance)


def metered(chance: Chance) -> list[str]:
    made = [f"table set ports {at} = " + chance.choice((f"send {chance.choice(PORTS)}", "drop")) for at in range(6)]
    for cell, most in (
        ("entries all", 4),
        *((f"packets {at}", 12) for at in range(7)),
        *((f"sizes {at}", 4000) for at in range(7)),
    ):
        burst = chance.randrange(most)
        made.append(f"meter set {cell} 0 {burst} 0 {burst + chance.randrange(most)}")
    return made


def value_sets(chance: Chance) -> list[str]:
    members = [f"numbers {chance.randrange(8)}" for _ in range(4)]
    members += [f"pairs {chance.randrange(4)} {chance.randrange(4)}" for _ in range(8)]
    return [f"table set {member} = member" for member in dict.fromkeys(members)]


def values(chance: Chance) -> bytes:
    nexts = (bytes([0, chance.randrange(4), 0, chance.randrange(4)]) for _ in range(chance.randrange(5)))
    found = chance.choice((chance.randrange(8), 0x1000, 0x2000, 0x2001, 0x1234))
    return head(chance, None, None, found) + b"".join(nexts) + rest(chance)


def polynomials(chance: Chance) -> list[str]:
    flags = f"{chance.randrange(2)} {chance.randrange(2)}"
    return [f"crc set {n} {edge(chance, b)} {edge(chance, b)} {edge(chance, b)} {flags}" for n, b in CRCS.items()]


def hashed(chance: Chance) -> bytes:
    return head(chance, chance.randrange(8)) + b"".join(number(chance, n) for n in (2, 4, 8, 2, 2)) + rest(chance)


def prefix(chance: Chance, bits: int, value: int) -> str:
    length = chance.choice((0, 1, bits // 2, bits // 2 + 1, bits, chance.randrange(bits + 1)))
    return f"{value >> bits - length << bits - length:#x}/{length}"


def entries(chance: Chance) -> list[str]:
    def action(*more: str) -> str:
        return chance.choice((f"add {edge(chance, 16)}", f"shift {chance.randrange(16)} {edge(chance, 16)}", *more))

    made = {f"exacts {chance.randrange(8)} {chance.choice(PORTS)}": action("drop") for _ in range(20)}
    for _ in range(10):
        made[f"prefixes {chance.randrange(8)} {prefix(chance, 32, edge(chance, 32))}"] = action()
    for priority in chance.sample(range(1, 1000), 12):
        mask, other = edge(chance, 32), edge(chance, 8)
        key = f"{edge(chance, 32) & mask}&&&{mask} {edge(chance, 8) & other}&&&{other} {chance.choice((0, 255))}"
        made[f"ternaries {key}"] = action("drop") + f" priority {priority}"
    for priority in chance.sample(range(1, 1000), 12):
        first, last = sorted((edge(chance, 16), edge(chance, 16)))
        count = chance.choice(("*", str(edge(chance, 8))))
        key = f"{first}..{last} {count} {prefix(chance, 32, edge(chance, 32))}"
        made[f"ranges {key}"] = action() + f" priority {priority}"
    return [f"table set {key} = {what}" for key, what in made.items()]


def keys(chance: Chance) -> bytes:
    return head(chance, chance.randrange(8), edge(chance, 8)) + rest(chance)


CRCS = {"calc_0": 32, "calc_2": 16}  # of hashes.p4: name of the custom calculation in p4c's JSON, bits
PROGRAMS = {
    "stacks": Program(nothing, stacks),
    "loops": Program(nothing, loops),
    "recirculate": Program(registers(seen=(4, 32), kept=(8, 32)), labels),
    "resubmit": Program(registers(credits=(16, 16)), plain),
    "clones": Program(sessions, plain),
    "multicast": Program(flooding, lambda chance: head(chance, None, chance.randrange(18)) + rest(chance)),
    "wide": Program(wide_state, wide),
    "varbits": Program(nothing, varbits),
    "meters": Program(metered, lambda chance: head(chance, None, chance.randrange(8)) + rest(chance)),
    "valuesets": Program(value_sets, values),
    "hashes": Program(polynomials, hashed),
    "registers": Program(registers(tokens=(8, 48), sums=(8, 24), flags=(64, 1), words=(4, 62), lengths=(2, 32)), plain),
    "tables": Program(entries, keys),
}
WHOLE = (PROGRAMS["loops"],)  # frames that are never cut short
