# SPDX-License-Identifier: MIT
"""Several queues at a port: order and times of departures to the ns, lengths, limits; against models that share nothing
with the switch (scheduler_model.py), and against simple_switch.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import pytest

from p4src.tests import bmv2_target

from .core_driver import Core, departures, frame_to, wire_bits
from .scheduler_model import Arrival, Departure, FlowQueues, Pick, paced, round_robin, shared_link, strict
from .test_core import EGRESS_DROP, MIRROR_EGRESS, record
from .translate.conftest import Switch
from .translate.test_queues import Head, write

QUEUES = 8
PRIORITY = 16  # times the priority: the upper half of the byte in which a frame asks for special treatment


def traffic(rng: random.Random, step_ns: int) -> list[Arrival]:
    """Bursts to some of the queues, and pauses in which all queues run empty."""
    arrivals, now_ns = [], 1
    for _ in range(1500):
        now_ns += rng.choice((0, rng.randrange(step_ns), rng.randrange(step_ns)))
        if rng.random() < 0.01:
            now_ns += 40 * step_ns
        arrivals.append(Arrival(now_ns, rng.randrange(40, 1515), rng.choice((0, 1, 1, 5, 7))))
    return arrivals


def run(core: Core, arrivals: list[Arrival], dropped: list[bool], rng: random.Random) -> list[Departure]:
    """The departures that the postcards of port 2 report; each postcard has the index of its packet."""
    core.set("mirror set 1 3", f"test mirror {MIRROR_EGRESS}")
    outputs = []
    for index, packet in enumerate(arrivals):
        ask = packet.queue * PRIORITY + (EGRESS_DROP if dropped[index] else 0)
        assert core.receive(packet.at_ns, 1, frame_to(2, packet.size, ask)) == 0
        if not rng.randrange(20):
            outputs += core.run(packet.at_ns)
    outputs += core.run()
    cards = [record(output) for output in outputs if output.port == 3]
    indexes: dict[Arrival, list[int]] = defaultdict(list)
    for index, packet in enumerate(arrivals):
        indexes[packet].append(index)
    for card in cards:
        assert card["found_packets"] == card["enq_qdepth"]
        assert card["left_packets"] == card["deq_qdepth"]
    return [
        Departure(
            indexes[Arrival(card["ingress_ns"], card["packet_length"], card["qid"])].pop(0),
            card["egress_ns"], card["found_packets"], card["found_bytes"], card["left_packets"],
        )
        for card in cards
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", ["strict", "drr", "fq"])
def test_shared_link__equals_an_independent_model(kind: str, seed: int) -> None:
    rng = random.Random(f"{kind} {seed}")
    rate_bps, limit = rng.choice((1_000_000_000, 333_333_333, 10_000_000_007)), rng.choice((3, 20, 200))
    arrivals = traffic(rng, int(2.2 * wire_bits(780) * 10**9 / rate_bps))
    dropped = [rng.random() < 0.1 * (seed % 2) for _ in arrivals]
    quanta = [rng.choice((64, 500, 1514, 9000)) for _ in range(QUEUES)]
    core = Core(packets=8192)
    core.set(
        f"port set 2 rate {rate_bps}", f"queue scheduler 2 {kind} queues {QUEUES}",
        f"queue set 2 all limit_packets {limit}",
        *(f"queue set 2 {number} quantum {quantum}" for number, quantum in enumerate(quanta)),
    )  # fmt: skip
    pick: Pick = strict if kind == "strict" else round_robin(quanta) if kind == "drr" else FlowQueues(quanta)
    model = shared_link(arrivals, QUEUES, rate_bps, pick, limit, dropped.__getitem__)
    assert run(core, arrivals, dropped, rng) == model
    assert [packet.index for packet in model] != sorted(packet.index for packet in model)
    stats = core.stats()
    assert stats["port.2.queue_drops"] == len(arrivals) - len(model)
    assert (stats["port.2.queue_packets"], stats["packets_used"]) == (0, 0)


@pytest.mark.parametrize("seed", range(8))
def test_bmv2__equals_an_independent_model(seed: int) -> None:
    rng = random.Random(seed)
    limit = rng.choice((3, 20, 200))
    # Whole us: packets of several queues wait for the same ns.
    arrivals = [replace(packet, at_ns=packet.at_ns // 1000 * 1000) for packet in traffic(rng, 20_000)]
    rates_pps = [rng.choice((0, 25_000, 100_000, 333_333, 1_000_000)) for _ in range(QUEUES)]
    core = Core(packets=8192)
    core.set(
        f"queue scheduler 2 bmv2 queues {QUEUES}", f"queue set 2 all limit_packets {limit}",
        *(f"queue set 2 {number} rate {rate}" for number, rate in enumerate(rates_pps)),
    )  # fmt: skip
    model = paced(arrivals, rates_pps, limit)
    assert run(core, arrivals, [False] * len(arrivals), rng) == model


def test_round_robin__shares_the_link_by_quantum() -> None:
    core = Core()
    core.set("port set 2 rate 1000000000", "queue scheduler 2 drr queues 2", "queue set 2 1 quantum 4542")
    for _ in range(400):
        for queue in (0, 1):
            core.receive(0, 1, frame_to(2, 1514, queue * PRIORITY, bytes([queue])))
    sent = [output.frame[-1] for output in core.run()][:400]
    assert 0.745 < sum(sent) / 400 < 0.755


def test_priority__without_a_queue_goes_to_the_highest_and_is_dropped_like_simple_switch_does() -> None:
    for kind, left, drops in (("strict", 2, 0), ("drr", 2, 0), ("fq", 2, 0), ("bmv2", 1, 1)):
        core = Core()
        core.set(f"queue scheduler 2 {kind} queues 4", "mirror set 1 3", f"test mirror {MIRROR_EGRESS}")
        for priority in (3, 4):
            core.receive(0, 1, frame_to(2, 100, priority * PRIORITY))
        cards = [record(output) for output in core.run() if output.port == 3]
        assert [card["qid"] for card in cards] == [3] * left
        assert core.stats()["priority_drops"] == drops


def test_limits__of_a_queue_and_of_all_queues_of_a_port() -> None:
    core = Core()
    core.set("port set 2 rate 1000000000 limit_packets 5", "queue scheduler 2 strict queues 2")
    core.set("queue set 2 1 limit_packets 2", "queue set 2 0 limit_bytes 400")
    for priority in (1, 1, 1, 0, 0, 0, 0, 0):
        core.receive(0, 1, frame_to(2, 100, priority * PRIORITY))
    core.advance(0)
    shown = dict(line.split() for line in core.control("queue show 2")[1:])
    assert [shown[f"queue.{queue}.{name}"] for name in ("packets", "drops") for queue in (0, 1)] == ["3", "2", "2", "1"]
    assert (core.stats()["port.2.queue_packets"], core.stats()["port.2.queue_drops"]) == (5, 3)
    core.set("port set 2 limit_packets 0")
    for _ in range(3):
        core.receive(1, 1, frame_to(2))
    core.advance(1)
    assert core.stats()["port.2.queue_bytes"] == 600, "queue 0 holds 400 bytes"
    assert len(departures(core.run())) == 6


def test_scheduler__keeps_departures_of_one_queue_as_they_were() -> None:
    """All packets in one queue: any scheduler with a link is a FIFO queue, on a link that changes, too."""
    rng = random.Random(5)
    found = []
    for kind in ("fifo", "strict", "drr", "fq"):
        rng.seed(5)
        core = Core(packets=8192, rate_entries=8)
        core.set(f"queue scheduler 2 {kind}", "port set 2 rate 1000000000 drop_cost 300 limit_packets 30 delay 70")
        core.set("schedule steps 2 0 1000000000 900000 0 1900000 300000000", "schedule start 2 500000")
        now_ns = 0
        for _ in range(1000):
            now_ns += rng.randrange(8000)
            core.receive(now_ns, 1, frame_to(2, rng.randrange(60, 1514), EGRESS_DROP * (rng.random() < 0.1)))
        found.append(([(output.due_ns, output.frame) for output in core.run()], core.stats()["port.2.queue_drops"]))
    assert found[0] == found[1] == found[2] == found[3]
    assert found[0][1]


def test_requests__about_queues_name_the_mistake() -> None:
    core = Core(ports=tuple(range(1, 11)))
    assert core.control("queue show 2") == ["ok", "scheduler fifo", "queues 1"]
    for request, named in {
        "queue": "queue scheduler PORT KIND",
        "queue show 12": "no such port '12'",
        "queue show 2 2": "unexpected '2'",
        "queue set 2 0 rate 5": "the port has one queue",
        "queue scheduler 2 fair": "scheduler 'fair': fifo, strict, drr, fq or bmv2",
        "queue scheduler 2 fifo queues 2": "queues '2'",
        "queue scheduler 2 drr queues 33": "queues '33': 0, or from 1 to 32",
    }.items():
        assert named in core.control(request)[0], request
    core.set("queue scheduler 2 drr queues 4")
    for request, named in {
        "queue set 2 4 rate 5": "queue '4': from 0 to 3",
        "queue set 2": "queue '': from 0 to 3",
        "queue set 2 all quantum 63": "quantum '63': 0, or from 64 to 1000000",
        "queue set 2 all rate": "rate ''",
    }.items():
        assert named in core.control(request)[0], request
    core.set("port set 2 rate 1000")
    core.receive(0, 1, frame_to(2))
    core.advance(0)
    assert "not empty" in core.control("queue scheduler 2 fifo")[0]
    core.set(*(f"queue scheduler {port} strict" for port in range(3, 10)))
    assert "8 ports have a scheduler already" in core.control("queue scheduler 10 strict")[0]
    core.set("queue scheduler 9 fifo", "queue scheduler 10 strict")


# simple_switch

RATES_PPS = (4, 8, 7, 0)
BMV2_LIMIT = 6
# Milliseconds and priority. Priority 5 has no queue. No two packets leave within 20 ms of each other.
SENT_MS = [
    (0, 0),
    (30, 1),
    (60, 2),
    *[(90, priority) for priority in (2, 0, 1, 1, 2, 0, 1, 1, 1, 1, 1)],
    (95, 5),
    (120, 3),
]


@pytest.mark.software
def test_bmv2__departs_in_the_order_of_simple_switch_with_its_lengths() -> None:
    if reason := bmv2_target.why_not():
        pytest.skip(f"bmv2: {reason}")
    program = write()
    frames = [(at_ms, Head(priority).pack()) for at_ms, priority in SENT_MS]
    core = Switch(program)
    core.set("queue scheduler 2 bmv2 queues 4", f"queue set 2 all limit_packets {BMV2_LIMIT}")
    core.set(*(f"queue set 2 {queue} rate {rate}" for queue, rate in enumerate(RATES_PPS)))
    for at_ms, frame in frames:
        assert core.receive(10**9 + at_ms * 10**6, 1, frame) == 0
    ours = core.run()
    assert min(after.departure_ns - before.departure_ns for before, after in pairwise(ours)) > 20_000_000

    with bmv2_target.Bmv2(program, "--priority-queues", "4") as bmv2:
        for queue, rate in enumerate(RATES_PPS):
            bmv2.thrift.set_egress_priority_queue_depth(2, queue, BMV2_LIMIT)
            bmv2.thrift.set_egress_priority_queue_rate(2, queue, rate)
        time.sleep(0.3)  # longer than each queue's gap
        start_s = time.monotonic()
        for at_ms, frame in frames:
            time.sleep(max(0.0, start_s + at_ms / 1000 - time.monotonic()))
            bmv2.ports.send(1, frame)
        theirs: list[tuple[int, bytes]] = []
        end_s = start_s + 3
        while len(theirs) < len(ours) and time.monotonic() < end_s:
            theirs += bmv2.ports.until(end_s)
        theirs += bmv2.ports.receive(0.2)
    assert len(ours) < len(frames)
    assert [Head.unpack(frame) for _, frame in theirs] == [
        Head.unpack(output.frame)._replace(found=0) for output in ours
    ]
