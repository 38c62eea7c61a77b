# SPDX-License-Identifier: MIT
"""Clones, truncation, lengths, registers, counters and random numbers, as simple_switch has them."""

import struct
from dataclasses import dataclass

import pytest

from .conftest import Switch

PROGRAM = "clones"

CLONE_INGRESS, CLONE_EGRESS, DROP_INGRESS, DROP_EGRESS = 1, 2, 4, 8
TRUNCATE_INGRESS, TRUNCATE_EGRESS, REMOVE, CLONE_NO_FIELDS = 16, 32, 64, 128

REPORT = struct.Struct(">IHHHIHHIH")
PAYLOAD = bytes(range(100, 150))


@dataclass
class Report:
    instance_type: int
    kept: int
    not_kept: int
    kept_ingress_port: int
    packet_length: int
    egress_port: int
    egress_spec: int
    register_value: int
    random_value: int


def request(what: int, index: int = 0, value: int = 0x4321) -> bytes:
    return struct.pack(">BIH", what, index, value) + PAYLOAD


def read(frame: bytes) -> tuple[Report, bytes]:
    return Report(*REPORT.unpack(frame[: REPORT.size])), frame[REPORT.size :]


@pytest.fixture
def mirrored(switch: Switch) -> Switch:
    switch.set("mirror set 5 7", "mirror set 6 8")
    return switch


def test_normal__keeps_metadata_and_starts_egress_afresh(switch: Switch) -> None:
    frame = request(0)
    report, rest = read(switch.send_one(frame, port=3))
    assert rest == frame
    assert (report.instance_type, report.kept, report.not_kept) == (0, 0x4321, 0x1112)
    assert (report.kept_ingress_port, report.egress_port, report.egress_spec) == (3, 2, 0)
    assert report.packet_length == len(frame)


def test_ingress_clone__is_the_frame_as_it_came_with_its_field_list(mirrored: Switch) -> None:
    frame = request(CLONE_INGRESS)
    (port, out), (clone_port, clone_out) = mirrored.send(frame, port=3)
    assert (port, clone_port) == (2, 7)
    assert read(out)[0].instance_type == 0
    report, rest = read(clone_out)
    # Fields of the field list have their values at the end of ingress. All other metadata is reset, the parser's too.
    assert (report.instance_type, report.kept, report.not_kept) == (1, 0x4322, 0)
    assert (report.kept_ingress_port, report.egress_port, report.packet_length) == (0, 7, len(frame))
    assert rest[:7] == frame[:7]
    assert frame.startswith(rest)


def test_ingress_clone__without_fields_keeps_none(mirrored: Switch) -> None:
    for what in (CLONE_NO_FIELDS, CLONE_NO_FIELDS | CLONE_INGRESS):  # the last clone call's field list counts
        _, (port, clone_out) = mirrored.send(request(what))
        assert (port, read(clone_out)[0].kept) == (7, 0)


def test_clones__of_dropped_frames_go_on(mirrored: Switch) -> None:
    for what, port in ((CLONE_INGRESS | DROP_INGRESS, 7), (CLONE_EGRESS | DROP_EGRESS, 8)):
        assert [left for left, _ in mirrored.send(request(what))] == [port]


def test_egress_clone__has_the_headers_at_the_end_of_egress(mirrored: Switch) -> None:
    frame = request(CLONE_EGRESS)
    (_, out), (port, clone_out) = mirrored.send(frame, port=3)
    assert port == 8
    original, rest = read(out)
    assert rest == frame[:5] + b"\x77\x77" + PAYLOAD
    report, rest = read(clone_out)
    assert (report.instance_type, report.kept, report.not_kept, report.kept_ingress_port) == (2, 0x4321, 0, 0)
    assert rest == frame[:5] + b"\x77\x77" + PAYLOAD
    # The report header was added in egress: its bytes count in the clone's length.
    assert report.packet_length == original.packet_length + REPORT.size


def test_truncate__the_smallest_counts_and_clones_are_whole(mirrored: Switch) -> None:
    assert len(mirrored.send_one(request(0))) == REPORT.size + len(request(0))
    assert len(mirrored.send_one(request(TRUNCATE_INGRESS))) == 40
    assert len(mirrored.send_one(request(TRUNCATE_EGRESS))) == 50
    assert len(mirrored.send_one(request(TRUNCATE_INGRESS | TRUNCATE_EGRESS))) == 40
    out = mirrored.send(request(TRUNCATE_INGRESS | CLONE_EGRESS))
    assert [len(frame) for _, frame in out] == [40, REPORT.size + len(request(0))]


def test_headers__added_again_are_zero_and_lengths_follow(switch: Switch) -> None:
    report, rest = read(switch.send_one(request(REMOVE)))
    assert rest == bytes(4) + request(REMOVE)
    assert report.packet_length == len(request(0)) + 4


def test_registers__wrap_at_their_width_and_ignore_an_index_out_of_range(switch: Switch) -> None:
    assert switch.do("register write I.values 3 0xfffff") == []
    report, _ = read(switch.send_one(request(0, index=3, value=2)))
    assert report.register_value == 0xFFFFF
    assert switch.do("register read I.values 2 3") == ["2 0", "3 1", "4 0"]
    report, _ = read(switch.send_one(request(0, index=16)))
    assert report.register_value == 0
    read(switch.send_one(request(0, index=0xFFFFFFFF)))
    assert switch.do("register read values 0 100") == [f"{i} {1 if i == 3 else 0}" for i in range(16)]
    assert switch.do("register read wide_values 0 4") == ["0 0x1", "1 0x0", "2 0x0", "3 0x2"]
    switch.do("register write wide_values 1 0xfffffffffffffffffffffffff")
    switch.send_one(request(0, index=1))
    assert switch.do("register read wide_values 1") == ["1 0x0"]


def test_counters__count_bytes_as_they_came_in(mirrored: Switch) -> None:
    frame = request(REMOVE | CLONE_INGRESS, index=4)
    mirrored.send(frame)
    mirrored.send(request(0, index=99))
    assert mirrored.do("counter read seen") == [f"4 1 {len(frame)}"]
    assert mirrored.do("counter read I.seen 5") == ["5 0 0"]
    mirrored.do("counter reset seen")
    assert mirrored.do("counter read seen") == []


def test_random__is_within_bounds_and_repeats_from_a_seed(switch: Switch) -> None:
    def draw() -> list[int]:
        return [read(switch.send_one(request(0)))[0].random_value for _ in range(300)]

    switch.do("random seed 42")
    first = draw()
    assert set(first) == set(range(10, 20))
    assert draw() != first
    switch.do("random seed 42")
    assert draw() == first


def test_requests__about_registers_and_counters_name_the_mistake(switch: Switch) -> None:
    for text, named in {
        "register read value 1": "'value' is unknown or ambiguous: the program has I.values, I.wide_values",
        "register read values": "an index is missing",
        "register read values 16": "index '16' is out of range: the size is 16",
        "register write values 1 1048576": "'1048576' does not fit in 20 bits: at most 1048575",
        "register write values 1 2 3": "before '3'",
        "counter": "read NAME [INDEX]",
        "random": "seed NUMBER",
    }.items():
        assert named in switch.refused(text), text
