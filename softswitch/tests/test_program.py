# SPDX-License-Identifier: MIT
"""The compiled P4 program in the core: the postcards it emits against the independent model of a queue."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

import pytest

from wire.wire import POSTCARD

from .core_driver import Core, SentFrame, make
from .fifo_model import fifo

RATE_BPS = 200_000_000
HEADERS_BYTES = 14 + 20 + 8
DROPPED = POSTCARD.const["POSTCARD_DROPPED"]


def switch(policy: str) -> Core:
    core = Core("p4", packets=8192)
    core.set(f"port set 2 rate {RATE_BPS} delay 5000000", "mirror set 1 3 truncate 256")
    core.set("table set forward 0x02bf00000002 = send_to 2", "table set postcards 2 = report 7 1")
    core.set(f"table set queue_policy 2 = {policy}")
    core.set("table default collector send_to_collector 0x02bf00000103 0x02bf00000003 0x0a4e0001 0x0a4e0002 5577 5577")
    return core


def udp(length: int, number: int) -> bytes:
    addresses = b"\x0a\x4d\0\1\x0a\x4d\0\2"
    ip = struct.pack(">BBHHHBBH8s", 0x45, 0, length - 14, number & 0xFFFF, 0, 64, 17, 0, addresses)
    head = bytes.fromhex("02bf0000000202bf000000010800") + ip + struct.pack(">HHHH", 30000, 5201, length - 34, 0)
    return head + bytes(length - len(head))


def cards(outputs: list[SentFrame]) -> Iterator[dict[str, int]]:
    for output in outputs:
        if output.port == 3:
            assert len(output.frame) == HEADERS_BYTES + POSTCARD.length
            yield POSTCARD.decode(output.frame[HEADERS_BYTES:])


def random_arrivals(rng: random.Random, count: int) -> list[tuple[int, int]]:
    arrivals, now_ns = [], 10**15
    for _ in range(count):
        # Bursts at the same ns, gaps around the service time, and departures that coincide with arrivals.
        now_ns += rng.choice((0, 61520, rng.randrange(150_000)))
        arrivals.append((now_ns, rng.choice((1514, 1514, 64, rng.randrange(60, 1515)))))
    return arrivals


def feed(core: Core, arrivals: list[tuple[int, int]], rng: random.Random) -> list[SentFrame]:
    outputs = []
    for number, (arrival_ns, length) in enumerate(arrivals):
        assert core.receive(arrival_ns, 1, udp(length, number)) == 0
        if not rng.randrange(20):
            outputs += core.run(arrival_ns)
    return outputs + core.run()


@pytest.mark.parametrize(("seed", "in_bytes"), [(0, False), (1, True), (2, False), (2, True)])
def test_tail_drop__depths_and_times_equal_the_model(seed: int, in_bytes: bool) -> None:
    rng = random.Random(seed)
    threshold = rng.choice((1, 7, 40)) * (900 if in_bytes else 1)
    core = switch(f"tail_drop {threshold} {int(in_bytes)}")
    arrivals = random_arrivals(rng, 3001)
    outputs = feed(core, arrivals, rng)
    model = fifo(arrivals, RATE_BPS, admits=lambda _, packets, size: (size if in_bytes else packets) < threshold)
    reported = list(cards(outputs))
    expected = []
    for packet, (arrival_ns, length) in zip(model, arrivals, strict=True):
        sojourn_ns = 0 if packet.departure_ns is None else packet.departure_ns - arrival_ns
        depths = (packet.depth_packets, packet.depth_bytes)
        expected.append((arrival_ns % 2**48, *depths, sojourn_ns, packet.dropped, length))
    names = ("enqueue_switch_ns", "depth_packets", "depth_bytes", "sojourn_ns", "flags", "packet_bytes")
    actual = [[card[name] for name in names] for card in reported]
    assert sorted((*at, bool(flags & DROPPED), size) for *at, flags, size in actual) == sorted(expected)
    sent = [output.due_ns for output in outputs if output.port == 2]
    assert sent == [packet.departure_ns + 5_000_000 for packet in model if packet.departure_ns is not None]
    assert any(packet.dropped for packet in model)
    assert "can only be read" in core.control("register write queue_packets 2 5")[0]


def test_bodies__outside_of_the_core_give_the_same_frames_and_postcards() -> None:
    whole, split = switch("egress_threshold 9 0 0"), switch("egress_threshold 9 0 0")
    for number, (arrival_ns, length) in enumerate(random_arrivals(random.Random(1), 2000)):
        frame = udp(length, number)[:-1] + bytes([number % 256])
        assert whole.receive(arrival_ns, 1, frame) == split.receive_with_body(arrival_ns, 1, frame) == 0
    outputs = whole.run()
    assert outputs == split.run()
    assert any(card["flags"] & DROPPED for card in cards(outputs))
    assert not split.bodies


@pytest.mark.parametrize("pipeline", ["PIPELINE=test", "PIPELINE=p4"])
def test_freestanding__core_and_pipeline_need_no_libc(pipeline: str) -> None:
    make(pipeline, "freestanding")
