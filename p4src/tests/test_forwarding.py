# SPDX-License-Identifier: MIT
"""A frame to a known host leaves the switch unchanged, on the port of the host, unless a policy drops or marks it."""

import random

import pytest
from scapy.layers.inet import IP, TCP, fragment
from scapy.packet import Raw

from p4src.tests import frames
from p4src.tests.under_test import RECEIVER_PORT, SENDER_PORT

PASSES = [
    frames.tcp(), frames.tcp(60), frames.tcp(9014), frames.udp(), frames.tcp6(), frames.udp6(), frames.arp(),
    frames.tcp(100, options=frames.IP_OPTIONS),
    bytes(frames.ethernet()) [:12] + b"\x88\xb5" + bytes(50),  # an unknown ether type
    frames.tcp()[:14] + b"\x00" + frames.tcp()[15:],  # wrong IP version
]  # fmt: skip


def test_known_host__gets_the_frame_unchanged(switch):
    for frame in PASSES:
        switch.send(0, SENDER_PORT, frame)
    assert switch.frames_to(RECEIVER_PORT) == PASSES


@pytest.mark.parametrize("length", [1, 13, 14, 20, 40])
def test_frame_cut_short__passes_if_it_has_an_ethernet_header_of_a_known_host(switch, length):
    switch.send(0, SENDER_PORT, frames.tcp()[:length])
    assert switch.frames_to(RECEIVER_PORT) == [frames.tcp()[:length]][: length >= 14]
    assert switch.counter("unknown_hosts", SENDER_PORT) == (length < 14)


def test_fragments__pass_unchanged_and_in_order(switch):
    packet = IP(src=frames.SENDER, dst=frames.RECEIVER, id=7) / TCP(sport=30000, dport=5201) / Raw(bytes(4000))
    pieces = [bytes(frames.ethernet() / piece) for piece in fragment(packet, fragsize=1400)]
    for piece in pieces:
        switch.send(0, SENDER_PORT, piece)
    assert switch.frames_to(RECEIVER_PORT) == pieces
    with_ports = [bool(card.has("HAS_PORTS")) for card in switch.postcards()]
    assert with_ports == [True] + [False] * (len(pieces) - 1) or not any(with_ports)


def test_garbage__is_counted_and_never_changed(switch):
    """Random bytes after a known destination address come out unchanged, each frame with its postcard."""
    chance = random.Random(2)
    sent = []
    for at in range(2000):
        ether_type = chance.choice([b"\x08\x00", b"\x86\xdd", chance.randbytes(2)])
        payload = chance.randbytes(chance.randrange(90))
        sent.append(bytes.fromhex("02bf00000002") + chance.randbytes(6) + ether_type + payload)
        switch.send(at * 10_000, SENDER_PORT, sent[-1])
    assert switch.frames_to(RECEIVER_PORT) == sent
    assert len(switch.postcards()) == len(sent)
