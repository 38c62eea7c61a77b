# SPDX-License-Identifier: MIT
"""Stamps are in simple_switch's us, also at wrap-arounds. A program that asks for ns has 1 in its field ns_per_tick,
also in clones.
"""

from __future__ import annotations

import math
import struct

from softswitch.library import Core

from .conftest import Switch, compiled

PROGRAM = "stamps_ns"
REPORT = struct.Struct(">6s6sIIHH")
KINDS = ["normal", "ingress_clone", "egress_clone"]

# 701 bytes and 24 of preamble, FCS and gap take 58 us at 100 Mbit/s. The offered load is 1.05 times the link's rate.
FRAME_BYTES, RATE_BPS, FRAME_NS, ARRIVAL_GAP_NS = 701, 10**8, 58_000, 55_238
PACKETS = 20_000


def core(name: str) -> Core:
    path, _ = compiled(name)
    return Core(str(path), ports=(1, 2, 7, 8), packets=16384)


def test_ns__the_field_is_1_in_ingress_egress_and_every_clone(switch: Switch) -> None:
    switch.command("mirror 5 7")
    switch.command("mirror 6 8")
    sent = switch.send(b"payload")
    kept = {"normal": 1, "ingress_clone": 0, "egress_clone": 0}  # clones do not keep the field that ingress wrote
    for kind, _, frame in sent:
        assert REPORT.unpack(frame[: REPORT.size])[4:] == (1, kept[kind]), kind
    assert sorted(kind for kind, _, _ in sent) == sorted(KINDS)


def test_us__every_stamp_is_simple_switchs() -> None:
    """Tested also around the wrap-arounds of 32 and 48 bits of us, and where 48 bits of ns would wrap around."""
    for start_ns in (5_000_999, 2**32 * 1000 - 30_000, 2**48 - 30_000, 2**48 * 1000 - 30_000):
        switch = core("stamps")
        switch.set(f"port set 2 rate {RATE_BPS}")
        for number in range(2):
            assert switch.receive(start_ns + number, 1, bytes(FRAME_BYTES)) == 0
        outputs = switch.run(start_ns + 10 * FRAME_NS)
        assert len(outputs) == 2
        for number, output in enumerate(outputs):
            ingress, egress, enqueue, in_queue, *_ = REPORT.unpack(output.frame[: REPORT.size])
            arrival_us, departure_us = (start_ns + number) // 1000, output.departure_ns // 1000
            assert int.from_bytes(ingress) == arrival_us % 2**48, start_ns
            assert int.from_bytes(egress) == departure_us % 2**48, start_ns
            assert enqueue == arrival_us % 2**32, start_ns
            assert in_queue == departure_us - arrival_us, start_ns


def codel_drops() -> list[int]:
    """The numbers of the packets that programs/codel.p4 drops on a FIFO. A dropped packet takes no time on the link."""
    target_us, interval_us = 5_000, 100_000
    free_ns = first_above_us = next_drop_us = count = 0
    dropping = False
    drops = []
    for number in range(PACKETS):
        arrival_ns = number * ARRIVAL_GAP_NS
        start_ns = max(arrival_ns, free_ns)
        departure_ns = start_ns + FRAME_NS
        now_us = departure_ns // 1000
        drop = False
        if now_us - arrival_ns // 1000 < target_us:
            first_above_us, dropping = 0, False
        elif first_above_us == 0:
            first_above_us = now_us + interval_us
        elif not dropping:
            if drop := now_us >= first_above_us:
                dropping, count, next_drop_us = True, 1, now_us + interval_us
        elif drop := now_us >= next_drop_us:
            count += 1
            next_drop_us += round(interval_us / math.sqrt(min(count, 32)))
        drops += [number] if drop else []
        free_ns = start_ns if drop else departure_ns
    return drops


def test_us__a_codel_written_for_bmv2_drops_as_its_constants_say() -> None:
    """Read as ns, the same constants drop 19,996 packets of 20,000."""
    expected = codel_drops()
    assert 20 < len(expected) < 50
    switch = core("codel")
    switch.set(f"port set 2 rate {RATE_BPS}")
    departed = []
    for number in range(PACKETS):
        frame = number.to_bytes(4) + bytes(FRAME_BYTES - 4)
        assert switch.receive(number * ARRIVAL_GAP_NS, 1, frame) == 0
        if number % 1000 == 999:
            switch.advance(number * ARRIVAL_GAP_NS)
            departed += switch.take()
    departed += switch.run()
    left = {int.from_bytes(output.frame[:4]) for output in departed}
    assert sorted(set(range(PACKETS)) - left) == expected
