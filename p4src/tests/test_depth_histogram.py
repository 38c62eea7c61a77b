# SPDX-License-Identifier: MIT
"""The switch's histogram counts every packet of a watched queue once, in the bucket of the depth at its arrival. On
Tofino it leaves out refused packets, whose depth is unknown.
"""

import bisect
import collections
import json

from controlplane.policy import TailDrop
from p4src.tests import frames
from p4src.tests.abilities import needs
from p4src.tests.under_test import RECEIVER_PORT, ROOT, SENDER_PORT, UNWATCHED
from wire.wire import DEPTH_BUCKETS

DEEPEST = 2**32 - 1


def histogram(switch):
    """Packets of each bucket that is not empty."""
    buckets = switch.histogram(RECEIVER_PORT)
    assert tuple(lowest for lowest, _ in buckets) == DEPTH_BUCKETS
    return {number: packets for number, (_, packets) in enumerate(buckets) if packets}


def bucket_of(depth):
    return bisect.bisect_right(DEPTH_BUCKETS, depth) - 1


@needs("held_queue")
def test_histogram__counts_the_depths_of_the_postcards(switch):
    """Dropped packets count too: they have a depth at arrival."""
    switch.policy(TailDrop(70))
    packet = frames.tcp(1514)
    with switch.held():
        for _ in range(80):
            switch.send(0, SENDER_PORT, packet)
    depths = [switch.depth_of(card) for card in switch.postcards()]
    expected = collections.Counter(map(bucket_of, depths))
    assert histogram(switch) == expected
    assert len(expected) > 30


def test_histogram__counts_every_postcard(switch):
    """Whatever the depths are, each packet counts once, in the bucket of its postcard's depth."""
    switch.slow_link()
    for number in range(300):
        switch.send(number // 100 * 1_000_000, SENDER_PORT, frames.tcp(1514))
    cards = switch.postcards()
    assert len(cards) == 300
    assert histogram(switch) == collections.Counter(bucket_of(switch.depth_of(card)) for card in cards)


@needs("register_presets")
def test_buckets__begin_at_their_lowest_depth(switch):
    switch.policy(TailDrop(DEEPEST))
    expected: collections.Counter[int] = collections.Counter()
    depths = {max(lowest + more, 0) for lowest in DEPTH_BUCKETS for more in (-1, 0, 1)}
    for number, depth in enumerate(sorted(depths), 1):
        switch.preset("admitted_packets", depth)
        switch.preset("departed_packets", 0)
        switch.send(number * 100_000, SENDER_PORT, frames.tcp(60))
        switch.outputs()
        expected[bucket_of(depth)] += 1
    assert histogram(switch) == expected
    assert len(expected) == len(DEPTH_BUCKETS)


@needs("register_presets")
def test_deepest_bucket__has_no_end(switch):
    switch.policy(TailDrop(DEEPEST))
    switch.preset("admitted_packets", 0xFFFFFFF0)
    switch.send(0, SENDER_PORT, frames.tcp(60))
    assert histogram(switch) == {len(DEPTH_BUCKETS) - 1: 1}


def test_histogram__knows_only_watched_queues(switch):
    switch.policy(UNWATCHED)
    switch.send(0, SENDER_PORT, frames.tcp(60))
    assert histogram(switch) == {}


def test_compiled_entries__are_those_of_the_definition():
    program = json.loads((ROOT / "p4src/build/bufferscope.json").read_text())
    (table,) = [table for pipeline in program["pipelines"] for table in pipeline["tables"] if "entries" in table]
    lowest = {
        int(entry["action_entry"]["action_data"][0], 16): int(entry["match_key"][0]["key"], 16)
        for entry in table["entries"]
    }
    assert tuple(lowest[number] for number in range(len(DEPTH_BUCKETS))) == DEPTH_BUCKETS
