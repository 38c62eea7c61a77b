# SPDX-License-Identifier: MIT
"""Tofino's traffic manager: where a port's queue is, its limit and shaping, what it dropped, where that is deflected.

Its tables are keyed by port group and queue of the group within a pipe, not by port. Nothing is assumed: groups, cell
size and limits are read. Rates are rounded to the chip's mantissa and exponent, and read back.
"""

from __future__ import annotations

from typing import NamedTuple

from controlplane import sde_tables
from controlplane.bfrt import Key, Row, Tables, Value, one
from controlplane.switch import SwitchError

PIPE_SHIFT = 7  # a device port is its pipe and 7 bits of the port within (bf-drivers, include/dvm/bf_drv_intf.h)
QUEUE = 0  # of the port: our program uses its first
IFG_BYTES = 20  # preamble and gap: the shaper counts frames with their FCS, and adds this to be on the wire
KBPS = 1000  # sched_shaping's unit BPS
STATIC = "DISABLE"  # dynamic_baf: the queue never grows into the free pool
ROUNDING = 256  # of a rate: mantissas have 10 bits, the coarsest step is less than 1/256


class Place(NamedTuple):
    """Where a port's queue is."""

    pipe: int
    key: Key


class TrafficManager:
    """The queues of the device behind `tables`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        configuration = tables.read_default(self._name(sde_tables.TM))
        self.cell_bytes = configuration.number("cell_size_bytes")
        self.total_cells = configuration.number("total_cells")
        self._places: dict[int, Place] = {}

    def place(self, port: int) -> Place:
        """Asked once: the mapping changes only with the port's set-up, by whoever runs the device."""
        if port not in self._places:
            self._places[port] = self._find(port)
        return self._places[port]

    def limit_cells(self, port: int) -> int | None:
        """The queue's hard limit, None: it may grow into the shared pool, or does not drop itself."""
        row = self._buffer(port)
        if not row.fields["tail_drop_enable"]:
            return None
        if row.action == "buffer_only":
            return row.number("guaranteed_cells")
        if row.fields["dynamic_baf"] != STATIC:
            return None
        return row.number("guaranteed_cells") + row.number("pool_max_cells")

    def hysteresis_cells(self, port: int) -> int:
        return self._buffer(port).number("hysteresis_cells")

    def set_limit_cells(self, port: int, limit: int | None) -> None:
        """A hard limit: what is guaranteed, and the rest of the shared pool. None: as the SDE starts with."""
        place, table = self.place(port), self._name(sde_tables.TM_QUEUE_BUFFER)
        if limit is None:
            self._tables.reset(table, place.key, place.pipe)
            return
        found = self._buffer(port)
        guaranteed = min(found.number("guaranteed_cells"), limit)
        row = Row(
            {
                "guaranteed_cells": guaranteed,
                "pool_id": found.fields.get("pool_id", "EG_APP_POOL_0"),
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
        """(bit/s, packets/s) in force, one of them or none."""
        place = self.place(port)
        name = self._name(sde_tables.TM_QUEUE_SCHEDULING)
        if not one(self._tables.read(name, [place.key], place.pipe), name, place.key).fields["max_rate_enable"]:
            return None, None
        name = self._name(sde_tables.TM_QUEUE_SHAPING)
        row = one(self._tables.read(name, [place.key], place.pipe), name, place.key)
        if row.fields["unit"] == "PPS":
            return None, row.number("max_rate")
        return row.number("max_rate") * KBPS, None

    def set_rate(self, port: int, rate_bps: int | None, rate_pps: int | None) -> None:
        place = self.place(port)
        limited = rate_bps is not None or rate_pps is not None
        if rate_bps is not None:
            gap = Row({"packet_ifg_compensation": IFG_BYTES})
            self._tables.modify_default(self._name(sde_tables.TM_PIPE_SHAPING), gap, place.pipe)
        if limited:
            unit = "BPS" if rate_bps is not None else "PPS"
            value = rate_pps if rate_bps is None else max(1, round(rate_bps / KBPS))
            assert value is not None
            shaping = Row({"unit": unit, "provisioning": "MIN_ERROR", "max_rate": value})
            self._tables.modify(self._name(sde_tables.TM_QUEUE_SHAPING), place.key, shaping, place.pipe)
        enabled = Row({"max_rate_enable": limited})
        self._tables.modify(self._name(sde_tables.TM_QUEUE_SCHEDULING), place.key, enabled, place.pipe)

    def counters(self, ports: dict[str, int]) -> dict[str, int]:
        """Drops and cells of each port's queue, and drops of the mirror's own buffer in each pipe."""
        found = {}
        name = self._name(sde_tables.TM_QUEUE_COUNTERS)
        for port in ports.values():
            place = self.place(port)
            row = one(self._tables.read(name, [place.key], place.pipe), name, place.key)
            found[f"port.{port}.queue_drops"] = row.number("drop_count_packets")
            found[f"port.{port}.queue_cells"] = row.number("usage_cells")
            found[f"port.{port}.queue_max_cells"] = row.number("watermark_cells")
        name = self._name(sde_tables.TM_MIRROR_COUNTERS)
        for pipe in sorted({port >> PIPE_SHIFT for port in ports.values()}):
            found[f"pipe.{pipe}.mirror_drops"] = self._tables.read_default(name, pipe).number("drop_count_packets")
        return found

    def deflected_to(self, pipe: int) -> int | None:
        """The port that the pipe's refused packets come to, None: to none."""
        row = self._tables.read_default(self._name(sde_tables.TM_PIPE), pipe)
        return row.number("mirror_drop_dev_port") if row.fields.get("mirror_drop_enable", True) else None

    def deflect_to(self, port: int) -> None:
        """What queues in this port's pipe refuse comes to egress as if for `port`, whose first queue it takes."""
        place = self.place(port)
        settings: dict[str, Value] = {
            "mirror_drop_pg_id": place.key["pg_id"],
            "mirror_drop_pg_queue": place.key["pg_queue"],
        }
        if "mirror_drop_enable" in sde_tables.FIXED_TABLES[sde_tables.TM_PIPE].data_on(self._tables.chip):
            settings["mirror_drop_enable"] = True
        self._tables.modify_default(self._name(sde_tables.TM_PIPE), Row(settings), place.pipe)

    def stamps_are_whole(self) -> bool:
        """Whether stamps of packets are ns of the pipelines' clock, as p4src/tna/queue_time.p4 needs them."""
        return self._tables.read_default(self._name(sde_tables.TM)).number("timestamp_shift_bits") == 0

    def make_stamps_whole(self) -> None:
        if not self.stamps_are_whole():
            self._tables.modify_default(self._name(sde_tables.TM), Row({"timestamp_shift_bits": 0}))

    def _find(self, port: int) -> Place:
        pipe, name, key = port >> PIPE_SHIFT, self._name(sde_tables.TM_PORT), {"dev_port": port}
        row = one(self._tables.read(name, [key]), name, key)
        queues = dict(zip(row.numbers("ingress_qid_map"), row.numbers("egress_qid_queues"), strict=False))
        if QUEUE not in queues:
            raise SwitchError(f"table {name}, key {key}: the port has no queue {QUEUE}")
        found: Key = {"pg_id": row.number("pg_id"), "pg_queue": queues[QUEUE]}
        name = self._name(sde_tables.TM_QUEUE_MAP)
        mapped = one(self._tables.read(name, [found], pipe), name, found).number("dev_port")
        if mapped != port:
            raise SwitchError(f"table {name}, key {dict(found)}, pipe {pipe}: is port {mapped}'s, not port {port}'s")
        return Place(pipe, found)

    def _buffer(self, port: int) -> Row:
        place, name = self.place(port), self._name(sde_tables.TM_QUEUE_BUFFER)
        return one(self._tables.read(name, [place.key], place.pipe), name, place.key)

    def _name(self, table: str) -> str:
        return sde_tables.on_chip(table, self._tables.chip)
