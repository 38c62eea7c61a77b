# SPDX-License-Identifier: MIT
"""Queues of the soft switch with their own limits: the program reads the true length, even if a queue refuses packets.

BMv2's program cannot see such drops, so on BMv2 the control plane refuses limits that would falsify depths
(controlplane/tests/test_bmv2.py).
"""

import random

import pytest

from controlplane.policy import Ecn, EgressThreshold, TailDrop, Unit
from controlplane.switch import Queue
from p4src.tests import frames
from p4src.tests.under_test import COLLECTOR_PORT, RATE_BPS, RECEIVER_PORT, SENDER_PORT, SoftCore

FULL_BYTES = 1514
BURST, BURSTS, PERIOD_NS = 200, 10, 20_000_000
LATER = 10


@pytest.mark.parametrize(
    ("policy", "limit", "fits"),
    [
        (EgressThreshold(100), {"limit_packets": 50}, 50),
        (TailDrop(163), {"limit_bytes": 100_000}, 100_000 // FULL_BYTES),
    ],
    ids=["egress-threshold", "tail-drop"],
)
def test_overflow__is_not_counted_as_queued(policy, limit, fits):
    """In total the queue refuses more packets than the policy's threshold. If the program counted them as queued, the
    policy would in the end drop every packet. After the bursts the queue empties, and single packets still pass.
    """
    switch = SoftCore().configure()
    switch.control.set_queue(RECEIVER_PORT, Queue(rate_bps=RATE_BPS, **limit))
    switch.policy(policy)
    frame = frames.tcp(FULL_BYTES)
    for number in range(BURSTS * BURST):
        switch.send(number // BURST * PERIOD_NS, SENDER_PORT, frame)
    for packet in range(LATER):
        switch.send((BURSTS + packet) * PERIOD_NS, SENDER_PORT, frame)
    assert len(switch.frames_to(RECEIVER_PORT)) == BURSTS * fits + LATER
    assert switch.control.stats()[f"port.{RECEIVER_PORT}.queue_drops"] == BURSTS * (BURST - fits)
    cards = switch.postcards()
    assert not any(card.has("DROPPED") for card in cards)
    assert [card.depth_packets for card in cards[-LATER:]] == [0] * LATER
    assert max(card.depth_packets for card in cards) == fits - 1


def random_traffic(switch):
    """Bursts of frames of several sizes, each burst under a random policy. The queue has no limit of its own."""
    chance = random.Random(1)
    sizes = (60, 100, FULL_BYTES, *(chance.randrange(60, FULL_BYTES) for _ in range(5)))
    made = [frames.tcp(size, ecn=ecn) for size in sizes for ecn in range(4)]
    policies = [
        TailDrop(20), TailDrop(9000, Unit.BYTES), Ecn(5, 30), Ecn(4000, 20_000, Unit.BYTES),
        EgressThreshold(15), EgressThreshold(15, mark_instead_of_drop=True), EgressThreshold(8000, unit=Unit.BYTES),
    ]  # fmt: skip
    now_ns = 0
    for _ in range(40):
        switch.policy(chance.choice(policies))
        for _ in range(chance.randrange(60)):
            now_ns += chance.choice((0, chance.randrange(60_000)))
            switch.send(now_ns, SENDER_PORT, chance.choice(made))
    return switch.outputs(), switch.control.counters(), switch.control.histogram(RECEIVER_PORT)


def test_depths__are_those_that_a_program_counts_itself():
    """Without overflow, lengths from the switch and counts by the program give equal frames, postcards, counters and
    buckets, to the byte and ns.
    """
    filled, counted = SoftCore().configure(), SoftCore().configure()
    counted.count_by_the_program()
    assert random_traffic(filled) == random_traffic(counted)
    cards = filled.postcards()
    assert len({card.depth_packets for card in cards}) > 15
    assert any(card.has("DROPPED") for card in cards)
    assert any(card.has("CE_MARKED") for card in cards)
    registers = {name: filled.control.register(name) for name in ("admitted_packets", "departed_bytes")}
    assert not any(map(any, registers.values())), "the program counted although the switch reports its queues"
    assert counted.control.register("admitted_packets")[RECEIVER_PORT] > 100
    assert len(filled.frames_to(COLLECTOR_PORT)) == len(cards)
