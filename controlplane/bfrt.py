# SPDX-License-Identifier: MIT
"""What the tofino backend needs of BF Runtime: tables by name, keys and data as plain values.

A thin seam: bfrt_client.py fills it with the SDE's client, the tests with tables in memory that check every name.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from controlplane.schema import Schema
from controlplane.switch import SwitchError

Value = int | bool | str | list[int]
Key = Mapping[str, Value]


@dataclass(frozen=True)
class Row:
    """Data of an entry by field name, and the full name of its action, None where the table has none."""

    fields: Mapping[str, Value] = field(default_factory=dict)
    action: str | None = None

    def number(self, name: str) -> int:
        value = self.fields.get(name)
        if not isinstance(value, int):
            raise SwitchError(f"the switch tells {name} as {value!r}, which is no number")
        return value

    def numbers(self, name: str) -> list[int]:
        value = self.fields.get(name)
        if not isinstance(value, list):
            raise SwitchError(f"the switch tells {name} as {value!r}, which is no list of numbers")
        return value


class Tables(abc.ABC):
    """The tables of one device: our program's (`schema`), and the SDE's fixed ones by their names on `chip`.

    `pipe` None is all pipes, where a table has one state for all. Everything raises SwitchError: table, key, reason.
    """

    chip: str  # tf1 or tf2
    program_name: str
    schema: Schema

    @abc.abstractmethod
    def read(self, table: str, keys: Sequence[Key], pipe: int | None = None) -> list[Row]:
        """The entries of `keys`, in their order; one that is not there is left out only if `keys` is one."""

    @abc.abstractmethod
    def read_all(self, table: str) -> list[tuple[Key, Row]]: ...

    @abc.abstractmethod
    def read_default(self, table: str, pipe: int | None = None) -> Row:
        """Nothing in it where the table has none."""

    @abc.abstractmethod
    def add_or_modify(self, table: str, key: Key, row: Row) -> None: ...

    @abc.abstractmethod
    def modify(self, table: str, key: Key, row: Row, pipe: int | None = None) -> None:
        """Of an entry that is always there: what `row` does not name stays."""

    @abc.abstractmethod
    def modify_default(self, table: str, row: Row, pipe: int | None = None) -> None: ...

    @abc.abstractmethod
    def reset(self, table: str, key: Key, pipe: int | None = None) -> None:
        """Back to what the SDE starts with."""

    @abc.abstractmethod
    def delete(self, table: str, key: Key) -> None: ...

    @abc.abstractmethod
    def bound(self) -> AbstractContextManager[None]:
        """Inside, we are the one client that owns the program. SwitchError if another does."""

    @abc.abstractmethod
    def close(self) -> None: ...


def one(rows: Sequence[Row], table: str, key: Key) -> Row:
    """The only row. SwitchError if the entry is not there."""
    if not rows:
        raise SwitchError(f"table {table}, key {dict(key)}: there is no such entry")
    return rows[0]
