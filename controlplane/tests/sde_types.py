# SPDX-License-Identifier: MIT
"""The fields of the Tofino SDE's tables that the control plane uses, with their types (controlplane/sde_tables.py)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controlplane.sde_tables import (
    MIRROR,
    PORT,
    PORT_NAMES,
    TM,
    TM_MIRROR_COUNTERS,
    TM_PIPE,
    TM_PIPE_SHAPING,
    TM_PORT,
    TM_QUEUE_BUFFER,
    TM_QUEUE_COUNTERS,
    TM_QUEUE_MAP,
    TM_QUEUE_SCHEDULING,
    TM_QUEUE_SHAPING,
)


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
