# SPDX-License-Identifier: MIT
"""How often TCP ran short of memory. It then shrinks socket buffers, which limit flows in place of the queue."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from experiments import topology
from lib import syscalls

NETSTAT = Path("/proc/thread-self/net/netstat")
COUNTER = "TCPMemoryPressures"


def pressures(namespaces: Iterable[str]) -> dict[str, int]:
    """Times that TCP entered memory pressure on behalf of each namespace's sockets, since it was made."""
    result = {}
    for name in namespaces:
        with syscalls.in_network_namespace(topology.netns(name)):
            result[name] = counter(NETSTAT.read_text())
    return result


def counter(text: str) -> int:
    """COUNTER of a netstat file: a line of names, then a line of values, for each protocol."""
    lines = [line.split() for line in text.splitlines()]
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        if COUNTER in names:
            return int(values[names.index(COUNTER)])
    return 0
