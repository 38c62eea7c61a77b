# SPDX-License-Identifier: MIT
"""The TCP sockets of this network namespace by /proc/net/tcp, which shows when flows are up without disturbing them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ESTABLISHED = 1  # include/net/tcp_states.h
LISTEN = 10


class Socket(NamedTuple):
    local_port: int
    remote_port: int
    state: int


def tcp_sockets() -> Iterator[Socket]:
    """All TCP sockets, IPv4 and IPv6. A kernel without IPv6 has no second table."""
    for table in ("/proc/self/net/tcp", "/proc/self/net/tcp6"):
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except FileNotFoundError:
            continue
        for line in lines:
            words = line.split()
            yield Socket(int(words[1].rsplit(":", 1)[1], 16), int(words[2].rsplit(":", 1)[1], 16), int(words[3], 16))


def listening_ports() -> set[int]:
    return {entry.local_port for entry in tcp_sockets() if entry.state == LISTEN}


def established() -> set[tuple[int, int]]:
    """(local port, remote port) of established connections."""
    return {(entry.local_port, entry.remote_port) for entry in tcp_sockets() if entry.state == ESTABLISHED}
