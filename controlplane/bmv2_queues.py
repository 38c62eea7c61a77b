# SPDX-License-Identifier: MIT
"""What was set of BMv2's queues, kept in the switch: BMv2 takes rates and depths but tells neither.

A mirror session that no packet uses holds two numbers of 31 bits, is read back, and is gone with the simple_switch: the
depth is kept as its port, the rate as its multicast group. What others set (simple_switch_CLI) is not seen.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from controlplane.switch import Queue

FIRST_SESSION = 0x7000  # and one a port (9 bits); BMv2 has sessions up to 0x7fff, our program uses one, far below
DEFAULT_LIMIT_PACKETS = 64  # of a simple_switch that nobody told otherwise
UNBOUNDED_PACKETS = 2**31 - 1  # the most that Thrift's i32 can say


class Notes(NamedTuple):
    """`client` and `types`: BMv2's service simple_switch, and its module of types. Raises what Thrift raises."""

    client: Any
    types: Any

    def read(self, port: int) -> Queue:
        """What was set, or BMv2's own defaults."""
        try:
            found = self.client.mirroring_session_get(FIRST_SESSION + port)
        except self.types.InvalidMirroringOperation:
            return Queue(limit_packets=DEFAULT_LIMIT_PACKETS)
        limit = None if found.port == UNBOUNDED_PACKETS else found.port
        return Queue(rate_pps=found.mgid or None, limit_packets=limit)

    def forget(self, port: int) -> None:
        try:
            self.client.mirroring_session_delete(FIRST_SESSION + port)
        except self.types.InvalidMirroringOperation:
            return

    def write(self, port: int, limit_packets: int, rate_pps: int) -> None:
        config = self.types.MirroringSessionConfig(port=limit_packets, mgid=rate_pps)
        self.client.mirroring_session_add(FIRST_SESSION + port, config)
