# SPDX-License-Identifier: MIT
"""Counts the depth of a queue from the arrivals and departures of its packets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from analysis.read.columns import Columns


def with_depths(slabs: Iterable[Columns]) -> Iterator[Columns]:
    """Adds `depth_packets` and `depth_bytes` (uint32) to slabs of packets of a Matcher with `frame_bytes`: the packets
    that had arrived, come out later, and had not come out at the arrival. Where in the queue a packet was dropped is
    unknown, so dropped packets do not count.
    """
    left_ns, left_bytes = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)  # in the queue after a slab
    for packets in slabs:
        came_ns, entered = packets["time_ns"], ~packets["dropped"]
        sizes = packets["frame_bytes"].astype(np.int64)
        before, before_bytes = (len(left_ns), int(left_bytes.sum()))
        left_ns = np.append(left_ns, packets["departure_ns"][entered])
        left_bytes = np.append(left_bytes, sizes[entered])
        order = np.argsort(left_ns, kind="stable")
        left_ns, left_bytes = left_ns[order], left_bytes[order]
        came = before + np.cumsum(entered) - entered
        came_bytes = before_bytes + np.cumsum(sizes * entered) - sizes * entered
        gone = np.minimum(np.searchsorted(left_ns, came_ns, side="right"), came)  # not more than came before
        gone_bytes = np.append(0, np.cumsum(left_bytes))[gone]
        yield packets | {
            "depth_packets": (came - gone).astype(np.uint32),
            "depth_bytes": np.maximum(came_bytes - gone_bytes, 0).astype(np.uint32),
        }
        if len(came_ns):
            still = int(np.searchsorted(left_ns, came_ns[-1], side="right"))
            left_ns, left_bytes = left_ns[still:], left_bytes[still:]
