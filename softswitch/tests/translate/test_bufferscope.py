# SPDX-License-Identifier: MIT
"""The real program under the sanitizers: IP frames and ARP, cut everywhere, under each policy that drops or marks."""

from __future__ import annotations

import random
import struct

import pytest

from wire.formats import HERE as WIRE
from wire.formats import Format

from .conftest import Switch

PROGRAM = "bufferscope"

CARD = Format.load(WIRE / "postcard.def", "big")
MAC = bytes.fromhex("02bf00000002")


def ethernet(ether_type: int) -> bytes:
    return MAC + bytes.fromhex("02bf00000001") + ether_type.to_bytes(2, "big")


def frames() -> list[bytes]:
    tcp = struct.pack(">HHIIBBHHH", 30000, 5201, 7, 9, 0x50, 0x10, 100, 0xAAAA, 0)
    udp = struct.pack(">HHHH", 1, 2, 12, 0)
    ipv4 = struct.pack(">BBHHHBBH", 0x45, 2, 60, 1, 0x4000, 64, 6, 0x1234) + bytes([10, 77, 0, 1, 10, 77, 0, 2])
    ipv6 = struct.pack(">IHBB", 0x60200000, 40, 6, 64) + bytes(range(32))
    return [
        ethernet(0x0800) + ipv4 + tcp + bytes(range(20)),
        ethernet(0x0800) + ipv4[:9] + b"\x11" + ipv4[10:] + udp + b"data",
        ethernet(0x0800) + b"\x46" + ipv4[1:] + bytes(4) + tcp,
        ethernet(0x86DD) + ipv6 + tcp + bytes(40),
        ethernet(0x86DD) + ipv6[:6] + b"\x11" + ipv6[7:] + udp,
        ethernet(0x0806) + bytes(46),
    ]


@pytest.fixture
def watched(switch: Switch) -> Switch:
    switch.do(f"table set forward 0x{MAC.hex()} = send_to 2")
    switch.do("table set queue_policy.queue_policy 2 = tail_drop 1000000 0")
    switch.do("table set postcards 2 = report 77 1")
    switch.do("table default collector send_to_collector 0x02bf00000103 0x02bf00000003 0x0a4e0001 0x0a4e0002 5577 5577")
    switch.command("mirror 1 3")
    return switch


def card_of(frame: bytes) -> dict[str, int]:
    assert len(frame) == 14 + 20 + 8 + CARD.length
    return CARD.decode(frame[42:])


def test_postcard__describes_a_forwarded_packet_which_leaves_unchanged(watched: Switch) -> None:
    watched.command("std ingress_global_timestamp 1000")
    watched.command("std egress_global_timestamp 1250")
    for number, frame in enumerate(frames()):
        out = watched.send(frame)
        assert [(kind, port) for kind, port, _ in out] == [("normal", "2"), ("egress_clone", "3")]
        assert out[0][2] == frame
        card = card_of(out[1][2])
        assert (card["card_seq"], card["switch_id"], card["egress_port"]) == (number, 77, 2)
        assert card["packet_bytes"] == len(frame)
        assert (card["enqueue_switch_ns"], card["sojourn_ns"], card["depth_packets"]) == (1000, 250, 0)


def test_drop__at_the_threshold_makes_a_postcard_of_ingress(watched: Switch) -> None:
    watched.do("table set queue_policy.queue_policy 2 = tail_drop 0 0")
    out = watched.send(frames()[0])
    assert [kind for kind, _, _ in out] == ["dropped", "ingress_clone"]
    card = card_of(out[1][2])
    assert card["flags"] & CARD.const["POSTCARD_DROPPED"]
    assert card["flags"] & CARD.const["POSTCARD_AT_INGRESS"]
    assert (card["tcp_seq"], card["src_port"], card["src_addr"]) == (7, 30000, 0xFFFF << 32 | 0x0A4D0001)
    size = len(frames()[0])
    assert watched.do("counter read arrival_drops") == [f"2 1 {size}"]


def test_garbage__of_any_length_under_any_policy(watched: Switch) -> None:
    rng = random.Random(12)
    policies = ["tail_drop 0 0", "tail_drop 9 1", "ecn 0 100000 0", "ecn 0 0 1"]
    policies += ["egress_threshold 0 1 0", "egress_threshold 0 0 1"]
    known = frames()
    for step in range(1500):
        if step % 50 == 0:
            watched.do(f"table set queue_policy.queue_policy 2 = {rng.choice(policies)}")
        frame = bytearray(rng.choice(known))
        for _ in range(rng.choice([0, 0, 1, 3])):
            frame[rng.randrange(6, len(frame))] = rng.getrandbits(8)
        cut = bytes(frame[: rng.choice([len(frame), rng.randrange(len(frame) + 1)])])
        for _, _, out in watched.send(cut, port=rng.randrange(4)):
            assert len(out) in (0, len(cut), 42 + CARD.length)
