# SPDX-License-Identifier: MIT
"""Postcards have the specified bytes, and every packet has exactly one postcard and one place in the histogram."""

import bisect
import collections
import json

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from controlplane.policy import TailDrop, Unit, Unwatched
from p4src.tests import frames
from p4src.tests.under_test import COLLECTOR_PORT, RECEIVER_PORT, ROOT, SENDER_PORT, SWITCH_ID
from wire.wire import DEPTH_BUCKETS, POLICY, POSTCARD

DEEPEST = 2**32 - 1
VECTORS = json.loads((ROOT / "wire/vectors/postcard.json").read_text())


def test_frame__is_a_udp_datagram_for_the_collector(switch):
    switch.send(0, SENDER_PORT, frames.tcp())
    (frame,) = switch.frames_to(COLLECTOR_PORT)
    packet = Ether(frame)
    assert (packet.src, packet.dst) == (frames.SWITCH_MAC, frames.COLLECTOR_MAC)
    assert (packet[IP].src, packet[IP].dst) == (frames.SWITCH, frames.COLLECTOR)
    assert packet[UDP].dport == POSTCARD.const["POSTCARD_UDP_PORT"]
    assert packet[UDP].len == 8 + POSTCARD.length
    assert len(frame) == 14 + packet[IP].len == 14 + 20 + 8 + POSTCARD.length
    rebuilt = Ether(frame)
    del rebuilt[IP].chksum
    assert bytes(rebuilt) == frame, "checksum of the outer header"


def test_fields__of_a_forwarded_tcp_segment(switch):
    switch.send(1_000, SENDER_PORT, frames.tcp(seq=0xDEADBEEF))
    (card,) = switch.postcards()
    expected = dict(
        VECTORS["forwarded_tcp"]["fields"],
        switch_id=SWITCH_ID,
        card_seq=0,
        enqueue_switch_ns=1_000,
        sojourn_ns=(1514 + 24) * 8 * 5,
        threshold=163,
        tcp_seq=0xDEADBEEF,
        tcp_ack=0,
        tcp_flags=2,
    )
    assert card.fields == expected


def test_bytes__equal_the_vector_of_a_packet_dropped_on_arrival(switch):
    """Counters and threshold are first set to the vector's values. Ports are not compared."""
    expected = VECTORS["dropped_udp_over_ipv6"]["fields"]
    switch.postcards_of(RECEIVER_PORT, switch_id=expected["switch_id"])
    switch.policy(TailDrop(expected["threshold"], Unit.BYTES))
    switch.preset("ingress_card_seq", expected["card_seq"])
    switch.preset("admitted_packets", expected["depth_packets"])
    switch.preset("admitted_bytes", expected["depth_bytes"])
    frame = bytearray(frames.udp6(70))
    frame[15] |= 1 << 4
    switch.send(expected["enqueue_switch_ns"], SENDER_PORT, bytes(frame))
    (card,) = switch.postcards()
    ports = {"ingress_port": expected["ingress_port"], "egress_port": expected["egress_port"]}
    assert POSTCARD.encode(**(card.fields | ports)).hex() == VECTORS["dropped_udp_over_ipv6"]["bytes"]


def test_flags__mark_the_present_fields(switch):
    ip, ports, segment = {"HAS_IP"}, {"HAS_IP", "HAS_PORTS"}, {"HAS_IP", "HAS_PORTS", "HAS_TCP"}
    cases = [
        (frames.tcp(), segment, 6), (frames.tcp6(), segment, 6), (frames.udp(), ports, 17), (frames.udp6(), ports, 17),
        (frames.arp(), set(), 0), (frames.tcp(frag=100), ip, 6),
    ]  # fmt: skip
    for frame, _, _ in cases:
        switch.send(0, SENDER_PORT, frame)
    for card, (frame, flags, protocol) in zip(switch.postcards(), cases, strict=True):
        assert {name for name in segment if card.has(name)} == flags
        assert (card.ip_protocol, card.packet_bytes) == (protocol, len(frame))
        assert card.policy == POLICY["POLICY_TAIL_DROP"]


def test_calibration__a_prime_number_of_packets_gives_as_many_postcards(switch):
    """1009 packets in bursts that overflow the queue: one postcard each, numbered without a gap in both streams."""
    switch.policy(TailDrop(7))
    for number, frame in enumerate(frames.numbered(1009)):
        switch.send(number // 13 * 200_000, SENDER_PORT, frame)
    cards = switch.postcards()
    assert len(cards) == 1009
    assert sorted(card.tcp_seq for card in cards) == list(range(1009))
    for at_ingress in (False, True):
        stream = [card.card_seq for card in cards if card.has("AT_INGRESS") == at_ingress]
        assert stream == list(range(len(stream)))
        assert len(stream) > 100
    assert len(switch.frames_to(RECEIVER_PORT)) == sum(not card.has("DROPPED") for card in cards)
    assert switch.counter("arrivals", RECEIVER_PORT) == 1009
    assert switch.counter("postcards_made", COLLECTOR_PORT) == 1009


def test_depth__survives_the_wrap_of_its_counters(switch):
    for name in ("admitted", "departed"):
        switch.preset(f"{name}_packets", 0xFFFFFFFE)
        switch.preset(f"{name}_bytes", 0xFFFFFFFF)
    for _ in range(5):
        switch.send(0, SENDER_PORT, frames.tcp(100))
    assert [(card.depth_packets, card.depth_bytes) for card in switch.postcards()] == [(n, 100 * n) for n in range(5)]


def test_postcards__never_make_postcards_and_can_be_switched_off(switch):
    switch.policy(TailDrop(1000), COLLECTOR_PORT)
    switch.postcards_of(COLLECTOR_PORT)
    switch.send(0, SENDER_PORT, frames.tcp())
    assert len(switch.frames_to(COLLECTOR_PORT)) == 1
    switch.postcards_of(RECEIVER_PORT, None)
    switch.send(1000, SENDER_PORT, frames.tcp(100))
    assert len(switch.frames_to(COLLECTOR_PORT)) == 1
    assert switch.counter("arrivals", RECEIVER_PORT) == 2


def test_sojourn__of_more_than_32_bits_fits(switch):
    """A frame needs 12 s on a link of 1 kb/s: more ns than 32 bits hold."""
    switch.control.set_port(RECEIVER_PORT, rate=1000)
    switch.send(0, SENDER_PORT, frames.tcp())
    (card,) = switch.postcards()
    assert card.sojourn_ns == (1514 + 24) * 8 * 1_000_000


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
