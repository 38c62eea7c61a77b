# SPDX-License-Identifier: MIT
"""Plays the statements of an STF file at a core with the translated program, and compares the frames that leave.

The core gets requests of docs/control-protocol.md. Names, missing keys and priorities mean what p4c's own player of STF
(backends/bmv2/bmv2stf.py) makes of them: the end of a name suffices, a missing key matches any value, and the entry
with the largest priority wins.
"""

from __future__ import annotations

import operator
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from softswitch.library import Core, Refused
from softswitch.stf.language import Counter, Direct, Entry, Expect, Packet, Statement, number

GAP_NS = 1_000_000
FRAME_BYTES = 9216
MAX_CELLS = 2**32 - 1
_DIGIT_BITS = {"0x": 4, "0o": 3, "0b": 1}
MOST_PORTS = 64  # softswitch/runtime/executor.h
_RELATIONS = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


class Table(NamedTuple):
    """`keys`: name -> (match kind, bits); `actions`: name -> names of the arguments."""

    keys: dict[str, tuple[str, int]]
    actions: dict[str, list[str]]


class CannotPlay(Exception):
    """A statement that this switch has no request for."""


def play(pipeline: Path, statements: list[Statement]) -> list[str]:
    """What was not as expected, one line each. Raises CannotPlay."""
    player = _Player(pipeline, statements)
    try:
        for statement in statements:
            player.make(statement)
    except (Refused, ValueError) as error:
        return [str(error)]
    except LookupError as error:
        return [f"{statement}: no such group, node or entry ({error})"]
    return player.wrong + list(_compare(player.sent, statements))


class _Player:
    def __init__(self, pipeline: Path, statements: list[Statement]) -> None:
        self._watched = {each.port for each in statements if isinstance(each, Packet | Expect)}
        # simple_switch has a queue for every port, also for those that nobody watches.
        others = [port for port in range(MOST_PORTS) if port not in self._watched][: MOST_PORTS - len(self._watched)]
        ports = (*sorted(self._watched), *others)
        self.core = Core(str(pipeline), ports, packets=1024, frame_bytes=FRAME_BYTES)
        self.sent: dict[int, list[bytes]] = defaultdict(list)
        self.wrong: list[str] = []
        self._now_ns = 0
        self._tables = dict(map(_table, self._lines("table list")))
        self._entries: dict[str, tuple[str, int]] = {}  # id -> (table, number of entries before it)
        self._nodes: list[tuple[int, list[int]]] = []  # of multicast groups: replica id, ports
        self._groups: dict[int, list[int]] = {}  # group -> nodes

    def make(self, statement: Statement) -> None:
        """Raises CannotPlay, Refused, ValueError."""
        match statement:
            case Packet(port, frame):
                self._now_ns += GAP_NS
                if self.core.receive(self._now_ns, port, frame):
                    raise ValueError(f"a packet of {len(frame)} bytes is refused")
                for output in self.core.run(self._now_ns + GAP_NS - 1):
                    if output.port in self._watched:
                        self.sent[output.port].append(output.frame)
            case Entry():
                self._write(statement)
            case Counter(name, index, unit, relation, expected):
                cell = self._entries[index[1:]][1] if index.startswith("$") else number(index)
                packets, size = map(int, self._lines(f"counter read {name} {cell}")[0].split()[1:])
                count = packets if unit == "packets" else size
                if not _RELATIONS[relation](count, expected):
                    self.wrong.append(f"counter {name}({index}): {count} {unit}, expected {relation} {expected}")
            case Direct(name, words):
                self.core.set(*self._direct(name, words))

    def _lines(self, request: str) -> list[str]:
        answer = self.core.control(request)
        if answer[0] != "ok":
            raise Refused(f"{request}: {answer[0]}")
        return answer[1:]

    def _write(self, entry: Entry) -> None:
        name = _by_end(self._tables, entry.table, "table")
        table = self._tables[name]
        action = _by_end(table.actions, entry.action, f"table {name}: action")
        if missing := set(table.actions[action]) - entry.arguments.keys():
            raise ValueError(f"action {action}: no argument {', '.join(sorted(missing))}")
        words = [action, *(f"{number(entry.arguments[argument]):#x}" for argument in table.actions[action])]
        if not entry.keys:
            self.core.set(" ".join(["table default", name, *words]))
            return
        given = {_key(table, key): value for key, value in entry.keys.items()}
        keys = [_match(given.get(key), *kind) for key, kind in table.keys.items()]
        needs_priority = any(match in ("ternary", "range") for match, _ in table.keys.values())
        priority = ["priority", str((entry.priority or 0) + 1)] if needs_priority else []
        if entry.id:
            self._entries[entry.id] = name, len(self._lines(f"table dump {name}")) - 1
        self.core.set(" ".join(["table set", name, *keys, "=", *words, *priority]))

    def _direct(self, name: str, words: tuple[str, ...]) -> Iterable[str]:
        """The requests for a command of simple_switch_CLI."""
        match name, *words:
            case "mirroring_add", session, port:
                return [f"mirror set {session} {port}"]
            case "mirroring_add_mc", session, group:
                return [f"mirror set {session} - group {group}"]
            case "mirroring_delete", session:
                return [f"mirror delete {session}"]
            case "mc_mgrp_create", group:
                self._groups[number(group)] = []
            case "mc_node_create", replica, *ports:
                self._nodes.append((number(replica), list(map(number, ports))))
            case "mc_node_update", node, *ports:
                self._nodes[number(node)] = self._nodes[number(node)][0], list(map(number, ports))
                return self._set_groups()
            case "mc_node_associate", group, node:
                self._groups[number(group)].append(number(node))
                return self._set_groups()
            case "register_write", register, index, value:
                return [f"register write {register} {index} {number(value):#x}"]
            case "register_reset", register:
                cells = len(self._lines(f"register read {register} 0 {MAX_CELLS}"))
                return [f"register write {register} {index} 0" for index in range(cells)]
            case "meter_set_rates", meter, index, *rates:
                return [f"meter set {meter} {index} {_rates(rates)}"]
            case "meter_array_set_rates", meter, *rates:
                return [f"meter set {meter} all {_rates(rates)}"]
            case _:
                raise CannotPlay(f"STF statement {name}")
        return []

    def _set_groups(self) -> Iterator[str]:
        for group, nodes in self._groups.items():
            copies = [f"{port} {self._nodes[node][0]}" for node in nodes for port in self._nodes[node][1]]
            if copies:
                yield f"multicast set {group} {' '.join(copies)}"


def _table(line: str) -> tuple[str, Table]:
    """NAME KEY:MATCH:BITS,... ACTION(ARGUMENT:BITS,...),... as `table list` answers."""
    name, keys, actions = line.split(" ")
    fields = [key.rsplit(":", 2) for key in keys.split(",") if key != "-"]
    calls = re.findall(r"([^,()]+)\(([^()]*)\)", actions)
    return name, Table(
        {key: (match, int(bits)) for key, match, bits in fields},
        {action: [text.rpartition(":")[0] for text in arguments.split(",") if text] for action, arguments in calls},
    )


def _by_end(names: Iterable[str], wanted: str, kind: str) -> str:
    """The name that is `wanted`, or the only one that ends in it."""
    names = list(names)
    ends = [name for name in names if name.endswith(wanted)]
    if wanted not in names and len(ends) != 1:
        raise ValueError(f"{kind} {wanted} is unknown or ambiguous: the program has {', '.join(names)}")
    return wanted if wanted in names else ends[0]


def _key(table: Table, wanted: str) -> str:
    """The full name of a key. `extra$0` is `extra[0]`; a header's name alone, or with `.valid`, is its validity."""
    wanted = re.sub(r"\$(\d+)", r"[\1]", wanted)
    for name in (wanted, f"{wanted}$", f"{wanted}.$valid$", wanted.removesuffix("valid") + "$valid$"):
        if name in table.keys:
            return name
    ends = (f".{wanted}", f".{wanted}$", *((".$valid$",) if wanted == "valid" else ()))
    for name in table.keys:
        if name.endswith(ends):
            return name
    raise ValueError(f"key {wanted} is unknown: the table has {', '.join(table.keys)}")


def _match(value: str | None, match: str, bits: int) -> str:
    """A key in a request; None matches any value. A ternary value without a prefix of its digits matches all bits."""
    if value is None:
        return {"exact": "0", "lpm": "0/0"}.get(match, "*")
    if match in ("exact", "range"):
        return f"{number(value):#x}"
    text, slash, given_length = value.partition("/")
    digit_bits = _DIGIT_BITS.get(text[:2].lower())
    digits = text[2:] if digit_bits else ""
    kept = "".join("0" if digit == "*" else "1" for digit in digits)
    plain = number(text.replace("*", "0"))
    if match == "lpm":
        length = number(given_length) if slash else kept.count("1") * digit_bits if digit_bits else bits
        mask = (1 << bits) - (1 << max(bits - length, 0))
        return f"{plain & mask:#x}/{min(length, bits)}"
    mask = (1 << bits) - 1
    if digit_bits:
        mask &= sum(((1 << digit_bits) - 1) << digit_bits * at for at, one in enumerate(reversed(kept)) if one == "1")
    return f"{plain & mask:#x}&&&{mask:#x}"


def _rates(rates: Iterable[str]) -> str:
    """Two rates with bursts, each UNITS_PER_US:UNITS, as `meter set` takes them."""
    pairs = [rate.split(":") for rate in rates]
    return " ".join(f"{round(float(rate) * 1e6)} {burst}" for rate, burst in pairs)


def _compare(sent: dict[int, list[bytes]], statements: list[Statement]) -> Iterator[str]:
    expects: dict[int, list[Expect]] = defaultdict(list)
    for statement in statements:
        if isinstance(statement, Expect):
            expects[statement.port].append(statement)
    for port in sorted(sent.keys() | expects.keys()):
        frames, expected = sent[port], expects[port]
        if any(each.digits is None for each in expected):
            continue
        if len(frames) != len(expected):
            yield f"port {port}: {len(frames)} packets left, expected {len(expected)}"
        for at, (frame, each) in enumerate(zip(frames, expected, strict=False)):
            digits, pattern = frame.hex().upper(), each.digits or ""
            fits = len(digits) == len(pattern) if each.exact else len(digits) >= len(pattern)
            if not fits or any(want not in ("*", digit) for want, digit in zip(pattern, digits, strict=False)):
                yield f"port {port}, packet {at}: {digits} left, expected {pattern}{'$' if each.exact else ''}"
