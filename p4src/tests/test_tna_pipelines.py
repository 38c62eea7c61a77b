# SPDX-License-Identifier: MIT
"""Sends packets through ingress and egress of the TNA program, for both generations, on the soft switch's core. The
traffic manager between them is made for the test (programs/tna_pipelines.p4). TNA parsers and the chip are not tested.

In this traffic manager every packet takes three cells, and reaches its queue 400 ns after its arrival.
"""

import bisect
import collections
import random
from pathlib import Path

import pytest
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether

from p4src.compile import tofino, v1model
from p4src.tests import frames
from p4src.tests.under_test import (
    BUFFER_PACKETS,
    COLLECTOR_PORT,
    RECEIVER_PORT,
    ROOT,
    SENDER_PORT,
    SWITCH_ID,
    Postcard,
    SoftCore,
)
from softswitch.tests.core_driver import wire_bits
from wire.wire import DEPTH_BUCKETS, POLICY, POSTCARD

PROGRAMS = Path("p4src/tests/programs")
REFUSED_PORT = 4  # to which the traffic manager deflects refused packets
CELLS = 3
INGRESS_NS = 400
ECT, CE = 2, 3
UNIT = {name: POSTCARD.const[f"POSTCARD_DEPTH_{name}"] for name in ("CELLS", "UNKNOWN")}
GENERATIONS = [generation.target for generation in tofino.GENERATIONS]


class Pipelines(SoftCore):
    """The suite's switch with a TNA program, and a port for refused packets."""

    def __init__(self, generation: str) -> None:
        ports = (SENDER_PORT, RECEIVER_PORT, COLLECTOR_PORT, REFUSED_PORT)
        super().__init__(ports, str(PROGRAMS / f"build/{generation}.json"))
        self.configure()
        self.core.set(f"register write mirror_drop_port 0 {REFUSED_PORT}")
        self.limit(10**6)

    def limit(self, cells: int) -> None:
        """Sets the traffic manager's limit of the receiver's queue."""
        self.core.set(f"register write queue_limit_cells {RECEIVER_PORT} {cells}")

    def act(self, action: str, port: int = RECEIVER_PORT) -> None:
        self.core.set(f"table set queue_policy {port} = {action}")

    def arrive(self, frame: bytes, at_ns: int = 0, count: int = 1) -> None:
        for _ in range(count):
            self.send(at_ns, SENDER_PORT, frame)

    def packets(self, name: str) -> dict[int, int]:
        """Packets by cell of the counter, without zeros."""
        self.outputs()
        lines = self.core.control(f"counter read {name}")[1:]
        return {int(cell): int(packets) for cell, packets, _ in (line.split() for line in lines)}


@pytest.fixture(params=GENERATIONS)
def switch(request: pytest.FixtureRequest) -> Pipelines:
    return Pipelines(request.param)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_compiled_harness__is_not_older_than_its_sources(generation, monkeypatch):
    monkeypatch.chdir(ROOT)
    problem = v1model.check(PROGRAMS / f"{generation}.p4", PROGRAMS / "build", Path())
    assert problem is None, problem


def flags(card: Postcard) -> set[str]:
    return {name for name in ("DROPPED", "AT_INGRESS", "CE_MARKED", "ECT") if card.has(name)}


def ecn_of(frame: bytes) -> int:
    return Ether(frame)[IP].tos & 3


def test_postcard__describes_the_packet_and_makes_no_postcard(switch):
    switch.act("tail_drop 1000 0", COLLECTOR_PORT)
    switch.postcards_of(COLLECTOR_PORT)
    switch.core.set(f"register write egress_card_seq {RECEIVER_PORT} 0xffffffff")
    switch.arrive(frames.tcp(1000, ecn=ECT, seq=77))
    (card,) = switch.postcards()
    assert card.card_seq == 0xFFFFFFFF
    assert switch.frames_to(RECEIVER_PORT) == [frames.tcp(1000, ecn=ECT, seq=77)]
    assert flags(card) == {"ECT"}
    assert (card.version, card.switch_id) == (POSTCARD.const["POSTCARD_VERSION"], SWITCH_ID)
    assert (card.ingress_port, card.egress_port, card.queue_id) == (SENDER_PORT, RECEIVER_PORT, 0)
    assert (card.policy, card.threshold, card.packet_bytes) == (POLICY["POLICY_TAIL_DROP"], BUFFER_PACKETS, 1000)
    assert (card.depth_unit, card.depth_cells, card.depth_packets, card.depth_bytes) == (UNIT["CELLS"], 0, 0, 0)
    assert (card.src_port, card.dst_port, card.tcp_seq) == (30000, 5201, 77)
    switch.arrive(frames.tcp(), at_ns=10**9)
    assert switch.postcards()[-1].card_seq == 0


def test_refused_packets__get_postcards_of_their_own_numbers(switch):
    switch.limit(5 * CELLS)
    switch.arrive(frames.tcp(1000), count=8)
    queued, refused = [[c for c in switch.postcards() if c.has("AT_INGRESS") == at] for at in (False, True)]
    assert [(c.card_seq, c.depth_cells, c.depth_unit) for c in queued] == [
        (n, n * CELLS, UNIT["CELLS"]) for n in range(5)
    ]
    assert [(c.card_seq, c.depth_cells, c.depth_unit) for c in refused] == [(n, 0, UNIT["UNKNOWN"]) for n in range(3)]
    assert all(flags(c) == {"DROPPED", "AT_INGRESS"} and c.egress_port == RECEIVER_PORT for c in refused)
    assert [(c.enqueue_switch_ns, c.sojourn_ns) for c in refused] == [(INGRESS_NS, 0)] * 3
    assert len(switch.frames_to(RECEIVER_PORT)) == 5
    assert switch.frames_to(REFUSED_PORT) == []
    assert (switch.packets("arrivals"), switch.packets("arrival_drops")) == ({RECEIVER_PORT: 8}, {RECEIVER_PORT: 3})
    assert switch.packets("departure_drops") == {}
    switch.postcards_of(RECEIVER_PORT, None)
    switch.limit(CELLS)
    switch.arrive(frames.tcp(1000), at_ns=10**9, count=3)
    assert len(switch.postcards()) == 8
    assert switch.packets("arrival_drops") == {RECEIVER_PORT: 5}


def test_ecn__marks_capable_packets_by_the_depth_at_enqueue(switch):
    switch.act(f"ecn {3 * CELLS} 500 0")
    switch.arrive(frames.tcp(1000, ecn=1), count=1)
    switch.arrive(frames.tcp(1000, ecn=ECT), count=5)
    assert ["CE_MARKED" in flags(card) for card in switch.postcards()] == [False] * 3 + [True] * 3
    assert [ecn_of(frame) for frame in switch.frames_to(RECEIVER_PORT)] == [1, ECT, ECT, CE, CE, CE]
    for frame in switch.frames_to(RECEIVER_PORT):
        rebuilt = Ether(frame)
        del rebuilt[IP].chksum
        assert bytes(rebuilt) == frame
    assert (switch.packets("arrival_marks"), switch.packets("departure_marks")) == ({RECEIVER_PORT: 3}, {})


def test_ecn__drops_the_others_on_departure_and_the_traffic_manager_drops_all(switch):
    switch.act(f"ecn {2 * CELLS} 12 0")
    switch.limit(4 * CELLS)
    switch.arrive(frames.tcp(1000), count=6)
    cards = switch.postcards()
    assert [flags(card) for card in cards if not card.has("AT_INGRESS")] == [set()] * 2 + [{"DROPPED"}] * 2
    assert [card.card_seq for card in cards if not card.has("AT_INGRESS")] == [0, 1, 2, 3]
    assert len(switch.frames_to(RECEIVER_PORT)) == 2
    assert switch.packets("departure_drops") == switch.packets("arrival_drops") == {RECEIVER_PORT: 2}


@pytest.mark.parametrize(("mark", "ecn", "what"), [(0, ECT, "DROPPED"), (1, ECT, "CE_MARKED"), (1, 0, "DROPPED")])
def test_egress_threshold__goes_by_the_depth_at_dequeue(switch, mark, ecn, what):
    """Of 8 packets the first three leave 21, 18 and 15 cells behind."""
    switch.act(f"egress_threshold {5 * CELLS} {mark} 0")
    switch.arrive(frames.tcp(1000, ecn=ecn), count=8)
    cards = switch.postcards()
    assert [card.has(what) for card in cards] == [True] * 3 + [False] * 5
    assert [card.depth_cells for card in cards] == [n * CELLS for n in range(8)]
    assert len(switch.frames_to(RECEIVER_PORT)) == (8 if what == "CE_MARKED" else 5)
    for name, counter in (("DROPPED", "departure_drops"), ("CE_MARKED", "departure_marks")):
        assert switch.packets(counter) == ({RECEIVER_PORT: 3} if name == what else {})


def test_tail_drop__is_the_traffic_managers_alone(switch):
    """The program must not drop, even if the traffic manager's limit exceeds the table's threshold for a while."""
    switch.act(f"tail_drop {CELLS} 0")
    switch.limit(4 * CELLS)
    switch.arrive(frames.tcp(1000), count=4)
    assert [flags(card) for card in switch.postcards()] == [set()] * 4


def test_unwatched_packets__pass_unchanged_and_unknown_ones_do_not(switch):
    switch.act("unwatched")
    switch.limit(0)
    switch.arrive(frames.tcp(1000, ecn=ECT), count=3)
    switch.arrive(frames.tcp(100, dst="02:bf:00:00:00:77"))
    assert switch.frames_to(RECEIVER_PORT) == [frames.tcp(1000, ecn=ECT)] * 3
    assert switch.postcards() == []
    assert (switch.packets("arrivals"), switch.packets("unknown_hosts")) == ({}, {SENDER_PORT: 1})


def test_calibration__numbers_tell_of_every_arrival(switch):
    """1009 packets in bursts that overflow the queue; the histogram counts all queued packets."""
    switch.limit(7 * CELLS)
    for number, frame in enumerate(frames.numbered(1009)):
        switch.arrive(frame, at_ns=number // 13 * 200_000)
    cards = switch.postcards()
    assert sorted(card.tcp_seq for card in cards) == list(range(1009))
    streams = [[card.card_seq for card in cards if card.has("AT_INGRESS") == at] for at in (False, True)]
    assert [sorted(stream) for stream in streams] == [list(range(len(stream))) for stream in streams]
    assert min(map(len, streams)) > 100
    assert switch.packets("arrivals") == {RECEIVER_PORT: 1009}
    assert switch.packets("depth_histogram") == collections.Counter(
        RECEIVER_PORT * len(DEPTH_BUCKETS) + bisect.bisect_right(DEPTH_BUCKETS, card.depth_cells) - 1
        for card in cards
        if not card.has("AT_INGRESS")
    )


def test_times__are_exact_wherever_the_stamps_wrap(switch):
    """Arrivals around wrap-arounds of 18-bit and 32-bit stamps, up to 2^48 - 2^33 ns; sojourns from 12 to 147 ms, all
    beyond 18 bits of ns.
    """
    chance = random.Random(3)
    around = [1 << 18, 5 << 18, 1 << 32, 3 << 32, (1 << 40) + 5, 1 << 47, (1 << 48) - (1 << 33)]
    arrivals = sorted(base + chance.randrange(-1000, 1000) for base in around for _ in range(6))
    switch.core.set(f"port set {RECEIVER_PORT} rate 1000000")
    for frame, at_ns in zip(frames.numbered(len(arrivals)), arrivals, strict=True):
        switch.arrive(frame, at_ns=at_ns)
    ready, expected = 0, []
    for at_ns in arrivals:
        ready = max(ready, at_ns) + wire_bits(1514) * 1000
        expected.append((at_ns + INGRESS_NS, ready - at_ns))
    assert [
        (c.enqueue_switch_ns, c.sojourn_ns) for c in sorted(switch.postcards(), key=lambda c: c.tcp_seq)
    ] == expected
