# SPDX-License-Identifier: MIT
"""The language of p4c's simple test framework (STF): one statement a line, `#` starts a comment.

    packet PORT HEX...                     expect PORT [HEX or * ...] [$]           no_packet
    add TABLE [PRIORITY] KEY:VALUE... ACTION(ARGUMENT:VALUE, ...) [= ID]            setdefault TABLE ACTION(...)
    check_counter NAME(INDEX or $ID) [packets|bytes ==|!=|<|<=|>|>= NUMBER]         wait

and the commands of simple_switch_CLI in DIRECT and PRINTING. `*` in a value is a digit that may have any value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

# Name -> number of words behind it, at least. The others only print what simple_switch has.
DIRECT = {
    "mirroring_add": 2, "mirroring_add_mc": 2, "mirroring_delete": 1, "mc_mgrp_create": 1, "mc_node_create": 2,
    "mc_node_update": 2, "mc_node_associate": 2, "register_write": 3, "register_reset": 1, "counter_write": 4,
    "meter_set_rates": 3, "meter_array_set_rates": 2,
}  # fmt: skip
PRINTING = ("mirroring_get", "counter_read", "register_read", "meter_get_rates")

_PART = r"(?:\"[^\"]+\"|[a-zA-Z_$][\w$]*)(?:\[\d+\])?"
_NAME = rf"{_PART}(?:\.{_PART})*"
_VALUE = r"[\w*]+(?:/\w+)?"
_CALL = rf"(?P<action>{_NAME})\s*\((?P<arguments>[^()]*)\)(?:\s*=\s*(?P<id>\w+))?"
_ADD = re.compile(rf"(?P<table>{_NAME})\s+(?:(?P<priority>\d+)\s+)?(?P<keys>(?:{_NAME}\s*:\s*{_VALUE}\s+)+){_CALL}")
_SET_DEFAULT = re.compile(rf"(?P<table>{_NAME})\s+{_CALL}")
_PAIR = re.compile(rf"(?P<name>{_NAME})\s*:\s*(?P<value>{_VALUE})")
_COUNTER = re.compile(
    rf"(?P<name>{_NAME})\s*\(\s*(?P<index>\$?\w+)\s*\)(?:\s+(?P<unit>packets|bytes)\s*(?P<relation>[=!<>]=|[<>])\s*(?P<number>\w+))?"
)


class BadStatement(Exception):
    """A line that is no statement: FILE:LINE and what is wrong."""


@dataclass(frozen=True)
class Packet:
    port: int
    frame: bytes


@dataclass(frozen=True)
class Expect:
    """`digits`: hex digits and `*`; None: any packet, and any number of them. `exact`: nothing follows the digits."""

    port: int
    digits: str | None
    exact: bool


@dataclass(frozen=True)
class Entry:
    """An entry of a table; without `keys` its default action."""

    table: str
    action: str
    arguments: Mapping[str, str]
    keys: Mapping[str, str] = field(default_factory=dict)
    priority: int | None = None
    id: str | None = None


@dataclass(frozen=True)
class Counter:
    """A check of a counter's cell. `index`: a number, or `$` and the id of a table's entry."""

    name: str
    index: str
    unit: str
    relation: str
    number: int


@dataclass(frozen=True)
class Direct:
    """A command of simple_switch_CLI."""

    name: str
    words: tuple[str, ...]


Statement = Packet | Expect | Entry | Counter | Direct


def read(path: Path) -> list[Statement]:
    """The statements of a file. Raises BadStatement, OSError."""
    statements = []
    for at, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        text = re.sub(r"#.*", "", line).strip()
        try:
            statement = _statement(text) if text else None
        except ValueError as error:
            raise BadStatement(f"{path.name}:{at}: {text!r}: {error}") from None
        if statement:
            statements.append(statement)
    return statements


def number(text: str) -> int:
    """A decimal number, or one with 0x, 0o or 0b. Raises ValueError."""
    return int(text, 0 if text[:2].lower() in ("0x", "0o", "0b") else 10)


def _statement(text: str) -> Statement | None:
    """None: a statement without effect here. Raises ValueError."""
    name, _, rest = text.partition(" ")
    name, rest = name.lower(), rest.strip()
    if name in ("packet", "expect"):
        port, *digits = rest.split() or [""]
        return _packet(name, number(port), "".join(digits).upper())
    if name == "add":
        match = _match(_ADD, rest)
        priority = int(match["priority"]) if match["priority"] else None
        return Entry(*_action(match), _pairs(match["keys"]), priority, match["id"])
    if name == "setdefault":
        return Entry(*_action(_match(_SET_DEFAULT, rest)))
    if name == "check_counter":
        match = _match(_COUNTER, rest)
        of = match["unit"] or "packets", match["relation"] or "==", number(match["number"] or "0")
        return Counter(_plain(match["name"]), match["index"], *of)
    if name in DIRECT:
        words = tuple(_plain(word) for word in rest.split())
        if len(words) < DIRECT[name]:
            raise ValueError(f"{name} takes {DIRECT[name]} words or more")
        return Direct(name, words)
    if name in ("wait", "no_packet", *PRINTING):
        return None
    raise ValueError("is not a statement of STF")


def _packet(name: str, port: int, digits: str) -> Packet | Expect:
    if name == "packet":
        return Packet(port, bytes.fromhex(digits))
    exact, digits = digits.endswith("$"), digits.removesuffix("$")
    if wrong := re.search(r"[^0-9A-F*]", digits):
        raise ValueError(f"{wrong[0]!r} is neither a hex digit nor *")
    return Expect(port, digits if digits or exact else None, exact)


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    match = pattern.fullmatch(text)
    if match is None:
        raise ValueError("has not the form of this statement")
    return match


def _action(match: re.Match[str]) -> tuple[str, str, dict[str, str]]:
    """The table, the action and its arguments."""
    return _plain(match["table"]), _plain(match["action"]), _pairs(match["arguments"])


def _pairs(text: str) -> dict[str, str]:
    return {_plain(match["name"]): match["value"] for match in _PAIR.finditer(text)}


def _plain(name: str) -> str:
    return name.replace('"', "")
