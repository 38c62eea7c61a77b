# SPDX-License-Identifier: MIT
"""Queue priorities, with the 3 bits of v1model and the 5 bits of changed v1models, which also have `qid`."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

import pytest

from .conftest import Switch
from .fragments import STANDARD, assign, cut, do, extract, field, named, number, op, program, state, std

HEAD = struct.Struct(">BBIII")
CHANGED = [(name, 5 if name == "priority" else bits) for name, bits in STANDARD] + [("qid", 5)]


class Head(NamedTuple):
    priority: int
    qid: int = 0
    enq_qdepth: int = 0
    deq_qdepth: int = 0
    found: int = 0  # in the register of the packet's queue on arrival

    def pack(self) -> bytes:
        return HEAD.pack(*self)

    @classmethod
    def unpack(cls, frame: bytes) -> Head:
        return cls(*HEAD.unpack(frame[: HEAD.size]))


def write(bits: int = 5) -> Path:
    """All packets go to port 2, with the priority that they ask for. With 5 bits, egress writes qid into them."""
    queue = op("+", number(2 << bits), std("priority"))
    return program(
        f"queues_{bits}",
        {"head_h": [("priority", 8), ("qid", 8), ("enq_qdepth", 32), ("deq_qdepth", 32), ("found", 32)]},
        {"head": "head_h"},
        [state("start", [extract("head")])],
        [
            assign(std("egress_spec"), number(2)),
            assign(std("priority"), number(0)),
            assign(std("priority"), cut(field("head", "priority"), bits)),
            do("register_read", field("head", "found"), named("register_array", "queue_packets"), queue),
        ],
        [
            *([assign(field("head", "qid"), std("qid"))] if bits == 5 else []),
            assign(field("head", "enq_qdepth"), std("enq_qdepth")),
            assign(field("head", "deq_qdepth"), std("deq_qdepth")),
        ],
        standard=CHANGED if bits == 5 else STANDARD,
        register_arrays=[{"name": "queue_packets", "id": 0, "bitwidth": 32, "size": 512 << bits}],
    )


@pytest.mark.parametrize(("bits", "queues"), [(3, 8), (5, 32)])
def test_priority__chooses_the_queue_and_lengths_are_its_own(bits: int, queues: int) -> None:
    switch = Switch(write(bits))
    switch.set("port set 2 rate 1000000000", f"queue scheduler 2 strict queues {queues}")
    for priority in (0, 1, queues - 1, 1, queues - 1 + 64):  # the program cuts the last one
        assert switch.receive(5, 1, Head(priority).pack()) == 0
    switch.advance(5)
    assert switch.do(f"register read queue_packets {2 << bits} {queues}") == [
        f"{(2 << bits) + queue} {({0: 1, 1: 2, queues - 1: 2}).get(queue, 0)}" for queue in range(queues)
    ]
    left = [Head.unpack(output.frame) for output in switch.run()]
    shown = [head.qid if bits == 5 else head.priority % queues for head in left]
    assert shown == [0, queues - 1, queues - 1, 1, 1], "queue 0's packet was on the link"
    assert [(head.enq_qdepth, head.deq_qdepth) for head in left] == [(0, 0), (0, 1), (1, 0), (0, 1), (1, 0)]
    assert [head.found for head in left] == [head.enq_qdepth for head in left]


def test_priority__changes_nothing_at_a_port_with_one_queue() -> None:
    switch = Switch(write())
    switch.set("port set 2 rate 1000000000")
    for priority in (3, 31, 0):
        assert switch.receive(5, 1, Head(priority).pack()) == 0
    switch.advance(5)
    assert switch.do("register read queue_packets 64 2") == ["64 3", "65 0"]
    left = [Head.unpack(output.frame) for output in switch.run()]
    assert [(head.priority, head.qid, head.enq_qdepth) for head in left] == [(3, 0, 0), (31, 0, 1), (0, 0, 2)]
