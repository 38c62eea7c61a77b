# SPDX-License-Identifier: MIT
"""The switch core in virtual time, to the ns, with a pipeline written by hand (l2_mirror_pipeline.c)."""

from __future__ import annotations

import bisect
import random
import struct
import weakref

import pytest

from .core_driver import NEVER_NS, Core, SentFrame, departures, frame_to, wire_bits
from .fifo_model import Fate, fifo

INGRESS_DROP, EGRESS_DROP, MULTICAST, ABSENT_SESSION = 1, 2, 4, 8
MIRROR_INGRESS, MIRROR_EGRESS, MIRROR_COPIES = 1, 2, 4
ENOBUFS, EMSGSIZE, ENODEV = -105, -90, -19
RECORD = struct.Struct(">HHHIIIIIQQIIIIIIH")
RECORD_NAMES = (
    "kind", "ingress_port", "egress_port", "packet_length", "enq_qdepth", "deq_qdepth",
    "enq_timestamp", "deq_timedelta", "ingress_ns", "egress_ns", "fields", "copied",
    "found_packets", "found_bytes", "left_packets", "left_bytes", "qid",
)  # fmt: skip


def record(output: SentFrame) -> dict[str, int]:
    return dict(zip(RECORD_NAMES, RECORD.unpack_from(output.frame, 14), strict=True))


def test_core__frees_its_memory_without_the_cycle_collector() -> None:
    core = Core()
    left = weakref.ref(core)
    del core
    assert left() is None


def test_departure__keeps_its_fraction_only_while_the_link_is_busy() -> None:
    core = Core()
    core.set("port set 2 rate 3000000000")  # 124 bytes: 330.67 ns
    core.receive(0, 1, frame_to(2))
    core.receive(330, 1, frame_to(2))  # arrives before the transmission ends at 330.67 ns: back to back
    core.receive(5000, 1, frame_to(2))
    outputs = core.run()
    assert departures(outputs) == [330, 661, 5330]
    assert [output.back_to_back for output in outputs] == [False, True, False]


def test_order__simultaneous_arrivals_keep_the_order_they_were_given_in() -> None:
    core = Core(ports=(1, 2, 3, 4))
    for index, port in enumerate((4, 1, 3, 1, 4)):
        core.receive(77, port, frame_to(2, fill=bytes([index])))
    assert [output.frame[-1] for output in core.run()] == [0, 1, 2, 3, 4]


def test_advance__does_events_up_to_and_including_its_time() -> None:
    core = Core()
    core.set("port set 2 rate 992000000 delay 500")  # the delay takes no capacity
    core.receive(10, 1, frame_to(2))
    core.receive(10, 1, frame_to(2))
    assert core.next_event_ns() == 10
    core.advance(10)
    assert (core.next_event_ns(), core.next_output_ns()) == (1010, NEVER_NS)
    core.advance(1009)
    assert core.next_output_ns() == NEVER_NS
    core.advance(1010)
    assert core.next_output_ns() == 1510
    assert core.take(1509) == []
    assert [output.due_ns for output in core.take(1510)] == [1510]
    assert [output.due_ns for output in core.run()] == [2510]


def test_egress__a_dropped_frame_takes_the_ports_share_of_its_link_time() -> None:
    for drop_cost, departed in ((0, [1000, 2000, 3000]), (250, [1000, 2500, 3500])):  # 250 of 1000 ns for each drop
        core = Core()
        core.set(f"port set 2 rate 992000000 drop_cost {drop_cost}")
        for ask in (0, EGRESS_DROP, EGRESS_DROP, 0, 0):
            core.receive(0, 1, frame_to(2, 100, ask))
        assert departures(core.run()) == departed
        assert core.control("port set 2 drop_cost 1001")[0].startswith("error ")


def test_mirror__clones_of_both_pipelines_leave_at_the_time_of_their_original() -> None:
    core = Core()
    core.set("port set 2 rate 992000000", "mirror set 1 3 truncate 40")
    core.set(f"test mirror {MIRROR_INGRESS | MIRROR_EGRESS}")
    core.receive(10, 1, frame_to(2))
    outputs = [output for output in core.run() if output.port == 3]
    assert [output.departure_ns for output in outputs] == [10, 1010]
    cards = [record(output) for output in outputs]
    assert [(card["kind"], card["copied"], card["fields"]) for card in cards] == [(1, 40, 7), (2, 40, 7)]
    core.set("mirror set 1 3 truncate 1", f"test mirror {MIRROR_INGRESS}")
    core.receive(5000, 1, frame_to(2, ask=INGRESS_DROP))
    (output,) = core.run()
    assert record(output)["copied"] == 15  # what the parser reads
    assert core.stats()["port.1.ingress_drops"] == 1


def test_mirror__without_session_or_of_too_many_generations_is_counted() -> None:
    core = Core()
    core.set("mirror set 1 3", f"test mirror {MIRROR_EGRESS | MIRROR_COPIES}")
    core.receive(0, 1, frame_to(2))
    assert len(core.run()) == 9
    assert core.stats()["clone_drops"] == 1
    core.receive(1, 1, frame_to(2, ask=ABSENT_SESSION))
    assert len(core.run()) == 1
    assert core.stats()["clone_drops"] == 2


def test_pool__exhaustion_is_counted_and_ends_when_packets_leave() -> None:
    core = Core(packets=16)
    core.set("port set 2 delay 1000000")
    results = [core.receive(0, 1, frame_to(2)) for _ in range(20)]
    assert results == [0] * 14 + [ENOBUFS] * 6  # an eighth is kept for clones
    assert len(core.run()) == 14
    assert core.receive(2000000, 1, frame_to(2)) == 0
    stats = core.stats()
    assert (stats["pool_exhausted"], stats["port.1.rx_frames"], stats["packets_used_max"]) == (6, 21, 14)


def test_pool__a_clone_without_a_packet_is_counted() -> None:
    core = Core(packets=16)
    core.set("mirror set 1 3", f"test mirror {MIRROR_INGRESS}", "port set 2 rate 1000000000")
    for _ in range(14):
        core.receive(0, 1, frame_to(2))
    assert len(core.run()) == 14 + 2
    assert core.stats()["pool_exhausted"] == 12


def test_receive__bad_frames_are_refused_and_counted() -> None:
    core = Core(frame_bytes=256)
    assert core.receive(0, 1, frame_to(2, 257)) == EMSGSIZE
    assert core.receive(0, 1, b"") == EMSGSIZE
    assert core.receive(0, 9, frame_to(2)) == ENODEV
    assert core.receive(0, 1, b"\1") == 0
    assert core.receive(0, 1, frame_to(2, 256)) == 0
    core.run()
    stats = core.stats()
    assert (stats["port.1.oversize"], stats["port.1.ingress_drops"], stats["port.2.departed"]) == (2, 1, 1)


def test_receive__a_frame_older_than_virtual_time_is_clamped() -> None:
    core = Core()
    core.receive(1000, 1, frame_to(2))
    core.run(5000)
    core.receive(1000, 1, frame_to(2))  # the last event was at 1000: in time
    core.receive(999, 1, frame_to(2))
    assert departures(core.run()) == [1000, 1000]
    assert core.stats()["arrivals_clamped"] == 1


def test_enqueue__to_a_port_that_is_not_there_is_counted() -> None:
    core = Core()
    for port in (7, 0xFF):
        core.receive(0, 1, frame_to(port))
    core.receive(0, 1, frame_to(2, ask=MULTICAST))
    assert core.run() == []
    assert (core.stats()["port_unknown_drops"], core.stats()["multicast_drops"]) == (2, 1)


def left_bytes(model: list[Fate], sizes: list[int]) -> list[int]:
    """For each admitted packet, the bytes that it leaves queued: later packets that arrived before its departure."""
    packets = [(packet.arrival_ns, packet.departure_ns, size) for packet, size in zip(model, sizes, strict=True)]
    admitted = [(arrival_ns, until_ns, size) for arrival_ns, until_ns, size in packets if until_ns is not None]
    left = []
    for index, (_, until_ns, _) in enumerate(admitted):
        end = bisect.bisect_left(admitted, until_ns, index + 1, key=lambda packet: packet[0])
        left.append(sum(size for _, _, size in admitted[index + 1 : end]))
    return left


@pytest.mark.parametrize("seed", range(6))
def test_queue__equals_an_independent_model(seed: int) -> None:
    rng = random.Random(seed)
    rate_bps = rng.choice((1_000_000_000, 400_000_000_000, 333_333_333, 10_000_000_007))
    limit = (3, 20, 200)[seed // 2]
    kind, unit = ("bytes", 1000) if seed % 2 else ("packets", 1)
    step_ns = int(2.2 * wire_bits(780) * 10**9 / rate_bps)
    arrivals, now_ns = [], 1
    for _ in range(2000):
        now_ns += rng.choice((0, rng.randrange(step_ns)))
        arrivals.append((now_ns, rng.randrange(40, 1515)))
    dropped = [rng.random() < 0.1 for _ in arrivals]
    core = Core(packets=8192)
    core.set(
        f"port set 2 rate {rate_bps} limit_{kind} {limit * unit}", "mirror set 1 3", f"test mirror {MIRROR_EGRESS}"
    )
    outputs = []
    for index, (arrival_ns, length) in enumerate(arrivals):
        core.receive(arrival_ns, 1, frame_to(2, length, EGRESS_DROP if dropped[index] else 0))
        if not rng.randrange(20):
            outputs += core.run(arrival_ns)
    outputs += core.run()

    def admits(index: int, packets: int, size: int) -> bool:
        return size + arrivals[index][1] <= limit * unit if kind == "bytes" else packets < limit

    model = fifo(arrivals, rate_bps, admits, drops_at_egress=dropped.__getitem__)
    admitted = [packet for packet in model if packet.departure_ns is not None]
    assert departures(outputs) == [packet.departure_ns for packet in admitted if not packet.dropped]
    cards = [record(output) for output in outputs if output.port == 3]
    assert [
        (card["ingress_ns"], card["enq_qdepth"], card["found_packets"], card["found_bytes"], card["egress_ns"])
        for card in cards
    ] == [
        (packet.arrival_ns, packet.depth_packets, packet.depth_packets, packet.depth_bytes, packet.departure_ns)
        for packet in admitted
    ]
    for card in cards:
        assert card["left_packets"] == card["deq_qdepth"]
        assert card["deq_timedelta"] == card["egress_ns"] - card["ingress_ns"]
        assert (card["ingress_port"], card["egress_port"]) == (1, 2)
    sizes = [size for (_, size), packet in zip(arrivals, model, strict=True) if packet.departure_ns is not None]
    assert [card["packet_length"] for card in cards] == sizes
    assert [card["left_bytes"] for card in cards] == left_bytes(model, [size for _, size in arrivals])
    assert core.stats()["port.2.queue_drops"] == len(model) - len(admitted)
    assert len(admitted) < len(model) or limit > 3, "the least limit must refuse packets"


def test_lookahead__is_the_smallest_delay_of_ports_that_are_no_mirror_target() -> None:
    core = Core()
    assert core.lookahead_ns() == 0
    core.set("port set 1 delay 700", "port set 2 delay 300")
    assert core.lookahead_ns() == 0
    core.set("mirror set 1 3")
    assert core.lookahead_ns() == 300
    core.set("mirror delete 1", "port set 3 delay 5")
    assert core.lookahead_ns() == 5
    core = Core()  # a mirror port that carries data counts
    core.set("port set 1 delay 300", "port set 2 delay 700", "mirror set 1 3", "mirror set 2 1")
    assert core.lookahead_ns() == 700, "nothing was forwarded yet: port 1 counts as a mirror port"
    core.receive(0, 2, frame_to(1))
    core.run()
    assert core.lookahead_ns() == 300
    core.set("mirror delete 2", "mirror set 3 1", f"test mirror {MIRROR_EGRESS}")
    assert core.lookahead_ns() == 300, "port 1 has carried data: a new mirror session does not change that"
    core.receive(0, 1, frame_to(2))
    assert [output.port for output in core.run()] == [3, 2]
    assert core.lookahead_ns() == 300, "port 3 has carried only copies"


@pytest.mark.parametrize(
    ("mirrored", "truncated"),
    [(0, ""), (MIRROR_INGRESS, " truncate 40"), (MIRROR_EGRESS, " truncate 700"), (MIRROR_INGRESS | 6, "")],
)
def test_bodies__outside_of_the_core_change_nothing(mirrored: int, truncated: str) -> None:
    rng = random.Random(f"{mirrored} {truncated}")
    whole, split = Core(packets=256), Core(packets=256)
    outputs: list[list[SentFrame]] = [[], []]
    for core in (whole, split):
        core.set("port set 2 rate 992000000 limit_packets 40 delay 5000", f"mirror set 1 3{truncated}")
        core.set(f"test mirror {mirrored}")
    for number in range(2000):
        ask = rng.choice((0, 0, 0, INGRESS_DROP, EGRESS_DROP, ABSENT_SESSION))
        length = rng.choice((60, 255, 256, 257, 1500, 2048, 4000))
        frame = frame_to(rng.choice((1, 2, 2, 2, 9)), length, ask, bytes([number % 256]))
        now_ns = number * rng.choice((2_000, 9_000))
        assert whole.receive(now_ns, 1, frame) == split.receive_with_body(now_ns, 1, frame)
        if not rng.randrange(30):
            for core, out in zip((whole, split), outputs, strict=True):
                out += core.run(now_ns)
    for core, out in zip((whole, split), outputs, strict=True):
        out += core.run()
    assert outputs[0] == outputs[1]
    assert whole.stats() == split.stats()
    assert len({len(output.frame) for output in outputs[0]}) > 4
    assert not split.bodies
