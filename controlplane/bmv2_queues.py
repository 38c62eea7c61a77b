# SPDX-License-Identifier: MIT
"""Keeps the settings of BMv2's queues in the switch: BMv2 accepts rates and depths but cannot report them.

Each queue that was set has a mirror session that no packet uses: the session's port holds the limit, its multicast
group the rate (31 bits each). The session can be read back and ends with the simple_switch. Settings that other
clients (simple_switch_CLI) make are not seen.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from controlplane.policy import Ecn, Policy, Unit, Unwatched, mode_of
from controlplane.switch import Queue

FIRST_SESSION = 0x7000  # plus the port (9 bits); BMv2's sessions end at 0x7fff, and our program uses session 1
DEFAULT_LIMIT_PACKETS = 64  # simple_switch's own default
UNBOUNDED_PACKETS = 2**31 - 1  # the maximum of Thrift's i32
LEAST_FRAME_BYTES = 60  # of Ethernet, FCS not counted


def miscounted_drops(policy: Policy, queue: Queue) -> str:
    """The reason why the queue would refuse packets that the program has counted as queued; '' if it would not.

    The program never subtracts a refused packet from its depth. The depth grows until the policy drops every packet.
    """
    if isinstance(policy, Unwatched) or queue.limit_packets is None:
        return ""
    most = policy.hard_limit if isinstance(policy, Ecn) else policy.threshold
    packets = most if policy.unit is Unit.PACKETS else -(-most // LEAST_FRAME_BYTES)
    if queue.limit_packets > packets:
        return ""
    shortest = "" if policy.unit is Unit.PACKETS else f" ({packets} packets of {LEAST_FRAME_BYTES} bytes)"
    return (
        f"the queue itself holds {queue.limit_packets} packets, {mode_of(policy)} acts at {most} {policy.unit}"
        f"{shortest}: on BMv2 the program's depth then counts every refused packet as queued forever; give the queue a "
        f"limit above {packets}p"
    )


class Notes(NamedTuple):
    """The stored settings. `client`: BMv2's service simple_switch; `types`: the module with its types. Methods raise
    Thrift's exceptions.
    """

    client: Any
    types: Any

    def read(self, port: int) -> Queue:
        """The settings that `write` stored last; without any, BMv2's defaults."""
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
