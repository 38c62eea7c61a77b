# SPDX-License-Identifier: MIT
"""A Tofino's tables in memory: our program's tables from the committed bf-rt.json, the fixed tables from sde_types.py.
Every table, key, field, action and width is checked. Rates and hysteresis are rounded as the chip is said to round.

This is not a model of the chip: nothing is forwarded and no queue fills.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from controlplane import sde_tables
from controlplane.bfrt import DeviceTables, Key, TableEntry, Value
from controlplane.program import PROGRAM
from controlplane.schema_files import committed_tofino
from controlplane.switch import SwitchError
from controlplane.tests.sde_types import FIXED_TABLES, Fixed

PORTS = {"1/0": 1, "1/1": 2, "1/2": 3, "17/0": 128 + 8}
INTERNAL_PORT = 100  # not on the front panel
CELLS = {"tf1": (80, 277_760), "tf2": (176, 422_400)}  # (bytes of a cell, cells of the buffer)
PORTS_PER_GROUP, QUEUES_PER_PORT = 4, 8
BEFORE_ANYTHING = {
    "queue_policy": "unwatched",
    "postcards": "silent",
    "collector": "NoAction",
    "forward": "unknown_host",
}
HashableKey = tuple[tuple[str, Value], ...]


class Device:
    """A device's state. Tests may change any of it."""

    def __init__(self, chip: str) -> None:
        schema, _ = committed_tofino(chip)
        assert schema is not None, "no bf-rt.json is committed for it"
        self.chip, self.schema, self.program_name = chip, schema, PROGRAM
        self.owner: object = None
        self.writes = 0
        self.entries: dict[tuple[str, int | None], dict[HashableKey, TableEntry]] = {}
        self.defaults: dict[tuple[str, int | None], TableEntry] = {}
        cell_bytes, total = CELLS[chip]
        self._default(sde_tables.TM, None, timestamp_shift_bits=0, cell_size_bytes=cell_bytes, total_cells=total)
        for pipe in {port >> 7 for port in PORTS.values()}:
            at: dict[str, Value] = dict.fromkeys(
                ("mirror_drop_pg_id", "mirror_drop_pg_queue", "mirror_drop_queue_nr"), 0
            )
            off: dict[str, Value] = {"mirror_drop_enable": False} if chip == "tf2" else {}
            self._default(sde_tables.TM_PIPE, pipe, **at, **off, mirror_drop_dev_port=pipe << 7)
            self._default(sde_tables.TM_PIPE_SHAPING, pipe, packet_ifg_compensation=0)
            self._default(sde_tables.TM_MIRROR_COUNTERS, pipe, drop_count_packets=0)
        for name, port in PORTS.items():
            self._entry(sde_tables.PORT_NAMES, None, {"$PORT_NAME": name}, {"$DEV_PORT": port})
            self._add_port(port)
        self._add_port(INTERNAL_PORT)

    def _add_port(self, port: int) -> None:
        """Each queue of the port gets different numbers in the port and in the port group. So code that confuses
        queue_nr with pg_queue fails.
        """
        pipe, within = port >> 7, port & 127
        group, place = divmod(within, PORTS_PER_GROUP)
        queues = [place * QUEUES_PER_PORT + (queue + 3) % QUEUES_PER_PORT for queue in range(QUEUES_PER_PORT)]
        mapping: dict[str, Value] = {"ingress_qid_map": list(range(QUEUES_PER_PORT)), "egress_qid_queues": queues}
        self._entry(sde_tables.TM_PORT, None, {"dev_port": port}, {"pg_id": group, **mapping})
        for number, queue in enumerate(queues):
            key = {"pg_id": group, "pg_queue": queue}
            self._entry(sde_tables.TM_QUEUE_MAP, pipe, key, {"dev_port": port, "queue_nr": number})
            self._entry(sde_tables.TM_QUEUE_BUFFER, pipe, key, *_buffer_at_start())
            self._entry(sde_tables.TM_QUEUE_SCHEDULING, pipe, key, {"max_rate_enable": False})
            shaping: dict[str, Value] = {"unit": "BPS", "provisioning": "UPPER", "max_rate": 0}
            self._entry(sde_tables.TM_QUEUE_SHAPING, pipe, key, shaping)
            counts: dict[str, Value] = dict.fromkeys(("drop_count_packets", "usage_cells", "watermark_cells"), 0)
            self._entry(sde_tables.TM_QUEUE_COUNTERS, pipe, key, counts)

    def _entry(
        self, table: str, pipe: int | None, key: Key, data: Mapping[str, Value], action: str | None = None
    ) -> None:
        rows = self.entries.setdefault((sde_tables.on_chip(table, self.chip), pipe), {})
        rows[_hashable(key)] = TableEntry(data, action)

    def _default(self, table: str, pipe: int | None, **data: Value) -> None:
        self.defaults[sde_tables.on_chip(table, self.chip), pipe] = TableEntry(data)


class MemoryTables(DeviceTables):
    """One client of a device."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.chip, self.program_name, self.schema = device.chip, device.program_name, device.schema

    def close(self) -> None:
        pass

    @contextmanager
    def bound(self) -> Iterator[None]:
        if self.device.owner is not None:
            raise SwitchError("another client is writing to it")
        self.device.owner = self
        try:
            yield
        finally:
            self.device.owner = None

    def read(self, table: str, keys: Sequence[Key], pipe: int | None = None) -> list[TableEntry]:
        for key in keys:
            self._check_key(table, key)
        array = self.schema.counters.get(table)
        if array is not None:
            return [self._counter(table, key) for key in keys]
        rows = self.device.entries.get((table, pipe), {})
        return [rows[_hashable(key)] for key in keys if _hashable(key) in rows]

    def read_all(self, table: str) -> list[tuple[Key, TableEntry]]:
        self._fixed(table)
        return [(dict(key), row) for key, row in self.device.entries.get((table, None), {}).items()]

    def read_default(self, table: str, pipe: int | None = None) -> TableEntry:
        fixed = self._fixed(table)
        if fixed is None and (table, pipe) not in self.device.defaults:
            full, _ = self.schema.action(self.schema.table(table), BEFORE_ANYTHING[table.rpartition(".")[2]])
            return TableEntry({}, full)
        if (table, pipe) not in self.device.defaults:
            raise SwitchError(f"table {table}, default: no such pipe, {pipe}")
        return self.device.defaults[table, pipe]

    def add_or_modify(self, table: str, key: Key, row: TableEntry) -> None:
        self._check_key(table, key)
        self._check_row(table, row)
        self.device.writes += 1
        rows = self.device.entries.setdefault((table, None), {})
        before = rows.get(_hashable(key), TableEntry())
        rows[_hashable(key)] = TableEntry({**before.fields, **row.fields}, row.action)

    def modify(self, table: str, key: Key, row: TableEntry, pipe: int | None = None) -> None:
        self._check_key(table, key)
        self._check_row(table, row)
        rows = self.device.entries.get((table, pipe), {})
        if _hashable(key) not in rows:
            raise SwitchError(f"table {table}, key {dict(key)}, pipe {pipe}: NOT_FOUND")
        self.device.writes += 1
        before = rows[_hashable(key)]
        rows[_hashable(key)] = TableEntry({**before.fields, **_rounded(row.fields)}, row.action or before.action)

    def modify_default(self, table: str, row: TableEntry, pipe: int | None = None) -> None:
        self._check_row(table, row)
        self.device.writes += 1
        before = self.device.defaults.get((table, pipe), TableEntry())
        fields = {**before.fields, **row.fields} if self._fixed(table) else row.fields
        if table.endswith("tm.pipe.cfg"):
            fields = {**fields, "mirror_drop_dev_port": self._port_of(fields, pipe)}
        self.device.defaults[table, pipe] = TableEntry(fields, row.action)

    def reset(self, table: str, key: Key, pipe: int | None = None) -> None:
        self._check_key(table, key)
        if not table.endswith("queue.buffer"):
            raise SwitchError(f"table {table}: only queue buffers are reset here")
        self.device.writes += 1
        data, action = _buffer_at_start()
        self.device.entries[table, pipe][_hashable(key)] = TableEntry(data, action)

    def delete(self, table: str, key: Key) -> None:
        self._check_key(table, key)
        self.device.writes += 1
        self.device.entries.get((table, None), {}).pop(_hashable(key), None)

    def _port_of(self, fields: Mapping[str, Value], pipe: int | None) -> Value:
        table = sde_tables.on_chip(sde_tables.TM_QUEUE_MAP, self.chip)
        key = {"pg_id": fields["mirror_drop_pg_id"], "pg_queue": fields["mirror_drop_pg_queue"]}
        rows = self.read(table, [key], pipe)
        return rows[0].fields["dev_port"] if rows else 0

    def _counter(self, table: str, key: Key) -> TableEntry:
        (cell,) = key.values()
        size = self.schema.counters[table].size
        if not isinstance(cell, int) or size is None or not 0 <= cell < size:
            raise SwitchError(f"table {table}, key {dict(key)}: INVALID_ARGUMENT")
        nothing = TableEntry({"$COUNTER_SPEC_PKTS": 0, "$COUNTER_SPEC_BYTES": 0})
        return self.device.entries.get((table, None), {}).get(_hashable(key), nothing)

    def _fixed(self, table: str) -> Fixed | None:
        """The SDE's table of that name; None for a table of our program. Raises SwitchError if neither has the name."""
        for name, fixed in FIXED_TABLES.items():
            if sde_tables.on_chip(name, self.chip) == table:
                return fixed
        if table in self.schema.tables or table in self.schema.counters:
            return None
        raise SwitchError(f"no table {table}")

    def _check_key(self, table: str, key: Key) -> None:
        fixed = self._fixed(table)
        if fixed is not None:
            _check_fields(table, fixed.keys, key, whole=True)
        elif table in self.schema.counters:
            _check_fields(table, {"$COUNTER_INDEX": "uint32"}, key, whole=True)
        else:
            names = {field.name: f"uint{field.bits}" for field in self.schema.tables[table].keys}
            _check_fields(table, names, key, whole=True)

    def _check_row(self, table: str, row: TableEntry) -> None:
        fixed = self._fixed(table)
        if fixed is None:
            arguments = self.schema.tables[table].actions[row.action or ""]
            _check_fields(table, {field.name: f"uint{field.bits}" for field in arguments}, row.fields, whole=True)
            return
        known = {**fixed.data_on(self.chip), **fixed.actions.get(row.action or "", {})}
        if row.action is not None and row.action not in fixed.actions:
            raise SwitchError(f"table {table}: no action {row.action}")
        _check_fields(table, known, row.fields, whole=False)


def _check_fields(table: str, known: Mapping[str, str], fields: Mapping[str, Value], whole: bool) -> None:
    for name, value in fields.items():
        kind = known.get(name)
        if kind is None:
            raise SwitchError(f"table {table}: no field {name}; it has {', '.join(known)}")
        width = re.fullmatch(r"uint(\d+)", kind)
        fits = {
            "bool": isinstance(value, bool),
            "string": isinstance(value, str) and bool(value),
        }.get(kind, bool(width) and type(value) is int and 0 <= value < 1 << int(width[1]))  # type: ignore[index]
        if not fits:
            raise SwitchError(f"table {table}: {name} {value!r} is not of type {kind}")
    if whole and set(known) != set(fields):
        raise SwitchError(f"table {table}: needs {', '.join(known)}, got {', '.join(fields)}")


def _buffer_at_start() -> tuple[dict[str, Value], str]:
    data: dict[str, Value] = {"guaranteed_cells": 24, "hysteresis_cells": 32, "tail_drop_enable": True}
    return {**data, "pool_id": "EG_APP_POOL_0", "pool_max_cells": 2000, "dynamic_baf": "80%"}, "shared_pool"


def _rounded(fields: Mapping[str, Value]) -> Mapping[str, Value]:
    """Rounds rates to ten bits of mantissa, and hysteresis down to a multiple of eight cells."""
    rounded = dict(fields)
    rate = rounded.get("max_rate")
    if isinstance(rate, int) and rate >= 1024:
        step = 1 << (rate.bit_length() - 10)
        rounded["max_rate"] = (rate + step // 2) // step * step
    if "hysteresis_cells" in rounded:
        rounded["hysteresis_cells"] = int(str(rounded["hysteresis_cells"])) // 8 * 8
    return rounded


def _hashable(key: Key) -> HashableKey:
    return tuple(sorted(key.items()))  # type: ignore[arg-type]
