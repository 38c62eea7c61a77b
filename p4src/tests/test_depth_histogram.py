# SPDX-License-Identifier: MIT
"""The switch's histogram counts every packet of a watched queue once, in the bucket of the depth at its arrival."""

import bisect
import collections

from controlplane.policy import TailDrop, Unwatched
from p4src.tests import frames
from p4src.tests.under_test import RECEIVER_PORT, SENDER_PORT
from wire.wire import DEPTH_BUCKETS

DEEPEST = 2**32 - 1


def histogram(switch):
    """Packets of each bucket that is not empty."""
    switch.outputs()
    buckets = switch.control.histogram(RECEIVER_PORT)
    assert tuple(lowest for lowest, _ in buckets) == DEPTH_BUCKETS
    return {number: packets for number, (_, packets) in enumerate(buckets) if packets}


def bucket_of(depth):
    return bisect.bisect_right(DEPTH_BUCKETS, depth) - 1


def test_buckets__begin_at_their_lowest_depth_and_the_deepest_has_no_end(switch):
    switch.policy(TailDrop(DEEPEST))
    expected: collections.Counter[int] = collections.Counter()
    depths = {max(lowest + more, 0) for lowest in DEPTH_BUCKETS for more in (-1, 0, 1)} | {DEEPEST - 15}
    frame = frames.tcp(60)
    for number, depth in enumerate(sorted(depths), 1):
        switch.preset("admitted_packets", depth)
        switch.preset("departed_packets", 0)
        switch.send(number * 100_000, SENDER_PORT, frame)
        switch.outputs()
        expected[bucket_of(depth)] += 1
    switch.policy(Unwatched())
    switch.send(10**9, SENDER_PORT, frame)
    assert histogram(switch) == expected == collections.Counter(bucket_of(c.depth_packets) for c in switch.postcards())
    assert len(expected) == len(DEPTH_BUCKETS)
