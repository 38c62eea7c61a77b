# SPDX-License-Identifier: MIT
"""The counter of TCP's memory pressure is read by its name, at any position."""

from experiments.setup.tcp_memory import NETSTAT
from hosts.netstat import COUNTER, memory_pressures


def test_counter__is_found_by_its_name() -> None:
    text = f"TcpExt: SyncookiesSent {COUNTER} Other\nTcpExt: 1 7 2\nIpExt: InOctets\nIpExt: 5\n"
    assert memory_pressures(text) == 7
    assert memory_pressures("IpExt: InOctets\nIpExt: 5\n") == 0
    assert COUNTER in NETSTAT.read_text()
