# SPDX-License-Identifier: MIT
"""A switch in memory, for tests. It forwards nothing. It checks every table, key, action, argument and width against
every committed compilation, and it can lose its connection at any write.

A fake lives as long as the process. Two connections to the same address reach the same fake.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from controlplane.identity import committed_digest, refuse_other_program
from controlplane.program import PROGRAM, ProgramEntry, Switch
from controlplane.schema import Schema
from controlplane.schema_files import committed_bmv2, committed_tofino
from controlplane.sde_tables import CHIPS
from controlplane.switch import Capabilities, Count, ProgramIdentity, Queue, SwitchError
from controlplane.targets import SOFT, TARGETS, Target

TARGETS["fake"] = Target(__name__, "any name", replace(SOFT, name="fake", links=False))


def committed_schemas() -> list[Schema]:
    """The schemas of our program on every target."""
    return [committed_bmv2(), *filter(None, (committed_tofino(chip)[0] for chip in CHIPS))]


@dataclass
class Memory:
    """The state of a fake switch. Tests may change any of it."""

    ports: dict[str, int] = field(default_factory=lambda: {"1": 1, "2": 2, "3": 3})
    program: ProgramIdentity = field(default_factory=lambda: ProgramIdentity(PROGRAM, committed_digest()))
    entries: dict[str, dict[int, ProgramEntry]] = field(default_factory=dict)
    defaults: dict[str, ProgramEntry] = field(default_factory=dict)
    counters: dict[str, dict[int, Count]] = field(default_factory=dict)
    queues: dict[int, Queue] = field(default_factory=dict)
    mirror_port: int | None = None
    writer: str | None = None
    writes: int = 0
    writes_left: int | None = None  # the connection is lost once, after this many writes


MEMORIES: dict[str, Memory] = {}
BEFORE_ANYTHING = {
    "forward": ProgramEntry("unknown_host", {}),
    "queue_policy": ProgramEntry("unwatched", {}),
    "postcards": ProgramEntry("silent", {}),
    "collector": ProgramEntry("NoAction", {}),
}


class FakeSwitch(Switch):
    """A connection to the fake switch named `address`; the first connection makes the switch."""

    target = "fake"

    def __init__(self, address: str) -> None:
        self.address = address
        self.memory = MEMORIES.setdefault(address, Memory())
        self.schemas = committed_schemas()

    @property
    def capabilities(self) -> Capabilities:
        return TARGETS["fake"].capabilities

    def close(self) -> None:
        pass

    def program(self) -> ProgramIdentity:
        refuse_other_program(self, self.memory.program)
        return self.memory.program

    @contextmanager
    def writing(self) -> Iterator[None]:
        if self.memory.writer is not None:
            raise SwitchError(f"{self}: {self.memory.writer} is writing to it; wait for its end")
        self.memory.writer = "another connection"
        try:
            yield
        finally:
            self.memory.writer = None

    def ports(self) -> dict[str, int]:
        return dict(self.memory.ports)

    def entries(self, table: str) -> dict[int, ProgramEntry]:
        self._check_table(table)
        return dict(self.memory.entries.get(table, {}))

    def default_entry(self, table: str) -> ProgramEntry:
        self._check_table(table)
        return self.memory.defaults.get(table, BEFORE_ANYTHING[table])

    def check_entry(self, table: str, key: int | None, entry: ProgramEntry) -> None:
        with self._naming():
            for schema in self.schemas:
                schema.check(schema.table(table), key, *entry)

    def write_entry(self, table: str, key: int, entry: ProgramEntry) -> None:
        self.check_entry(table, key, entry)
        self._written()
        self.memory.entries.setdefault(table, {})[key] = entry

    def write_default(self, table: str, entry: ProgramEntry) -> None:
        self.check_entry(table, None, entry)
        self._written()
        self.memory.defaults[table] = entry

    def delete_entry(self, table: str, key: int) -> None:
        self._check_table(table)
        self._written()
        self.memory.entries.get(table, {}).pop(key, None)

    def mirror_port(self) -> int | None:
        return self.memory.mirror_port

    def set_mirror_port(self, port: int) -> None:
        self._check_port(port)
        self._written()
        self.memory.mirror_port = port

    def queue(self, port: int) -> Queue:
        self._check_port(port)
        return self.memory.queues.get(port, Queue())

    def check_queue(self, port: int, queue: Queue) -> None:
        self._check_port(port)
        if queue.rate_pps is not None or queue.limit_cells is not None:
            raise SwitchError(f"port {port}: {self} takes rates in bits/s and limits in packets or bytes only")

    def set_queue(self, port: int, queue: Queue) -> None:
        self.check_queue(port, queue)
        self._written()
        self.memory.queues[port] = queue

    def read_counter(self, name: str, cells: Iterable[int]) -> dict[int, Count]:
        wanted = set(cells)
        for schema in self.schemas:
            with self._naming():
                size = schema.counter(name).size
            if size is not None and wanted and max(wanted) >= size:
                raise SwitchError(f"{self}: counter {name}, cell {max(wanted)}: not below its size, {size}")
        return {cell: count for cell, count in self.memory.counters.get(name, {}).items() if cell in wanted}

    def target_counters(self) -> dict[str, int]:
        return {"writes": self.memory.writes}

    def _check_table(self, table: str) -> None:
        with self._naming():
            for schema in self.schemas:
                schema.table(table)

    def _check_port(self, port: int) -> None:
        if port not in self.memory.ports.values():
            known = ", ".join(map(str, sorted(self.memory.ports.values())))
            raise SwitchError(f"port {port}: {self} has no such port: {known}")

    def _written(self) -> None:
        memory = self.memory
        if memory.writes_left is not None:
            memory.writes_left -= 1
            if memory.writes_left < 0:
                memory.writes_left = None
                raise SwitchError(f"{self}: lost the connection")
        memory.writes += 1

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Names this switch in every SwitchError."""
        try:
            yield
        except SwitchError as error:
            raise SwitchError(f"{self}: {error}") from None


def connect(address: str) -> FakeSwitch:
    return FakeSwitch(address)
