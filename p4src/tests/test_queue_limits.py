# SPDX-License-Identifier: MIT
"""Queues of the soft switch with their own limits: the program reads the true length, even if a queue refuses packets.

BMv2's program cannot see such drops, so on BMv2 the control plane refuses limits that would falsify depths
(controlplane/tests/test_bmv2.py).
"""

import pytest

from controlplane.policy import EgressThreshold, TailDrop
from controlplane.switch import Queue
from p4src.tests import frames
from p4src.tests.under_test import RATE_BPS, RECEIVER_PORT, SENDER_PORT, SoftCore

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
