# SPDX-License-Identifier: MIT
"""The Tofino SDE's fixed tables that the control plane uses: ports, mirror sessions, traffic manager.

Names come from p4lang/open-p4studio 1f97778f, pkgsrc/bf-drivers/src/bf_rt/. An SDE installs the same files in
$SDE_INSTALL/share/bf_rt_shared; tests/sde_types.py has the tables' fields, and a test compares both. CHIP stands for
tf1 or tf2.
"""

from __future__ import annotations

CHIPS = ("tf1", "tf2")
CHIPS_WITH_A_SWITCH_FOR_DEFLECTION = ("tf2",)  # TM_PIPE has mirror_drop_enable

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

TABLES = (
    PORT, PORT_NAMES, MIRROR, TM, TM_PORT, TM_PIPE, TM_PIPE_SHAPING, TM_QUEUE_MAP, TM_QUEUE_BUFFER, TM_QUEUE_SCHEDULING,
    TM_QUEUE_SHAPING, TM_QUEUE_COUNTERS, TM_MIRROR_COUNTERS,
)  # fmt: skip


def on_chip(name: str, chip: str) -> str:
    """The table's name on tf1 or tf2."""
    return name.replace("CHIP", chip)
