# SPDX-License-Identifier: MIT
"""The Tofino SDE's fixed tables that the control plane uses: ports, mirror sessions, traffic manager.

Names and types come from p4lang/open-p4studio 1f97778f, pkgsrc/bf-drivers/src/bf_rt/. An SDE installs the same files in
$SDE_INSTALL/share/bf_rt_shared; a test compares them with this module. CHIP stands for tf1 or tf2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

CHIPS = ("tf1", "tf2")


@dataclass(frozen=True)
class Fixed:
    """A table: the file that defines it, its keys and data, and the data of the actions that we use.

    `also`: data that only one of the chips has.
    """

    file: str
    keys: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    actions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    also: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def data_on(self, chip: str) -> dict[str, str]:
        return {**self.data, **self.also.get(chip, {})}


_QUEUE = {"pg_id": "uint8", "pg_queue": "uint8"}
_PORT_FILE = "bf_rt_port/bf_rt_port_CHIP.json"
_TM_FILE = "bf_rt_tm/bf_rt_tm_CHIP.json"

PORT = "$PORT"
PORT_NAMES = "$PORT_STR_INFO"
MIRROR = "$mirror.cfg"
TM = "CHIP.tm.cfg"
TM_PORT = "CHIP.tm.port.cfg"
TM_PIPE = "CHIP.tm.pipe.cfg"
TM_PIPE_SHAPING = "CHIP.tm.pipe.sched_cfg"
TM_QUEUE_MAP = "CHIP.tm.queue.map"
TM_QUEUE_BUFFER = "CHIP.tm.queue.buffer"
TM_QUEUE_SCHEDULING = "CHIP.tm.queue.sched_cfg"
TM_QUEUE_SHAPING = "CHIP.tm.queue.sched_shaping"
TM_QUEUE_COUNTERS = "CHIP.tm.counter.queue"
TM_MIRROR_COUNTERS = "CHIP.tm.counter.mirror_dpg"

FIXED_TABLES: dict[str, Fixed] = {
    PORT: Fixed(
        _PORT_FILE,
        {"$DEV_PORT": "uint32"},
        {
            "$SPEED": "string",
            "$FEC": "string",
            "$PORT_ENABLE": "bool",
            "$AUTO_NEGOTIATION": "string",
            "$PORT_UP": "bool",
        },
    ),
    PORT_NAMES: Fixed(_PORT_FILE, {"$PORT_NAME": "string"}, {"$DEV_PORT": "uint32"}),
    MIRROR: Fixed(
        "bf_rt_mirror/bf_rt_mirror_CHIP.json",
        {"$sid": "uint16"},
        actions={
            "$normal": {
                "$session_enable": "bool",
                "$direction": "string",
                "$ucast_egress_port": "uint32",
                "$ucast_egress_port_valid": "bool",
                "$max_pkt_len": "uint16",
            }
        },
    ),
    TM: Fixed(_TM_FILE, {}, {"timestamp_shift_bits": "uint8", "cell_size_bytes": "uint32", "total_cells": "uint32"}),
    TM_PORT: Fixed(
        _TM_FILE, {"dev_port": "uint32"}, {"pg_id": "uint8", "ingress_qid_map": "uint8", "egress_qid_queues": "uint8"}
    ),
    TM_PIPE: Fixed(
        _TM_FILE,
        {},
        {
            "mirror_drop_pg_id": "uint8",
            "mirror_drop_pg_queue": "uint8",
            "mirror_drop_dev_port": "uint32",
            "mirror_drop_queue_nr": "uint8",
        },
        also={"tf2": {"mirror_drop_enable": "bool"}},
    ),
    TM_PIPE_SHAPING: Fixed(_TM_FILE, {}, {"packet_ifg_compensation": "uint8"}),
    TM_QUEUE_MAP: Fixed(_TM_FILE, _QUEUE, {"dev_port": "uint32", "queue_nr": "uint8"}),
    TM_QUEUE_BUFFER: Fixed(
        _TM_FILE,
        _QUEUE,
        {"guaranteed_cells": "uint32", "hysteresis_cells": "uint32", "tail_drop_enable": "bool"},
        {"shared_pool": {"pool_id": "string", "pool_max_cells": "uint32", "dynamic_baf": "string"}, "buffer_only": {}},
    ),
    TM_QUEUE_SCHEDULING: Fixed(_TM_FILE, _QUEUE, {"max_rate_enable": "bool"}),
    TM_QUEUE_SHAPING: Fixed(_TM_FILE, _QUEUE, {"unit": "string", "provisioning": "string", "max_rate": "uint32"}),
    TM_QUEUE_COUNTERS: Fixed(
        _TM_FILE, _QUEUE, {"drop_count_packets": "uint64", "usage_cells": "uint64", "watermark_cells": "uint64"}
    ),
    TM_MIRROR_COUNTERS: Fixed(_TM_FILE, {}, {"drop_count_packets": "uint64"}),
}


def on_chip(name: str, chip: str) -> str:
    """The table's name on tf1 or tf2."""
    return name.replace("CHIP", chip)
