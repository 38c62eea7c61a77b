# SPDX-License-Identifier: MIT
"""ACCESS puts access links before the bottleneck, in the direction of the data: one for each long flow, or links that
flows share (ACCESS_LINKS).

The queue of an access link has no limit, so only the flow's window bounds this queue. A window above the path's
bandwidth-delay product would only lengthen the queue. The hosts' socket buffers therefore bound the window. The
switch's memory and the flow's longest round trip follow from this bound.
"""

from __future__ import annotations

# A socket buffer counts bytes of memory: a segment takes up to twice its size. Linux wakes a sender only when a third
# of the buffer is free, so the other two thirds must hold a window that fills the link.
BUFFER_PER_WINDOW = 3
# The middle value of tcp_rmem in the kernel. A receive buffer starts at this size even if the last value is smaller, so
# a smaller limit would have no effect.
LEAST_BUFFER_BYTES = 128 << 10
MOST_BUFFER_BYTES = 256 << 20  # hosts.tune.tune accepts no more


def socket_buffer_bytes(access_bps: int, rate_bps: int, path_rtt_ns: int, mtu_bytes: int) -> int:
    """The memory limit of a socket buffer: enough for a window that fills the slower of both links. `path_rtt_ns` is
    the RTT through a full bottleneck queue.
    """
    window_bytes = -(-min(access_bps, rate_bps) * path_rtt_ns // (8 * 10**9)) + 2 * mtu_bytes
    return min(max(LEAST_BUFFER_BYTES, BUFFER_PER_WINDOW * window_bytes), MOST_BUFFER_BYTES)


def queued_packets(buffer_bytes: int, mtu_bytes: int) -> int:
    """The most packets of one flow in an access queue: each takes more than `mtu_bytes` of the socket buffer."""
    return buffer_bytes // mtu_bytes + 1
