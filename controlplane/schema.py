# SPDX-License-Identifier: MIT
"""The interface of a compiled P4 program: tables, keys, actions and widths, counters, registers.

A schema comes from the compiler's files (schema_files.py) or from the switch. A wrong name or width is refused before
anything is sent. The end of a name suffices, as in P4Runtime's aliases: `forward` is `QueueIngress.forwarding.forward`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from controlplane.switch import SwitchError

T = TypeVar("T")


@dataclass(frozen=True)
class Field:
    """A key or an argument: an unsigned integer of `bits`. `match`: of a key, v1model's match kind."""

    name: str
    bits: int
    match: str = "exact"

    def refusal(self, value: int) -> str:
        """Why `value` does not fit, '' if it does."""
        if 0 <= value < 1 << self.bits:
            return ""
        return f"{self.name} {value} does not fit in {self.bits} bits (0 to {(1 << self.bits) - 1})"


@dataclass(frozen=True)
class Table:
    """`keys` in order; `actions`: full name -> arguments in order."""

    name: str
    keys: tuple[Field, ...]
    actions: Mapping[str, tuple[Field, ...]]
    size: int | None = None


@dataclass(frozen=True)
class Array:
    """A counter, a meter or a register: `size` cells of `bits` (0: no register, so the width depends on the target)."""

    name: str
    size: int | None
    bits: int = 0


@dataclass(frozen=True)
class Schema:
    """The schema of a program. `origin` names its source in error messages."""

    origin: str
    tables: Mapping[str, Table] = field(default_factory=dict)
    counters: Mapping[str, Array] = field(default_factory=dict)
    registers: Mapping[str, Array] = field(default_factory=dict)
    meters: Mapping[str, Array] = field(default_factory=dict)

    def table(self, name: str) -> Table:
        return self._find("table", self.tables, name)

    def counter(self, name: str) -> Array:
        return self._find("counter", self.counters, name)

    def register(self, name: str) -> Array:
        return self._find("register", self.registers, name)

    def meter(self, name: str) -> Array:
        return self._find("meter", self.meters, name)

    def action(self, table: Table, name: str) -> tuple[str, tuple[Field, ...]]:
        """(full name, arguments) of an action of `table`."""
        full = by_end(table.actions, name)
        if full is None:
            allowed = ", ".join(map(short, table.actions))
            raise SwitchError(f"table {short(table.name)} has no action {name!r} in {self.origin}: it has {allowed}")
        return full, table.actions[full]

    def check(self, table: Table, key: int | None, name: str, arguments: Mapping[str, int]) -> list[int]:
        """The arguments in the action's order. SwitchError names the first key or argument that does not fit."""
        where = f"table {short(table.name)}" + ("" if key is None else f", key {key}")
        keys = () if key is None else table.keys
        full, wanted = self.action(table, name)
        if len(keys) != (key is not None):
            raise SwitchError(f"{where}: has {len(table.keys)} keys in {self.origin}, one is expected")
        wrong = sorted(set(arguments) ^ {argument.name for argument in wanted})
        if wrong:
            takes = ", ".join(argument.name for argument in wanted) or "none"
            raise SwitchError(
                f"{where}: action {name} takes {takes} in {self.origin}; missing or unknown: {', '.join(wrong)}"
            )
        fits = [field.refusal(key) for field in keys if key is not None]
        fits += [field.refusal(arguments[field.name]) for field in wanted]
        for refusal in filter(None, fits):
            raise SwitchError(f"{where}: action {short(full)}: {refusal}")
        return [arguments[field.name] for field in wanted]

    def _find(self, kind: str, within: Mapping[str, T], name: str) -> T:
        full = by_end(within, name)
        if full is None:
            raise SwitchError(f"no {kind} {name!r} in {self.origin}: it has {', '.join(map(short, within)) or 'none'}")
        return within[full]


def by_end(names: Mapping[str, object], name: str) -> str | None:
    """The full name that ends in `name`. None: no such name, or several."""
    if name in names:
        return name
    matches = [full for full in names if full.endswith(f".{name}")]
    return matches[0] if len(matches) == 1 else None


def short(name: str) -> str:
    """The last part of a name, without the names of its controls."""
    return name.rpartition(".")[2]
