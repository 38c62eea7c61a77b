# SPDX-License-Identifier: MIT
"""Each policy below its threshold and from the threshold on: drops, marks, postcards and counters. Thresholds for drops
are in packets and in bytes.

If no frame leaves meanwhile, arriving frames meet depths of 0, 1, 2, ..., because the frame in transmission counts.
"""

import pytest
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

from controlplane.policy import Ecn, EgressThreshold, TailDrop, Unit, Unwatched
from p4src.tests import frames
from p4src.tests.under_test import RECEIVER_PORT, SENDER_PORT

ECT, CE = 2, 3
FRAME_BYTES = 1000
THRESHOLD = 5
PACKETS, BYTES = (Unit.PACKETS, 1), (Unit.BYTES, FRAME_BYTES)


def send(switch, count, ecn=0, make=frames.tcp):
    """All packets arrive before the first one leaves."""
    packet = make(FRAME_BYTES, ecn=ecn)
    for _ in range(count):
        switch.send(0, SENDER_PORT, packet)


def summary(switch):
    """(depth on arrival, dropped, marked) of each packet, sorted by depth, which is the order of arrival."""
    cards = sorted(switch.postcards(), key=lambda card: card.depth_packets)
    return [(card.depth_packets, card.has("DROPPED"), card.has("CE_MARKED")) for card in cards]


def ecn_of(frame):
    packet = Ether(frame)
    return packet[IPv6].tc & 3 if IPv6 in packet else packet[IP].tos & 3


@pytest.mark.parametrize(("ecn", "unit", "size"), [(ECT, *PACKETS), (CE, *BYTES)])
def test_tail_drop__admits_below_the_threshold_only(switch, ecn, unit, size):
    switch.policy(TailDrop(THRESHOLD * size, unit))
    send(switch, THRESHOLD + 1, ecn)
    assert summary(switch) == [(depth, depth >= THRESHOLD, False) for depth in range(THRESHOLD + 1)]
    assert [ecn_of(frame) for frame in switch.frames_to(RECEIVER_PORT)] == [ecn] * THRESHOLD
    assert switch.counter("arrival_drops", RECEIVER_PORT) == 1


def test_tail_drop__byte_threshold_is_reached_exactly(switch):
    """At a depth of 4999 of 5000 bytes a frame is admitted whole. From 5000 bytes on, frames are dropped."""
    switch.policy(TailDrop(5000, Unit.BYTES))
    for length in (1000, 1000, 1000, 1999, 60, 60):
        switch.send(0, SENDER_PORT, frames.tcp(length))
    verdicts = sorted((card.depth_bytes, card.has("DROPPED")) for card in switch.postcards())
    assert verdicts == [(0, False), (1000, False), (2000, False), (3000, False), (4999, False), (5059, True)]


def test_tail_drop__admits_again_once_a_packet_has_wholly_left(switch):
    switch.policy(TailDrop(1))
    transmission_ns = (FRAME_BYTES + 24) * 8 * 1000 // 200
    for at in (0, transmission_ns - 1, transmission_ns):
        switch.send(at, SENDER_PORT, frames.tcp(FRAME_BYTES))
    cards = sorted(switch.postcards(), key=lambda card: card.enqueue_switch_ns)
    assert [card.has("DROPPED") for card in cards] == [False, True, False]


@pytest.mark.parametrize("make", [frames.tcp, frames.tcp6])
def test_ecn__marks_capable_packets_from_the_threshold_on_and_drops_the_others(switch, make):
    switch.policy(Ecn(THRESHOLD, 1000))
    send(switch, THRESHOLD + 2, ECT, make)
    assert summary(switch) == [(depth, False, depth >= THRESHOLD) for depth in range(THRESHOLD + 2)]
    assert [ecn_of(frame) for frame in switch.frames_to(RECEIVER_PORT)] == [ECT] * THRESHOLD + [CE] * 2
    assert switch.counter("arrival_marks", RECEIVER_PORT) == 2
    send(switch, THRESHOLD + 2, 0, make)
    assert [card.has("DROPPED") for card in switch.postcards()].count(True) == 2
    assert len(switch.frames_to(RECEIVER_PORT)) == 2 * THRESHOLD + 2


@pytest.mark.parametrize("ecn", [ECT, CE])
def test_ecn__hard_limit_drops_everything(switch, ecn):
    switch.policy(Ecn(THRESHOLD, THRESHOLD + 3))
    send(switch, THRESHOLD + 5, ecn)
    dropped = [card.has("DROPPED") for card in switch.postcards()]
    assert len(switch.frames_to(RECEIVER_PORT)) == THRESHOLD + 3
    assert dropped.count(True) == 2


def test_ecn__a_packet_that_arrives_with_ce_is_not_counted_as_marked(switch):
    switch.policy(Ecn(0, 1000))
    send(switch, 1, CE)
    assert summary(switch) == [(0, False, False)]
    assert ecn_of(switch.frames_to(RECEIVER_PORT)[0]) == CE


def wrongly_marked(switch, sent):
    """Sends frames one by one into a queue that marks every frame. Returns (sent, received) in hex of the frames that
    leave unmarked, or whose checksum differs from one computed from scratch."""
    switch.policy(Ecn(0, 1000))
    for frame in sent:
        switch.send(0, SENDER_PORT, frame)
    received = switch.frames_to(RECEIVER_PORT)
    assert len(received) == len(sent)
    wrong = []
    for before, after in zip(sent, received, strict=True):
        expected = Ether(before)
        expected[IP].tos |= CE
        del expected[IP].chksum
        if bytes(expected) != after:
            wrong.append((before.hex(), after.hex()))
    return wrong


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
    assert wrongly_marked(switch, sent) == []


@pytest.mark.parametrize(("unit", "size"), [PACKETS, BYTES])
def test_egress_threshold__drops_on_departure_while_too_many_stay_behind(switch, unit, size):
    """Of 8 packets the first three leave 7, 6 and 5 packets behind and are dropped; the others leave fewer."""
    switch.policy(EgressThreshold(THRESHOLD * size, unit=unit))
    send(switch, 8)
    cards = summary(switch)
    assert [dropped for _, dropped, _ in cards] == [True] * 3 + [False] * 5
    assert [depth for depth, _, _ in cards] == list(range(8)), "the queue must grow beyond the threshold in this mode"
    assert switch.counter("departure_drops", RECEIVER_PORT) == 3
    assert not any(card.has("AT_INGRESS") for card in switch.postcards())


def test_egress_threshold__a_dropped_packet_takes_no_link_time(switch):
    switch.policy(EgressThreshold(THRESHOLD))
    send(switch, 8)
    transmission_ns = (FRAME_BYTES + 24) * 8 * 1000 // 200
    left = [card.enqueue_switch_ns + card.sojourn_ns for card in switch.postcards() if not card.has("DROPPED")]
    assert left == [transmission_ns * nth for nth in range(1, 6)]


@pytest.mark.parametrize(("ecn", "marked"), [(ECT, 3), (0, 0)])
def test_egress_threshold__can_mark_instead(switch, ecn, marked):
    switch.policy(EgressThreshold(THRESHOLD, mark_instead_of_drop=True))
    send(switch, 8, ecn)
    assert [flag for _, _, flag in summary(switch)].count(True) == marked
    assert len(switch.frames_to(RECEIVER_PORT)) == (8 if marked else 5)


def test_policy__changes_while_traffic_runs(switch):
    switch.policy(TailDrop(2))
    send(switch, 3)
    switch.policy(TailDrop(4))
    send(switch, 3)
    assert [card.threshold for card in switch.postcards() if card.has("DROPPED")] == [2, 4]
    assert len(switch.frames_to(RECEIVER_PORT)) == 4


def test_unwatched_queue__has_no_limit_and_no_postcards(switch):
    switch.policy(Unwatched())
    send(switch, 50)
    assert len(switch.frames_to(RECEIVER_PORT)) == 50
    assert switch.postcards() == []


def test_counters__count_packets_and_bytes_of_frames(switch):
    for round_, (policy, counter) in enumerate(
        (
            (TailDrop(0), "arrival_drops"),
            (Ecn(0, 1000), "arrival_marks"),
            (EgressThreshold(0), "departure_drops"),
            (EgressThreshold(0, mark_instead_of_drop=True), "departure_marks"),
        ),
        start=1,
    ):
        switch.policy(policy)
        for length in (60, 1000, 1514):
            switch.send(round_ * 1_000_000, SENDER_PORT, frames.tcp(length, ecn=ECT))
        assert switch.count(counter, RECEIVER_PORT).bytes == 2574
        assert switch.counter(counter, RECEIVER_PORT) == 3
        assert switch.count("arrivals", RECEIVER_PORT).bytes == round_ * 2574
