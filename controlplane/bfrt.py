# SPDX-License-Identifier: MIT
"""The part of BF Runtime that the tofino backend needs: tables by name, keys and data as plain values.

A thin interface with two implementations: bfrt_client.py calls the SDE's client; the tests have tables in memory, which
check every name.
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
class TableEntry:
    """An entry's data by field name, and the full name of its action (None: the table has no actions, or, from
    `read_default`, no default entry).
    """

    fields: Mapping[str, Value] = field(default_factory=dict)
    action: str | None = None

    def number(self, name: str) -> int:
        value = self.fields.get(name)
        if not isinstance(value, int):
            raise SwitchError(f"the switch reports {name} as {value!r}, which is not a number")
        return value

    def numbers(self, name: str) -> list[int]:
        value = self.fields.get(name)
        if not isinstance(value, list):
            raise SwitchError(f"the switch reports {name} as {value!r}, which is not a list of numbers")
        return value


class DeviceTables(abc.ABC):
    """The tables of one device: our program's (`schema`), and the SDE's fixed tables by their names on `chip`.

    `pipe` None: all pipes, for tables with one state for all pipes. SwitchError names table, key and reason.
    """

    chip: str  # tf1 or tf2
    program_name: str
    schema: Schema

    @abc.abstractmethod
    def read(self, table: str, keys: Sequence[Key], pipe: int | None = None) -> list[TableEntry]:
        """The entries of `keys`, in order. A missing entry is an error, unless `keys` has one key: then []."""

    @abc.abstractmethod
    def read_all(self, table: str) -> list[tuple[Key, TableEntry]]: ...

    @abc.abstractmethod
    def read_default(self, table: str, pipe: int | None = None) -> TableEntry:
        """The default entry; an empty TableEntry if the table has no default entry."""

    @abc.abstractmethod
    def add_or_modify(self, table: str, key: Key, row: TableEntry) -> None: ...

    @abc.abstractmethod
    def modify(self, table: str, key: Key, row: TableEntry, pipe: int | None = None) -> None:
        """Sets the fields that `row` has, in an existing entry; the entry's other fields stay."""

    @abc.abstractmethod
    def modify_default(self, table: str, row: TableEntry, pipe: int | None = None) -> None: ...

    @abc.abstractmethod
    def reset(self, table: str, key: Key, pipe: int | None = None) -> None:
        """Restores the values that the SDE gives the entry at its start."""

    @abc.abstractmethod
    def delete(self, table: str, key: Key) -> None: ...

    @abc.abstractmethod
    def bound(self) -> AbstractContextManager[None]:
        """Inside, only this client owns the program. SwitchError if another client owns it."""

    @abc.abstractmethod
    def close(self) -> None: ...


def only_row(rows: Sequence[TableEntry], table: str, key: Key) -> TableEntry:
    """The only row. SwitchError if the entry does not exist."""
    if not rows:
        raise SwitchError(f"table {table}, key {dict(key)}: there is no such entry")
    return rows[0]
