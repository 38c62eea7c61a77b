# SPDX-License-Identifier: MIT
"""Stamps are in simple_switch's us, also at wrap-arounds. A program that asks for ns has 1 in its field ns_per_tick,
also in clones.
"""

import struct

from softswitch.library import Core

from .conftest import Switch, compiled

PROGRAM = "stamps_ns"
REPORT = struct.Struct(">6s6sIIHH")
FRAME_BYTES, RATE_BPS, FRAME_NS = 701, 10**8, 58_000  # with 24 bytes of preamble, FCS and gap


def test_ns__the_field_is_1_in_ingress_egress_and_every_clone(switch: Switch) -> None:
    switch.set("mirror set 5 7", "mirror set 6 8")
    kept = {2: 1, 7: 0, 8: 0}  # clones do not keep the field that ingress wrote
    sent = {port: REPORT.unpack(frame[: REPORT.size])[4:] for port, frame in switch.send(b"payload")}
    assert sent == {port: (1, value) for port, value in kept.items()}


def test_us__every_stamp_is_simple_switchs() -> None:
    """Tested also around the wrap-arounds of 32 and 48 bits of us, and where 48 bits of ns would wrap around."""
    for start_ns in (5_000_999, 2**32 * 1000 - 30_000, 2**48 - 30_000, 2**48 * 1000 - 30_000):
        switch = Core(str(compiled("stamps")[0]), ports=(1, 2, 7, 8), packets=16384)
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
