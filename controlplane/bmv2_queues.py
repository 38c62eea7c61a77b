# SPDX-License-Identifier: MIT
"""Keeps the settings of BMv2's queues in the switch: BMv2 accepts rates and depths but cannot report them.

They are stored in a mirror session that no packet uses: depth as the session's port, rate as its multicast group (31
bits each). The session can be read back and ends with the simple_switch. Settings made by other clients
(simple_switch_CLI) are not seen.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from controlplane.switch import Queue

FIRST_SESSION = 0x7000  # plus the port (9 bits); BMv2's sessions end at 0x7fff, and our program uses session 1
DEFAULT_LIMIT_PACKETS = 64  # simple_switch's own default
UNBOUNDED_PACKETS = 2**31 - 1  # the maximum of Thrift's i32


class Notes(NamedTuple):
    """`client` and `types`: BMv2's service simple_switch, and its module of types. Raises Thrift's exceptions."""

    client: Any
    types: Any

    def read(self, port: int) -> Queue:
        """The settings that were made, or BMv2's defaults."""
        try:
            session = self.client.mirroring_session_get(FIRST_SESSION + port)
        except self.types.InvalidMirroringOperation:
            return Queue(limit_packets=DEFAULT_LIMIT_PACKETS)
        limit = None if session.port == UNBOUNDED_PACKETS else session.port
        return Queue(rate_pps=session.mgid or None, limit_packets=limit)

    def forget(self, port: int) -> None:
        try:
            self.client.mirroring_session_delete(FIRST_SESSION + port)
        except self.types.InvalidMirroringOperation:
            return

    def write(self, port: int, limit_packets: int, rate_pps: int) -> None:
        config = self.types.MirroringSessionConfig(port=limit_packets, mgid=rate_pps)
        self.client.mirroring_session_add(FIRST_SESSION + port, config)
