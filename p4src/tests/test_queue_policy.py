# SPDX-License-Identifier: MIT
"""Each policy below its threshold and from the threshold on: drops, marks, postcards and counters. Thresholds for drops
are in packets and in bytes. softswitch/tests/test_program.py compares tail drop with a model, to the byte and ns.

If no frame leaves meanwhile, arriving frames meet depths of 0, 1, 2, ..., because the frame in transmission counts.
"""

import pytest
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

from controlplane.policy import Ecn, EgressThreshold, TailDrop, Unit, Unwatched
from controlplane.switch import Count, Queue
from p4src.tests import frames
from p4src.tests.under_test import RATE_BPS, RECEIVER_PORT, SENDER_PORT

ECT, CE = 2, 3
FRAME_BYTES = 1000
THRESHOLD = 5
FIRST, LAST, NONE = range(3), range(5, 8), range(0)
FULL_BYTES = 1514
BURST, BURSTS, PERIOD_NS = 200, 10, 20_000_000
LATER = 10


def ecn_of(frame):
    packet = Ether(frame)
    return packet[IPv6].tc & 3 if IPv6 in packet else packet[IP].tos & 3


@pytest.mark.parametrize(
    ("policy", "ecn", "dropped", "marked"),  # of eight packets, by their numbers
    [
        (TailDrop(THRESHOLD), ECT, LAST, NONE),
        (TailDrop(THRESHOLD * FRAME_BYTES, Unit.BYTES), CE, LAST, NONE),
        (Ecn(THRESHOLD, 1000), ECT, NONE, LAST),
        (Ecn(THRESHOLD, 1000), 0, LAST, NONE),
        (Ecn(THRESHOLD, 7), ECT, range(7, 8), range(5, 7)),
        (Ecn(THRESHOLD, 7), CE, range(7, 8), NONE),  # came marked; the counter has them
        # On departure: the first three leave 7, 6 and 5 packets behind, the others fewer.
        (EgressThreshold(THRESHOLD), ECT, FIRST, NONE),
        (EgressThreshold(THRESHOLD * FRAME_BYTES, unit=Unit.BYTES), ECT, FIRST, NONE),
        (EgressThreshold(THRESHOLD, mark_instead_of_drop=True), ECT, NONE, FIRST),
        (EgressThreshold(THRESHOLD, mark_instead_of_drop=True), 0, FIRST, NONE),
    ],
)
@pytest.mark.parametrize("make", [frames.tcp, frames.tcp6])
def test_policy__drops_and_marks_from_its_threshold_on(switch, policy, ecn, dropped, marked, make):
    switch.policy(policy)
    for _ in range(8):  # all arrive before the first one leaves
        switch.send(0, SENDER_PORT, make(FRAME_BYTES, ecn=ecn))
    cards = sorted(switch.postcards(), key=lambda card: card.depth_packets)
    on_departure = isinstance(policy, EgressThreshold)
    assert [(card.depth_packets, card.has("DROPPED"), card.has("CE_MARKED")) for card in cards] == [
        (
            number if on_departure else number - sum(each < number for each in dropped),
            number in dropped,
            number in marked,
        )
        for number in range(8)
    ]
    assert {card.has("AT_INGRESS") for card in cards if card.has("DROPPED")} <= {not on_departure}
    where = "departure" if on_departure else "arrival"
    assert switch.count("arrivals", RECEIVER_PORT) == Count(8, 8 * FRAME_BYTES)
    assert switch.count(f"{where}_drops", RECEIVER_PORT) == Count(len(dropped), len(dropped) * FRAME_BYTES)
    assert switch.counter(f"{where}_marks", RECEIVER_PORT) == len(marked) or ecn == CE
    left = [CE if number in marked else ecn for number in range(8) if number not in dropped]
    assert [ecn_of(frame) for frame in switch.frames_to(RECEIVER_PORT)] == left


def test_ecn_mark__keeps_the_ipv4_checksum_right(switch):
    """0xffff is left out: only a header of zeros has that checksum."""
    sent = []
    for ecn in (1, 2):
        sent += [frames.tcp(60, ecn=ecn, id=number) for number in range(0, 65536, 1021)]
        blank = Ether(frames.tcp(60, ecn=ecn, id=0))[IP].chksum
        for checksum in (0, 1, 2, 3, 4, 0xFFFB, 0xFFFC, 0xFFFD, 0xFFFE):
            sent.append(frames.tcp(60, ecn=ecn, id=(blank - checksum) % 0xFFFF))
            assert Ether(sent[-1])[IP].chksum == checksum
    sent.append(frames.tcp(200, ecn=ECT, options=frames.IP_OPTIONS))
    switch.policy(Ecn(0, 1000))
    for frame in sent:
        switch.send(0, SENDER_PORT, frame)
    for before, after in zip(sent, switch.frames_to(RECEIVER_PORT), strict=True):
        expected = Ether(before)
        expected[IP].tos |= CE
        del expected[IP].chksum
        assert bytes(expected) == after, before.hex()


def test_policy__changes_while_traffic_runs(switch):
    for policy, count in ((TailDrop(2), 3), (TailDrop(4), 3), (Unwatched(), 50)):
        switch.policy(policy)
        for _ in range(count):
            switch.send(0, SENDER_PORT, frames.tcp(FRAME_BYTES))
    cards = switch.postcards()
    assert [card.threshold for card in cards if card.has("DROPPED")] == [2, 4]
    assert (len(cards), len(switch.frames_to(RECEIVER_PORT))) == (6, 54)


@pytest.mark.parametrize(
    ("policy", "limit", "fits"),
    [
        (EgressThreshold(100), {"limit_packets": 50}, 50),
        (TailDrop(163), {"limit_bytes": 100_000}, 100_000 // FULL_BYTES),
    ],
    ids=["egress-threshold", "tail-drop"],
)
def test_overflow__of_a_queues_own_limit_is_not_counted_as_queued(switch, policy, limit, fits):
    """In total the queue refuses more packets than the policy's threshold. If the program counted them as queued, the
    policy would in the end drop every packet. After the bursts the queue empties, and single packets still pass.
    BMv2's program cannot see such drops: there the control plane refuses limits that would falsify depths.
    """
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
