# SPDX-License-Identifier: MIT
"""BMv2's simple_switch through Thrift: tables, mirror sessions, counters, registers, queue depth and rate.

We use Thrift, because P4Runtime has no call for queues. BMv2 shapes in packets/s. A full queue of BMv2 drops silently,
so thresholds must be below the queue's limit.
"""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path, PurePosixPath

from controlplane import bmv2_client, bmv2_queues
from controlplane.bmv2_requests import Bmv2Requests
from controlplane.identity import committed_digest, refuse_other_program
from controlplane.lock import only_writer
from controlplane.policy import Policy
from controlplane.program import ACTIONS, MIRROR_SESSION, PROGRAM, ProgramEntry, Switch
from controlplane.schema import Field, Schema, short
from controlplane.schema_files import BUILD, from_bmv2
from controlplane.switch import Capabilities, Count, ProgramIdentity, Queue, SwitchError
from controlplane.targets import TARGETS

CONTEXT = 0  # the only context of simple_switch


class Bmv2Switch(Switch):
    """A connection to a running simple_switch at HOST:PORT (its --thrift-port)."""

    target = "bmv2"

    def __init__(
        self, address: str, connection: socket.socket | None = None, program: Path = BUILD / f"{PROGRAM}.json"
    ) -> None:
        """`connection`: an open connection to `address` on another machine. `program`: the JSON of its program."""
        self._json = program
        self.address = ":".join(map(str, bmv2_client.split_address(address)))
        self._client = bmv2_client.connect(self.address, connection)
        self._types = self._client.standard_types

    @property
    def capabilities(self) -> Capabilities:
        return TARGETS["bmv2"].capabilities

    def close(self) -> None:
        self._client.transport.close()

    def writing(self) -> AbstractContextManager[None]:
        return only_writer(self.target, self.address, self._here())

    def program(self) -> ProgramIdentity:
        with self._asking("its program"):
            expected = self._json.read_bytes()
            md5 = hashlib.md5(expected, usedforsecurity=False).digest()
            same = self._client.standard.bm_get_config_md5() == md5
            loaded = None if same else self._client.standard.bm_get_config()
        is_ours = self._json.parent == BUILD
        digest = committed_digest() if is_ours else hashlib.sha256(expected).hexdigest()
        identity = ProgramIdentity(*((PROGRAM, digest) if loaded is None else (_program_name(loaded), "unknown")))
        refuse_other_program(self, identity, digest)
        return identity

    def ports(self) -> dict[str, int]:
        with self._asking("its ports"):
            return {port.iface_name: port.port_num for port in self._client.standard.bm_dev_mgr_show_ports()}

    @cached_property
    def schema(self) -> Schema:
        """The schema of the expected program: `program` refuses a switch that runs another."""
        return from_bmv2(json.loads(self._json.read_text()), self._json.name)

    def make(self, request: str) -> None:
        with self._asking(request):
            self._requests.set([request])

    @cached_property
    def _requests(self) -> Bmv2Requests:
        return Bmv2Requests(self._client, json.loads(self._client.standard.bm_get_config()))

    def entries(self, table: str) -> dict[int, ProgramEntry]:
        return {key: entry for key, (_, entry) in self._rows(table).items()}

    def default_entry(self, table: str) -> ProgramEntry:
        with self._asking(f"table {table}, default"):
            entry = self._client.standard.bm_mt_get_default_entry(CONTEXT, self.schema.table(table).name)
        return self._entry(table, entry)

    def check_entry(self, table: str, key: int | None, entry: ProgramEntry) -> None:
        self._action(table, key, entry)

    def write_entry(self, table: str, key: int, entry: ProgramEntry) -> None:
        known = self.schema.table(table)
        action, data = self._action(table, key, entry)
        handle = self._rows(table).get(key, (None,))[0]
        with self._asking(f"table {table}, key {key:#x}, action {entry.action} {dict(entry.arguments)}"):
            if handle is not None:
                self._client.standard.bm_mt_modify_entry(CONTEXT, known.name, handle, action, data)
                return
            match = self._types.BmMatchParam(
                type=self._types.BmMatchParamType.EXACT,
                exact=self._types.BmMatchParamExact(_bytes(key, known.keys[0])),
            )
            options = self._types.BmAddEntryOptions()
            self._client.standard.bm_mt_add_entry(CONTEXT, known.name, [match], action, data, options)

    def write_default(self, table: str, entry: ProgramEntry) -> None:
        action, data = self._action(table, None, entry)
        with self._asking(f"table {table}, default, action {entry.action} {dict(entry.arguments)}"):
            self._client.standard.bm_mt_set_default_action(CONTEXT, self.schema.table(table).name, action, data)

    def delete_entry(self, table: str, key: int) -> None:
        handle = self._rows(table).get(key, (None,))[0]
        if handle is not None:
            with self._asking(f"table {table}, key {key:#x}, delete"):
                self._client.standard.bm_mt_delete_entry(CONTEXT, self.schema.table(table).name, handle)

    def mirror_port(self) -> int | None:
        types = self._client.simple_switch_types
        with self._asking(f"mirror session {MIRROR_SESSION}"):
            try:
                session = self._client.simple_switch.mirroring_session_get(MIRROR_SESSION)
            except types.InvalidMirroringOperation:
                return None
        return session.port if session.mgid is None else None

    def set_mirror_port(self, port: int) -> None:
        config = self._client.simple_switch_types.MirroringSessionConfig(port=port)
        with self._asking(f"mirror session {MIRROR_SESSION}, port {port}"):
            self._client.simple_switch.mirroring_session_add(MIRROR_SESSION, config)

    def queue(self, port: int) -> Queue:
        """The settings that this control plane last made: BMv2 cannot report them (bmv2_queues.py)."""
        with self._asking(f"queue of port {port}"):
            return self._notes.read(port)

    def check_queue(self, port: int, queue: Queue) -> None:
        if queue.rate_bps is not None or queue.limit_bytes is not None or queue.limit_cells is not None:
            raise SwitchError(f"port {port}: {self} takes rates in packets/s and limits in packets only")
        if port not in self.ports().values():
            raise SwitchError(f"port {port}: {self} has no such port: {', '.join(map(str, self.ports().values()))}")
        limit = _limit(queue)
        if not 0 < limit <= bmv2_queues.UNBOUNDED_PACKETS:
            raise SwitchError(f"port {port}: {self}: a limit of {limit} packets: 1 to {bmv2_queues.UNBOUNDED_PACKETS}")
        if queue.rate_pps is not None and not 0 < queue.rate_pps < 10**9:
            raise SwitchError(f"port {port}: {self}: a rate of {queue.rate_pps} packets/s: 1 to {10**9 - 1}")

    def set_queue(self, port: int, queue: Queue) -> None:
        self.check_queue(port, queue)
        limit, rate = _limit(queue), queue.rate_pps or 0
        with self._asking(f"queue of port {port}, {limit} packets, {rate or 'no bound of'} packets/s"):
            self._notes.forget(port)  # first: if a call below fails, no note of the old settings remains
            self._client.simple_switch.set_egress_queue_depth(port, limit)
            self._client.simple_switch.set_egress_queue_rate(port, rate)
            self._notes.write(port, limit, rate)

    def silent_drops(self, policy: Policy, queue: Queue) -> str:
        return super().silent_drops(policy, queue) or bmv2_queues.miscounted_drops(policy, queue)

    def read_counter(self, name: str, cells: Iterable[int]) -> dict[int, Count]:
        full = self.schema.counter(name).name
        with self._asking(f"counter {name}"):
            values = {cell: self._client.standard.bm_counter_read(CONTEXT, full, cell) for cell in cells}
        return {cell: Count(value.packets, value.bytes) for cell, value in values.items() if value.packets}

    def target_counters(self) -> dict[str, int]:
        """BMv2 counts no drops. A packet that our program admitted and that did not depart is queued or was dropped."""
        counts = {}
        if self._json.parent == BUILD:
            admitted, departed = self.register("admitted_packets"), self.register("departed_packets")
            for port in self.ports().values():
                counts[f"port.{port}.queued_or_lost_packets"] = (admitted[port] - departed[port]) % 2**32
        elapsed_us, since_1970_us = self.clock_us()
        return {**counts, "elapsed_us": elapsed_us, "since_1970_us": since_1970_us}

    def register(self, name: str) -> list[int]:
        """All cells of a register."""
        array = self.schema.register(name)
        with self._asking(f"register {name}"):
            values = self._client.standard.bm_register_read_all(CONTEXT, array.name)
        return [value % (1 << array.bits) for value in values]

    def set_register(self, name: str, index: int, value: int) -> None:
        array = self.schema.register(name)
        if refusal := Field("value", array.bits).refusal(value):
            raise SwitchError(f"{self}: register {name}, index {index}: {refusal}")
        with self._asking(f"register {name}, index {index}, value {value}"):
            self._client.standard.bm_register_write(CONTEXT, array.name, index, value)

    def reset(self) -> None:
        """Clears the tables of program.ACTIONS and all registers and counters, and deletes the mirror session of
        postcards. Queue settings stay.

        bm_reset_state would also delete the program's constant entries.
        """
        standard = self._client.standard
        with self._asking("reset"):
            for table in ACTIONS:
                standard.bm_mt_clear_entries(CONTEXT, self.schema.table(table).name, True)
            for register in self.schema.registers.values():
                standard.bm_register_reset(CONTEXT, register.name)
            for counter in self.schema.counters.values():
                standard.bm_counter_reset_all(CONTEXT, counter.name)
        if self.mirror_port() is not None:
            with self._asking(f"mirror session {MIRROR_SESSION}, delete"):
                self._client.simple_switch.mirroring_session_delete(MIRROR_SESSION)

    def clock_us(self) -> tuple[int, int]:
        """(us since simple_switch started, as in its stamps; us since 1970), read one after the other."""
        with self._asking("its clock"):
            return (
                self._client.simple_switch.get_time_elapsed_us(),
                self._client.simple_switch.get_time_since_epoch_us(),
            )

    @property
    def _notes(self) -> bmv2_queues.Notes:
        return bmv2_queues.Notes(self._client.simple_switch, self._client.simple_switch_types)

    def _rows(self, table: str) -> dict[int, tuple[int, ProgramEntry]]:
        """Key -> (BMv2's handle, entry)."""
        with self._asking(f"table {table}"):
            rows = self._client.standard.bm_mt_get_entries(CONTEXT, self.schema.table(table).name)
        return {
            int.from_bytes(row.match_key[0].exact.key, "big"): (row.entry_handle, self._entry(table, row.action_entry))
            for row in rows
        }

    def _entry(self, table: str, action_entry: object) -> ProgramEntry:
        name, data = getattr(action_entry, "action_name", None), getattr(action_entry, "action_data", None) or []
        if name is None:
            return ProgramEntry("NoAction", {})
        _, arguments = self.schema.action(self.schema.table(table), name)
        arguments_and_values = zip((argument.name for argument in arguments), data, strict=True)
        return ProgramEntry(
            short(name), {argument: int.from_bytes(value, "big") for argument, value in arguments_and_values}
        )

    def _action(self, table: str, key: int | None, entry: ProgramEntry) -> tuple[str, list[bytes]]:
        known = self.schema.table(table)
        try:
            values = self.schema.check(known, key, *entry)
        except SwitchError as error:
            raise SwitchError(f"{self}: {error}") from None
        name, arguments = self.schema.action(known, entry.action)
        return name, [_bytes(value, argument) for value, argument in zip(values, arguments, strict=True)]

    @contextmanager
    def _asking(self, request: str) -> Iterator[None]:
        """Turns the exceptions of Thrift calls into SwitchErrors of one line that name the request."""
        from thrift.Thrift import TException

        try:
            yield
        except (TException, OSError, EOFError) as error:
            code = getattr(error, "code", None)
            kinds = [getattr(self._types, name) for name in dir(self._types) if name.endswith("OperationErrorCode")]
            if code is None:
                raise SwitchError(f"{self}: {request}: lost the connection ({str(error) or 'closed'})") from error
            kind_name = type(error).__name__.removeprefix("Invalid") + "ErrorCode"
            names: dict[int, str] = next((kind._VALUES_TO_NAMES for kind in kinds if kind.__name__ == kind_name), {})
            raise SwitchError(f"{self}: {request}: {names.get(code, f'error {code}')}") from error

    def _here(self) -> str:
        """The address and our network namespace: 127.0.0.1 in another namespace is another switch."""
        return f"{bmv2_client.resolved(self.address)} in {Path('/proc/self/ns/net').readlink()}"


def connect(address: str, program: Path = BUILD / f"{PROGRAM}.json") -> Bmv2Switch:
    return Bmv2Switch(address, program=program)


def _program_name(config: str) -> str:
    """The stem of the P4 file's path. p4c writes the path into the JSON."""
    try:
        return PurePosixPath(json.loads(config)["program"]).stem
    except (ValueError, KeyError, TypeError):
        return "?"


def _limit(queue: Queue) -> int:
    return bmv2_queues.UNBOUNDED_PACKETS if queue.limit_packets is None else queue.limit_packets


def _bytes(value: int, field: Field) -> bytes:
    return value.to_bytes((field.bits + 7) // 8, "big")
