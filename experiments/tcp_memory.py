# SPDX-License-Identifier: MIT
"""How often TCP ran short of memory. It then shrinks socket buffers, which limit flows in place of the queue."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from experiments import topology
from hosts.netstat import memory_pressures
from lib import syscalls

NETSTAT = Path("/proc/thread-self/net/netstat")


def pressures(namespaces: Iterable[str]) -> dict[str, int]:
    """Times that TCP entered memory pressure on behalf of each namespace's sockets, since it was made."""
    result = {}
    for name in namespaces:
        with syscalls.in_network_namespace(topology.netns(name)):
            result[name] = memory_pressures(NETSTAT.read_text())
    return result
