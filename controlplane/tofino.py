# SPDX-License-Identifier: MIT
"""Tofino through BF Runtime: our program's tables, and the SDE's for ports, mirror sessions and the traffic manager.

Ingress cannot see the queue, so the traffic manager drops: tail-drop's threshold and ecn's hard limit become the
queue's limit in cells. If deflection is on, a refused packet reaches egress, where it gets its postcard.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cached_property

from controlplane import sde_tables
from controlplane.bfrt import DeviceTables, TableEntry, Value
from controlplane.identity import refuse_other_program
from controlplane.policy import Ecn, Policy, TailDrop, Unit
from controlplane.program import ACTIONS, COUNTERS, MIRROR_SESSION, ProgramEntry, Switch
from controlplane.schema import Schema, by_end, short
from controlplane.schema_files import committed_tofino
from controlplane.switch import Capabilities, Count, FrontPanel, ProgramIdentity, Queue, SwitchError
from controlplane.targets import TARGETS
from controlplane.tofino_queues import KBPS, PIPE_SHIFT, ROUNDING, TrafficManager

COPY_BYTES = 108  # a mirrored copy: copy_h (32, p4src/tna/internal_headers.p4) and headers (74), in whole words
SPEEDS_GBPS = (1, 10, 25, 40, 50, 100, 200, 400)
FECS = {"none": "BF_FEC_TYP_NONE", "firecode": "BF_FEC_TYP_FIRECODE", "reed-solomon": "BF_FEC_TYP_REED_SOLOMON"}
SHORT_FECS = {"BF_FEC_TYP_FC": "firecode", "BF_FEC_TYP_RS": "reed-solomon"}  # as some SDEs spell them
MOST_RATE = 2**32 - 1  # the largest max_rate (uint32), in kbit/s or packets/s
NEGOTIATIONS = {"default": "PM_AN_DEFAULT", "on": "PM_AN_FORCE_ENABLE", "off": "PM_AN_FORCE_DISABLE"}


class TofinoSwitch(Switch):
    """A connection to bf_switchd's BF Runtime through `tables` (bfrt_client.py's, or a test's)."""

    target = "tofino"

    def __init__(self, address: str, tables: DeviceTables) -> None:
        self.address = address
        self._tables = tables

    @cached_property
    def _queues(self) -> TrafficManager:
        with self._naming():
            return TrafficManager(self._tables)

    @cached_property
    def capabilities(self) -> Capabilities:
        return replace(TARGETS["tofino"].capabilities, cell_bytes=self._queues.cell_bytes)

    def close(self) -> None:
        self._tables.close()

    def writing(self) -> AbstractContextManager[None]:
        return self._writing()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._naming():
            binding = self._tables.bound()
            binding.__enter__()
        try:
            yield
        finally:
            binding.__exit__(None, None, None)

    def program(self) -> ProgramIdentity:
        committed, digest = committed_tofino(self._tables.chip)
        alike = committed is not None and used(self._tables.schema) == used(committed)
        identity = ProgramIdentity(self._tables.program_name, digest if alike else "other tables")
        refuse_other_program(self, identity, digest)
        return identity

    @cached_property
    def _names(self) -> dict[str, int]:
        with self._naming():
            rows = self._tables.read_all(sde_tables.PORT_NAMES)
        return {str(key["$PORT_NAME"]): row.number("$DEV_PORT") for key, row in rows}

    def ports(self) -> dict[str, int]:
        return dict(self._names)

    def entries(self, table: str) -> dict[int, ProgramEntry]:
        known = self._tables.schema.table(table)
        with self._naming():
            rows = self._tables.read_all(known.name)
        return {_number(key[known.keys[0].name]): _entry(row) for key, row in rows}

    def default_entry(self, table: str) -> ProgramEntry:
        with self._naming():
            return _entry(self._tables.read_default(self._tables.schema.table(table).name))

    def check_entry(self, table: str, key: int | None, entry: ProgramEntry) -> None:
        with self._naming():
            self._tables.schema.check(self._tables.schema.table(table), key, *entry)

    def write_entry(self, table: str, key: int, entry: ProgramEntry) -> None:
        self.check_entry(table, key, entry)
        known = self._tables.schema.table(table)
        with self._naming():
            self._tables.add_or_modify(known.name, {known.keys[0].name: key}, self._row(table, entry))

    def write_default(self, table: str, entry: ProgramEntry) -> None:
        self.check_entry(table, None, entry)
        with self._naming():
            self._tables.modify_default(self._tables.schema.table(table).name, self._row(table, entry))

    def delete_entry(self, table: str, key: int) -> None:
        known = self._tables.schema.table(table)
        if key in self.entries(table):
            with self._naming():
                self._tables.delete(known.name, {known.keys[0].name: key})

    def mirror_port(self) -> int | None:
        with self._naming():
            rows = self._tables.read(sde_tables.MIRROR, [{"$sid": MIRROR_SESSION}])
        if not rows or not rows[0].fields["$session_enable"] or not rows[0].fields["$ucast_egress_port_valid"]:
            return None
        as_set = rows[0].fields["$direction"], rows[0].number("$max_pkt_len")
        return rows[0].number("$ucast_egress_port") if as_set == ("EGRESS", COPY_BYTES) else None

    def set_mirror_port(self, port: int) -> None:
        settings: dict[str, Value] = {
            "$session_enable": True,
            "$direction": "EGRESS",
            "$ucast_egress_port": port,
            "$ucast_egress_port_valid": True,
            "$max_pkt_len": COPY_BYTES,
        }
        with self._naming():
            self._tables.add_or_modify(sde_tables.MIRROR, {"$sid": MIRROR_SESSION}, TableEntry(settings, "$normal"))

    def postcards(self, port: int) -> int | None:
        """The switch id of the port's postcards; None if the port sends none, or if the traffic manager's stamps are
        not in ns: postcards would have wrong times.
        """
        with self._naming():
            whole = self._queues.stamps_are_whole()
        return super().postcards(port) if whole else None

    def set_postcards(self, port: int, switch_id: int | None) -> None:
        if switch_id is not None:
            with self._naming():
                self._queues.make_stamps_whole()
        super().set_postcards(port, switch_id)

    def threshold_unit(self, arguments: Mapping[str, int]) -> Unit:
        return Unit.CELLS

    def policy(self, port: int) -> Policy:
        """The port's policy. For tail-drop the threshold, for ecn the hard limit, is the queue's limit in force."""
        policy = super().policy(port)
        if not isinstance(policy, TailDrop | Ecn):
            return policy
        with self._naming():
            limit = self._queues.limit_cells(port)
        limit = self._queues.total_cells if limit is None else limit
        return replace(policy, threshold=limit) if isinstance(policy, TailDrop) else replace(policy, hard_limit=limit)

    def check_policy(self, port: int, policy: Policy) -> None:
        super().check_policy(port, policy)
        with self._naming():
            self._queues.check_limit(port, _limit_of(policy))

    def set_policy(self, port: int, policy: Policy) -> None:
        self.check_policy(port, policy)
        policy_owned_limit = isinstance(super().policy(port), TailDrop | Ecn)
        limit = _limit_of(policy)
        super().set_policy(port, policy)
        if limit is not None or policy_owned_limit:
            with self._naming():
                self._queues.set_limit_cells(port, limit)

    def queue(self, port: int) -> Queue:
        """The settings in force. A limit that implements the policy is reported by `policy` instead."""
        policy_owns_limit = isinstance(super().policy(port), TailDrop | Ecn)
        with self._naming():
            rate_bps, rate_pps = self._queues.rate(port)
            return Queue(rate_bps, rate_pps, limit_cells=None if policy_owns_limit else self._queues.limit_cells(port))

    def check_queue(self, port: int, queue: Queue) -> None:
        if queue.limit_packets is not None or queue.limit_bytes is not None:
            raise SwitchError(f"port {port}: {self} limits a queue in cells, not in packets or bytes")
        if queue.rate_bps is not None and queue.rate_pps is not None:
            raise SwitchError(f"port {port}: {self} takes a rate in bit/s or in packets/s, not both")
        for rate, most, unit in (
            (queue.rate_bps, MOST_RATE * KBPS, "bit/s"),
            (queue.rate_pps, MOST_RATE, "packets/s"),
        ):
            if rate is not None and not 0 < rate <= most:
                raise SwitchError(f"port {port}: {self} cannot serve {rate} {unit}; allowed: 1 to {most}")
        with self._naming():
            self._queues.check_limit(port, queue.limit_cells)

    def set_queue(self, port: int, queue: Queue) -> None:
        self.check_queue(port, queue)
        policy_owns_limit = isinstance(super().policy(port), TailDrop | Ecn)
        if policy_owns_limit and queue.limit_cells is not None:
            raise SwitchError(f"port {port}: {self}: the policy sets the queue's limit: give no other limit")
        with self._naming():
            self._queues.set_rate(port, queue.rate_bps, queue.rate_pps)
            if not policy_owns_limit:
                self._queues.set_limit_cells(port, queue.limit_cells)

    def holds(self, requested: Queue, reported: Queue) -> bool:
        """Equal but for the chip's rounding of rates to mantissa and exponent."""
        if replace(requested, rate_bps=None, rate_pps=None) != replace(reported, rate_bps=None, rate_pps=None):
            return False
        pairs = ((requested.rate_bps, reported.rate_bps), (requested.rate_pps, reported.rate_pps))
        return all(r == f or (r is not None and f is not None and abs(r - f) <= r // ROUNDING + 1) for r, f in pairs)

    def deflection(self) -> dict[int, int]:
        pipes = sorted({port >> PIPE_SHIFT for port in self.ports().values()})
        with self._naming():
            ports = {pipe: self._queues.deflected_to(pipe) for pipe in pipes}
        return {pipe: port for pipe, port in ports.items() if port is not None}

    def set_deflection(self, port: int) -> None:
        with self._naming():
            self._queues.deflect_to(port)

    def read_counter(self, name: str, cells: Iterable[int]) -> dict[int, Count]:
        table = self._tables.schema.counter(name).name
        wanted = list(cells)
        with self._naming():
            rows = self._tables.read(table, [{"$COUNTER_INDEX": cell} for cell in wanted])
            counts = [
                Count(row.number("$COUNTER_SPEC_PKTS"), _number(row.fields.get("$COUNTER_SPEC_BYTES", 0)))
                for row in rows
            ]
        return {cell: count for cell, count in zip(wanted, counts, strict=True) if count.packets}

    def target_counters(self) -> dict[str, int]:
        set_up = {name: port for name, port in self.ports().items() if self.front_panel(port) is not None}
        with self._naming():
            return self._queues.counters(set_up)

    def front_panel(self, port: int) -> FrontPanel | None:
        with self._naming():
            rows = self._tables.read(sde_tables.PORT, [{"$DEV_PORT": port}])
        if not rows:
            return None
        fields = rows[0].fields
        fec, negotiation = str(fields["$FEC"]), str(fields["$AUTO_NEGOTIATION"])
        return FrontPanel(
            speed_bps=_speed_bps(str(fields["$SPEED"])),
            fec=SHORT_FECS.get(fec) or _named(FECS, fec),
            auto_negotiation=_named(NEGOTIATIONS, negotiation),
            enabled=bool(fields["$PORT_ENABLE"]),
        )

    def set_front_panel(self, port: int, settings: FrontPanel | None) -> None:
        key = {"$DEV_PORT": port}
        if settings is None:
            with self._naming():
                self._tables.delete(sde_tables.PORT, key)
            return
        gbps, rest = divmod(settings.speed_bps, 10**9)
        if rest or gbps not in SPEEDS_GBPS:
            speeds = ", ".join(f"{speed}gbit" for speed in SPEEDS_GBPS)
            raise SwitchError(f"port {port}: {self} has no speed of {settings.speed_bps} bit/s; allowed: {speeds}")
        row = TableEntry(
            {
                "$SPEED": f"BF_SPEED_{gbps}G",
                "$FEC": FECS[settings.fec],
                "$AUTO_NEGOTIATION": NEGOTIATIONS[settings.auto_negotiation],
                "$PORT_ENABLE": settings.enabled,
            }
        )
        with self._naming():
            self._tables.add_or_modify(sde_tables.PORT, key, row)

    def _row(self, table: str, entry: ProgramEntry) -> TableEntry:
        full, _ = self._tables.schema.action(self._tables.schema.table(table), entry.action)
        return TableEntry(dict(entry.arguments), full)

    def unit_arguments(self, unit: Unit) -> Mapping[str, int]:
        return {**super().unit_arguments(unit), "in_bytes": 0}

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Names this switch in every SwitchError."""
        try:
            yield
        except SwitchError as error:
            raise SwitchError(str(error) if str(self) in str(error) else f"{self}: {error}") from None


def connect(address: str) -> TofinoSwitch:
    from controlplane.bfrt_client import BfrtTables

    return TofinoSwitch(address, BfrtTables(address))


def used(schema: Schema) -> dict[str, object]:
    """The parts of a program that the control plane uses, with all widths. A program with equal parts is ours."""
    uses: dict[str, object] = {}
    for name, actions in ACTIONS.items():
        table = by_end(schema.tables, name)
        if table is not None:
            known = schema.tables[table]
            short_named = {short(action): arguments for action, arguments in known.actions.items()}
            uses[name] = known.keys, {action: short_named.get(action) for action in actions}
    for name in (*COUNTERS, "depth_histogram"):
        uses[name] = by_end(schema.counters, name) is not None
    return uses


def _limit_of(policy: Policy) -> int | None:
    """The depth from which the traffic manager drops. None: the traffic manager has no part in this policy."""
    if isinstance(policy, TailDrop):
        return policy.threshold
    return policy.hard_limit if isinstance(policy, Ecn) else None


def _entry(row: TableEntry) -> ProgramEntry:
    if row.action is None:
        return ProgramEntry("NoAction", {})
    return ProgramEntry(short(row.action), {name: _number(value) for name, value in row.fields.items()})


def _number(value: Value) -> int:
    assert isinstance(value, int)
    return value


def _speed_bps(name: str) -> int:
    """BF_SPEED_100G and its variants; 0 for BF_SPEED_NONE."""
    digits = "".join(letter for letter in name.removeprefix("BF_SPEED_").split("G")[0] if letter.isdigit())
    return int(digits or 0) * 10**9


def _named(names: Mapping[str, str], value: str) -> str:
    return next((name for name, known in names.items() if known == value), value)
