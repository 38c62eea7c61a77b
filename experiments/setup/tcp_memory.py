# SPDX-License-Identifier: MIT
"""How often TCP ran short of memory. Under memory pressure TCP shrinks socket buffers, and then the buffers limit flows
in place of the queue.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from experiments.spec import topology
from hosts.netstat import memory_pressures
from lib import syscalls

NETSTAT = Path("/proc/thread-self/net/netstat")


def pressures(namespaces: Iterable[str]) -> dict[str, int]:
    """How often TCP entered memory pressure for a socket of each namespace, since the namespace was made."""
    result = {}
    for name in namespaces:
        with syscalls.in_network_namespace(topology.netns(name)):
            result[name] = memory_pressures(NETSTAT.read_text())
    return result
