# SPDX-License-Identifier: MIT
"""Postcards that the core makes itself: against those of our P4 program, and for what only other programs do."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from lib.frames import ETHERNET_BYTES, LEAST_FRAME_BYTES, WIRE_EXTRA_BYTES
from wire.formats import POSTCARD

from .core_driver import Core, SentFrame, frame_to
from .differential import frames
from .test_core import EGRESS_DROP, INGRESS_DROP, MIRROR_EGRESS, MULTICAST
from .translate import test_passes as passes

HEADERS_BYTES = 42
ADDRESSES = (
    "switch_id 7 switch_mac 0x02bf00000013 collector_mac 0x02bf00000003 "
    "switch_addr 0x0a000001 collector_addr 0x0a000002 src_port 5577 dst_port 5578"
)
WATCH = f"watch set 2 sender 1 collector 3 {ADDRESSES}"
# What the core does not know: the policy of the program.
OF_THE_POLICY = {"policy", "threshold"}


def flag(name: str) -> int:
    return POSTCARD.const[f"POSTCARD_{name}"]


def cards(outputs: list[SentFrame]) -> list[dict[str, int]]:
    return [POSTCARD.decode(output.frame[HEADERS_BYTES:]) for output in outputs if output.port == 3]


def heads(outputs: list[SentFrame]) -> list[tuple[int, bytes]]:
    """Time and headers of each postcard."""
    return [(output.due_ns, output.frame[:HEADERS_BYTES]) for output in outputs if output.port == 3]


def fates(outputs: list[SentFrame]) -> Counter[str]:
    """departed, marked, refused (dropped at arrival), dropped (at departure)."""
    names = {0: "departed", flag("CE_MARKED"): "marked", flag("DROPPED"): "dropped"}
    names[flag("DROPPED") | flag("AT_INGRESS")] = "refused"
    mask = flag("DROPPED") | flag("AT_INGRESS") | flag("CE_MARKED")
    return Counter(names[card["flags"] & mask] for card in cards(outputs))


def counts(core: Core) -> dict[str, tuple[int, ...]]:
    """`watch show`: name -> numbers."""
    return {name: tuple(map(int, numbers)) for name, *numbers in map(str.split, core.control("watch show")[1:])}


def untagged(seed: int, count: int) -> Iterator[bytes]:
    """Random frames for the receiver that our program can read: it does not look behind VLAN tags."""
    chance = random.Random(seed)
    kinds = (frames.ipv4, frames.ipv4, frames.ipv6, frames.arp, frames.garbage)
    for _ in range(count):
        rest = chance.choice(kinds)(chance)
        if rest[:2] not in (b"\x81\x00", b"\x88\xa8"):
            yield (bytes.fromhex("02bf0000000202bf00000001") + rest)[: chance.choice((14, 30, 40, 9000, 9000))]


@pytest.mark.parametrize("policy", ["tail_drop 6 0", "ecn 3 8 0", "egress_threshold 3 1 0", "tail_drop 1500 1"])
def test_postcard__is_that_of_our_p4_program(policy: str) -> None:
    program, core = (Core("p4", packets=16384, frame_bytes=9216) for _ in range(2))
    for each in (program, core):
        each.set("table set forward 0x02bf00000002 = send_to 2", f"table set queue_policy 2 = {policy}")
        each.set("port set 2 rate 1000000000 delay 5000")
    program.set("table set postcards 2 = report 7 1", "mirror set 1 3 truncate 256")
    program.set(
        "table default collector send_to_collector 0x02bf00000013 0x02bf00000003 0x0a000001 0x0a000002 5577 5578"
    )
    core.set(WATCH)
    chance, now_ns = random.Random(policy), 1
    for frame in untagged(3, 4000):
        now_ns += chance.choice((0, 3000, 9000))
        for each in (program, core):
            assert each.receive(now_ns, 1, frame) == 0
    wanted, made = (each.run() for each in (program, core))
    for ours, cores in zip(cards(wanted), cards(made), strict=True):
        ours["flags"] &= ~flag("BYTE_THRESHOLD")
        assert {name: value for name, value in cores.items() if name not in OF_THE_POLICY} == {
            name: value for name, value in ours.items() if name not in OF_THE_POLICY
        }
    heads = [
        [(out.due_ns, out.frame[:HEADERS_BYTES]) for out in outputs if out.port == 3] for outputs in (wanted, made)
    ]
    assert heads[0] == heads[1]
    assert len(fates(made)) >= 2


def test_packets_of_the_sender__that_never_reach_the_queue_are_drops_at_arrival() -> None:
    core = Core(ports=(1, 2, 3, 4))
    core.set("port set 2 rate 1000000000 limit_packets 2", WATCH)
    for ask in (0, 0, INGRESS_DROP, 0, EGRESS_DROP):  # the queue holds two
        core.receive(0, 1, frame_to(2, 1000, ask))
    core.receive(1, 1, frame_to(4))  # leaves elsewhere
    core.receive(2, 1, frame_to(1))  # back to the sender
    core.receive(3, 1, frame_to(200))  # to no port
    core.receive(4, 4, frame_to(200))  # not from the sender
    core.receive(100_000, 1, frame_to(2, 1000, EGRESS_DROP))
    outputs = core.run()
    assert fates(outputs) == {"departed": 2, "refused": 6, "dropped": 1}
    assert [card["depth_packets"] for card in cards(outputs)][:3] == [2, 2, 2]
    shown = counts(core)
    assert shown["arrivals"] == (9, 6300)
    assert shown["postcards"] == (9,)
    assert (shown["arrival_drops"][0], shown["departure_drops"][0]) == (6, 1)


def test_queue__of_the_packet_and_the_depth_of_all_of_the_ports_queues() -> None:
    core = Core()
    core.set("port set 2 rate 1000000000", "queue scheduler 2 strict queues 4", WATCH)
    for priority in (0, 3, 1, 3):
        core.receive(0, 1, frame_to(2, 100, 16 * priority))
    seen = [(card["queue_id"], card["depth_packets"]) for card in cards(core.run())]
    assert seen == [(0, 0), (3, 1), (3, 3), (1, 2)]


def test_clones_and_copies__at_the_queue_have_postcards_without_addresses() -> None:
    core = Core()
    core.set("port set 2 rate 1000000000", "mirror set 1 2 truncate 82", f"test mirror {MIRROR_EGRESS}", WATCH)
    core.receive(0, 1, frame_to(2, 500))
    seen = [(card["packet_bytes"], card["depth_packets"]) for card in cards(core.run())]
    assert seen == [(500, 0), (97, 0)]
    core.set("multicast set 1 2 0 2 1 1 2", "mirror delete 1", "test mirror 0")
    core.receive(10**9, 1, frame_to(2, 300, MULTICAST))
    assert fates(core.run()) == {"departed": 2}
    core.set("multicast delete 1")
    core.receive(2 * 10**9, 1, frame_to(2, 300, MULTICAST))
    assert fates(core.run()) == {"refused": 1}


def test_recirculation__ends_a_stay_in_the_queue() -> None:
    core = Core(str(passes.write()))
    core.set("port set 2 rate 1000000000", WATCH)
    core.receive(0, 1, passes.frame(passes.RECIRCULATE))
    outputs = core.run()
    assert fates(outputs) == {"dropped": 2, "departed": 1}
    sent_ns = 8 * (LEAST_FRAME_BYTES + WIRE_EXTRA_BYTES)
    stays = [(card["enqueue_switch_ns"], card["sojourn_ns"], card["packet_bytes"]) for card in cards(outputs)]
    assert stays == [(at * sent_ns, sent_ns, len(passes.frame(0))) for at in range(3)]
    core.receive(10**9, 1, passes.frame(passes.RESUBMIT))
    assert fates(core.run()) == {"departed": 1}
    core.receive(2 * 10**9, 1, passes.frame(passes.FOREVER_AROUND))
    assert fates(core.run()) == {"dropped": 33}
    assert counts(core)["arrivals"][0] == counts(core)["postcards"][0]


def test_mark__of_a_packet_behind_vlan_tags() -> None:
    core = Core("p4")
    core.set("table set forward 0x02bf00000002 = send_to 2", WATCH)
    head = bytes.fromhex("02bf0000000202bf00000001 8100 0001 0800")
    core.receive(0, 1, head + bytes.fromhex("4502 0028") + bytes(36))
    (card,) = cards(core.run())
    assert card["flags"] == flag("HAS_IP") | flag("ECT")
    assert card["packet_bytes"] == len(head) + 40


@pytest.mark.parametrize(
    "request_",
    [
        "watch",
        "watch show",
        "watch clear",
        "watch set 9 sender 1 collector 3",
        "watch set 2",
        "watch set 2 sender 1 collector 9",
        "watch set 2 sender 1 collector 2",
        "watch set 2 sender 3 collector 3",
        "watch set 2 sender 1 collector 3 switch_id 65536",
        "watch set 2 sender 1 collector 3 switch_mac 0x1000000000000",
        "watch set 2 sender 1 collector 3 colour 1",
    ],
)
def test_request__that_is_wrong_is_refused(request_: str) -> None:
    (line,) = Core().control(request_)
    assert line.startswith("error ")


def test_clear__ends_it_and_packets_on_their_way_are_still_reported() -> None:
    core = Core()
    core.set("port set 2 rate 1000000000", WATCH)
    core.receive(0, 1, frame_to(2, 1000))
    core.advance(0)
    core.set("watch clear")
    core.receive(0, 1, frame_to(2, 1000))
    assert fates(core.run()) == {"departed": 1}


def test_frames__too_short_for_a_postcard_are_refused() -> None:
    (line,) = Core(frame_bytes=ETHERNET_BYTES + 100).control(WATCH)
    assert line.startswith("error ")
