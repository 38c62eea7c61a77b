# SPDX-License-Identifier: MIT
"""Tofino's traffic manager: a port's queue, its limit, shaping and drops, and the deflection of refused packets.

The SDE's tables of queues are looked up by pipe, port group and queue of the group, not by port. Groups, cell size and
limits are read from the switch. The chip rounds rates to mantissa and exponent; we read the rounded rate back.
"""

from __future__ import annotations

from typing import NamedTuple

from controlplane import sde_tables
from controlplane.bfrt import DeviceTables, Key, TableEntry, Value, only_row
from controlplane.switch import SwitchError
from lib.frames import IFG_BYTES

PIPE_SHIFT = 7  # a device port: the pipe, then 7 bits of port in the pipe (bf-drivers, include/dvm/bf_drv_intf.h)
QUEUE = 0  # our program uses the port's first queue
KBPS = 1000  # one unit of max_rate in sched_shaping's unit BPS, in bit/s
STATIC = "DISABLE"  # a value of dynamic_baf: pool_max_cells is a fixed limit, whatever part of the pool is free
ROUNDING = 256  # rates are rounded by less than 1/256: mantissas have 10 bits


class QueuePlace(NamedTuple):
    """The pipe of a port's queue, and the queue's key in the pipe's tables."""

    pipe: int
    key: Key


class TrafficManager:
    """The queues of the device behind `tables`."""

    def __init__(self, tables: DeviceTables) -> None:
        self._tables = tables
        configuration = tables.read_default(self._name(sde_tables.TM))
        self.cell_bytes = configuration.number("cell_size_bytes")
        self.total_cells = configuration.number("total_cells")
        self._places: dict[int, QueuePlace] = {}

    def place(self, port: int) -> QueuePlace:
        """Cached: the mapping changes only when the operator of the device sets up the port again."""
        if port not in self._places:
            self._places[port] = self._find(port)
        return self._places[port]

    def limit_cells(self, port: int) -> int | None:
        """The queue's hard limit. None: the limit varies with the free cells of the pool, or tail drop is disabled."""
        row = self._buffer(port)
        if not row.fields["tail_drop_enable"]:
            return None
        if row.action == "buffer_only":
            return row.number("guaranteed_cells")
        if row.fields["dynamic_baf"] != STATIC:
            return None
        return row.number("guaranteed_cells") + row.number("pool_max_cells")

    def set_limit_cells(self, port: int, limit: int | None) -> None:
        """Sets a hard limit: guaranteed cells, and the rest from the shared pool. None: the SDE's default."""
        place, table = self.place(port), self._name(sde_tables.TM_QUEUE_BUFFER)
        if limit is None:
            self._tables.reset(table, place.key, place.pipe)
            return
        current = self._buffer(port)
        guaranteed = min(current.number("guaranteed_cells"), limit)
        row = TableEntry(
            {
                "guaranteed_cells": guaranteed,
                "pool_id": current.fields.get("pool_id", "EG_APP_POOL_0"),
                "pool_max_cells": limit - guaranteed,
                "dynamic_baf": STATIC,
                "hysteresis_cells": 0,
                "tail_drop_enable": True,
            },
            "shared_pool",
        )
        self._tables.modify(table, place.key, row, place.pipe)

    def check_limit(self, port: int, limit: int | None) -> None:
        if limit is not None and not 0 < limit <= self.total_cells:
            raise SwitchError(f"port {port}: a limit of {limit} cells; the buffer has {self.total_cells}")

    def rate(self, port: int) -> tuple[int | None, int | None]:
        """The rate in force, (bit/s, packets/s): one is None, or both if the queue has no bound."""
        place = self.place(port)
        name = self._name(sde_tables.TM_QUEUE_SCHEDULING)
        if not only_row(self._tables.read(name, [place.key], place.pipe), name, place.key).fields["max_rate_enable"]:
            return None, None
        name = self._name(sde_tables.TM_QUEUE_SHAPING)
        row = only_row(self._tables.read(name, [place.key], place.pipe), name, place.key)
        if row.fields["unit"] == "PPS":
            return None, row.number("max_rate")
        return row.number("max_rate") * KBPS, None

    def set_rate(self, port: int, rate_bps: int | None, rate_pps: int | None) -> None:
        place = self.place(port)
        limited = rate_bps is not None or rate_pps is not None
        if rate_bps is not None:
            gap = TableEntry({"packet_ifg_compensation": IFG_BYTES})
            self._tables.modify_default(self._name(sde_tables.TM_PIPE_SHAPING), gap, place.pipe)
        if limited:
            unit = "BPS" if rate_bps is not None else "PPS"
            value = rate_pps if rate_bps is None else max(1, round(rate_bps / KBPS))
            assert value is not None
            shaping = TableEntry({"unit": unit, "provisioning": "MIN_ERROR", "max_rate": value})
            self._tables.modify(self._name(sde_tables.TM_QUEUE_SHAPING), place.key, shaping, place.pipe)
        enabled = TableEntry({"max_rate_enable": limited})
        self._tables.modify(self._name(sde_tables.TM_QUEUE_SCHEDULING), place.key, enabled, place.pipe)

    def counters(self, ports: dict[str, int]) -> dict[str, int]:
        """Drops and cells of each port's queue, and drops of the mirror buffer of each pipe."""
        counts = {}
        name = self._name(sde_tables.TM_QUEUE_COUNTERS)
        for port in ports.values():
            place = self.place(port)
            row = only_row(self._tables.read(name, [place.key], place.pipe), name, place.key)
            counts[f"port.{port}.queue_drops"] = row.number("drop_count_packets")
            counts[f"port.{port}.queue_cells"] = row.number("usage_cells")
            counts[f"port.{port}.queue_max_cells"] = row.number("watermark_cells")
        name = self._name(sde_tables.TM_MIRROR_COUNTERS)
        for pipe in sorted({port >> PIPE_SHIFT for port in ports.values()}):
            counts[f"pipe.{pipe}.mirror_drops"] = self._tables.read_default(name, pipe).number("drop_count_packets")
        return counts

    def deflected_to(self, pipe: int) -> int | None:
        """The port to which the pipe deflects the packets that its queues refuse. None: no deflection."""
        row = self._tables.read_default(self._name(sde_tables.TM_PIPE), pipe)
        return row.number("mirror_drop_dev_port") if row.fields.get("mirror_drop_enable", True) else None

    def deflect_to(self, port: int) -> None:
        """Deflects refused packets of all queues in this port's pipe to the first queue of `port`."""
        place = self.place(port)
        settings: dict[str, Value] = {
            "mirror_drop_pg_id": place.key["pg_id"],
            "mirror_drop_pg_queue": place.key["pg_queue"],
        }
        if self._tables.chip in sde_tables.CHIPS_WITH_A_SWITCH_FOR_DEFLECTION:
            settings["mirror_drop_enable"] = True
        self._tables.modify_default(self._name(sde_tables.TM_PIPE), TableEntry(settings), place.pipe)

    def stamps_are_whole(self) -> bool:
        """Whether the traffic manager stamps packets in ns, as p4src/tna/queue_time.p4 needs."""
        return self._tables.read_default(self._name(sde_tables.TM)).number("timestamp_shift_bits") == 0

    def make_stamps_whole(self) -> None:
        if not self.stamps_are_whole():
            self._tables.modify_default(self._name(sde_tables.TM), TableEntry({"timestamp_shift_bits": 0}))

    def _find(self, port: int) -> QueuePlace:
        pipe, name, key = port >> PIPE_SHIFT, self._name(sde_tables.TM_PORT), {"dev_port": port}
        row = only_row(self._tables.read(name, [key]), name, key)
        queues = dict(zip(row.numbers("ingress_qid_map"), row.numbers("egress_qid_queues"), strict=False))
        if QUEUE not in queues:
            raise SwitchError(f"table {name}, key {key}: the port has no queue {QUEUE}")
        queue: Key = {"pg_id": row.number("pg_id"), "pg_queue": queues[QUEUE]}
        name = self._name(sde_tables.TM_QUEUE_MAP)
        mapped = only_row(self._tables.read(name, [queue], pipe), name, queue).number("dev_port")
        if mapped != port:
            raise SwitchError(f"table {name}, key {dict(queue)}, pipe {pipe}: is port {mapped}'s, not port {port}'s")
        return QueuePlace(pipe, queue)

    def _buffer(self, port: int) -> TableEntry:
        place, name = self.place(port), self._name(sde_tables.TM_QUEUE_BUFFER)
        return only_row(self._tables.read(name, [place.key], place.pipe), name, place.key)

    def _name(self, table: str) -> str:
        return sde_tables.on_chip(table, self._tables.chip)
