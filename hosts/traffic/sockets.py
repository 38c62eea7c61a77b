# SPDX-License-Identifier: MIT
"""The sockets of this network namespace from /proc/net. Reading it shows when flows are up and disturbs no flow."""

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
    """All TCP sockets, IPv4 and IPv6."""
    return _sockets("tcp", "tcp6")


def _sockets(*tables: str) -> Iterator[Socket]:
    """The sockets in tables of /proc/net. A kernel without IPv6 lacks the tables of IPv6."""
    for table in tables:
        try:
            lines = Path("/proc/self/net", table).read_text().splitlines()[1:]
        except FileNotFoundError:
            continue
        for line in lines:
            words = line.split()
            yield Socket(int(words[1].rsplit(":", 1)[1], 16), int(words[2].rsplit(":", 1)[1], 16), int(words[3], 16))


def listening_ports() -> set[int]:
    return {entry.local_port for entry in tcp_sockets() if entry.state == LISTEN}


def bound_ports() -> set[int]:
    """Ports on which a TCP socket listens or to which a UDP socket is bound."""
    return listening_ports() | {entry.local_port for entry in _sockets("udp", "udp6")}


def established() -> set[tuple[int, int]]:
    """(local port, remote port) of established connections."""
    return {(entry.local_port, entry.remote_port) for entry in tcp_sockets() if entry.state == ESTABLISHED}
