# SPDX-License-Identifier: MIT
"""The histogram in the switch counts every packet of a watched queue once, in the bucket of the depth it found."""

import bisect
import collections
import json

from p4src.tests import frames
from p4src.tests.conftest import RECEIVER_PORT, ROOT, SENDER_PORT
from wire.wire import DEPTH_BUCKETS


def histogram(switch):
    """Packets by (port, bucket), of the buckets that are not empty."""
    switch.outputs()
    cells = (map(int, line.split()) for line in switch.control("counter read depth_histogram"))
    return {divmod(cell, len(DEPTH_BUCKETS)): packets for cell, packets, _ in cells}


def bucket_of(depth):
    return bisect.bisect_right(DEPTH_BUCKETS, depth) - 1


def test_histogram__counts_what_the_postcards_say(switch):
    """Drops included: they too found a depth."""
    for number in range(600):
        switch.send(number // 200 * 1_000_000, SENDER_PORT, frames.tcp(1514))
    found = [card.depth_packets for card in switch.postcards()]
    expected = collections.Counter((RECEIVER_PORT, bucket_of(depth)) for depth in found)
    assert histogram(switch) == expected
    assert len(expected) > 20


def test_buckets__begin_at_their_lowest_depth(switch):
    switch.policy("tail_drop 0xffffffff 0")
    expected = collections.Counter()
    depths = {max(lowest + more, 0) for lowest in DEPTH_BUCKETS for more in (-1, 0, 1)}
    for number, depth in enumerate(sorted(depths), 1):
        switch.control(f"register write admitted_packets {RECEIVER_PORT} {depth}")
        switch.control(f"register write departed_packets {RECEIVER_PORT} 0")
        switch.send(number * 1_000_000, SENDER_PORT, frames.tcp(60))
        switch.run((number + 1) * 1_000_000 - 1)
        expected[RECEIVER_PORT, bucket_of(depth)] += 1
    assert histogram(switch) == expected
    assert len(expected) == len(DEPTH_BUCKETS)


def test_deepest_bucket__has_no_end(switch):
    switch.policy("tail_drop 0xffffffff 0")
    switch.control(f"register write admitted_packets {RECEIVER_PORT} 0xfffffff0")
    switch.send(0, SENDER_PORT, frames.tcp(60))
    assert histogram(switch) == {(RECEIVER_PORT, len(DEPTH_BUCKETS) - 1): 1}


def test_histogram__knows_only_watched_queues(switch):
    switch.policy("unwatched")
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
