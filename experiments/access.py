# SPDX-License-Identifier: MIT
"""ACCESS: each long flow's own link before the bottleneck, or a link that flows share (ACCESS_LINKS); in the direction
of the data.

The queue of such a link has no limit: only the flow's window bounds it. A window beyond what the link carries in a
round trip would wait there and do nothing else, so the hosts' socket buffers bound it. From this bound follow the
switch's memory and the flow's longest round trip.
"""

from __future__ import annotations

# A socket buffer counts bytes of memory: a segment takes up to twice its size. Linux wakes a sender only when a third
# of the buffer is free, so a window of the other two thirds must fill the link, too.
BUFFER_PER_WINDOW = 3
# The middle value of tcp_rmem in the kernel. A receive buffer begins with it, also if the last value is less.
LEAST_BUFFER_BYTES = 128 << 10
MOST_BUFFER_BYTES = 256 << 20  # that hosts.tune.tune accepts


def socket_buffer_bytes(access_bps: int, rate_bps: int, path_rtt_ns: int, mtu_bytes: int) -> int:
    """Most memory of a socket's buffer: for a window that fills the slower of both links during `path_rtt_ns`, the RTT
    through a full bottleneck queue.
    """
    window_bytes = -(-min(access_bps, rate_bps) * path_rtt_ns // (8 * 10**9)) + 2 * mtu_bytes
    return min(max(LEAST_BUFFER_BYTES, BUFFER_PER_WINDOW * window_bytes), MOST_BUFFER_BYTES)


def queued_packets(buffer_bytes: int, mtu_bytes: int) -> int:
    """Most packets of one flow in its access queue: a full packet takes more than `mtu_bytes` of its socket buffer."""
    return buffer_bytes // mtu_bytes + 1
