# SPDX-License-Identifier: MIT
"""Packets that pass the pipeline again (resubmitted, recirculated) or as several (multicast, clones to groups)."""

import struct
from pathlib import Path
from typing import NamedTuple

import pytest

from .conftest import Switch
from .fragments import assign, cut, do, extract, field, is_, meta, number, op, program, state, std, when

NORMAL, INGRESS_CLONE, EGRESS_CLONE, _, RECIRCULATED, REPLICATED, RESUBMITTED = range(7)
RESUBMIT, RECIRCULATE, GROUP, CLONE_INGRESS, CLONE_EGRESS, DROP, FOREVER, FOREVER_AROUND = (1 << i for i in range(8))
HEAD = struct.Struct(">BBHHHHHHH")


class Head(NamedTuple):
    what: int
    group: int = 0
    ingress_port: int = 0
    instance_at_ingress: int = 0
    instance_at_egress: int = 0
    length: int = 0
    replica: int = 0
    kept: int = 0  # counts passes of ingress; in the field list
    egresses: int = 0


def asked(what: int):
    return op("!=", op("&", field("head", "what"), number(what)), number(0))


def write() -> Path:
    def note(name, value):
        return assign(field("head", name), cut(value, 16))

    fewer = op("<", meta("kept"), number(3))
    original = is_(std("instance_type"), number(NORMAL))
    widths = {"what": 8, "group": 8}
    return program(
        "passes",
        {"head_h": [(name, widths.get(name, 16)) for name in Head._fields]},
        {"head": "head_h"},
        [state("start", [extract("head")])],
        [
            assign(std("egress_spec"), number(2)),
            assign(meta("kept"), cut(op("+", meta("kept"), number(1)), 16)),
            note("ingress_port", std("ingress_port")),
            note("instance_at_ingress", std("instance_type")),
            note("length", std("packet_length")),
            *when(op("and", asked(RESUBMIT), fewer), do("resubmit", number(1))),
            *when(asked(FOREVER), do("resubmit", number(1))),
            *when(asked(GROUP), assign(std("mcast_grp"), field("head", "group"))),
            *when(asked(CLONE_INGRESS), do("clone_ingress_pkt_to_egress", number(5), number(1))),
            *when(asked(DROP), do("mark_to_drop", {"type": "header", "value": "standard_metadata"})),
        ],
        [
            note("instance_at_egress", std("instance_type")),
            note("replica", std("egress_rid")),
            note("kept", meta("kept")),
            assign(field("head", "egresses"), cut(op("+", field("head", "egresses"), number(1)), 16)),
            *when(op("and", asked(CLONE_EGRESS), original), do("clone_egress_pkt_to_egress", number(5), number(1))),
            *when(op("and", op("and", asked(RECIRCULATE), fewer), original), do("recirculate", number(1))),
            *when(asked(FOREVER_AROUND), do("recirculate", number(1))),
        ],
        metadata=[("kept", 16)],
        field_lists=[{"id": 1, "name": "field_list1", "elements": [meta("kept"), std("clone_spec")]}],
    )


def frame(what: int, group: int = 0, payload: bytes = b"payload") -> bytes:
    return HEAD.pack(*Head(what, group)) + payload


def send(switch: Switch, what: int, group: int = 0) -> list[tuple[int, Head]]:
    """(port, header) of each frame that leaves."""
    out = switch.send(frame(what, group), port=3)
    assert all(left[HEAD.size :] == b"payload" for _, left in out)
    return [(port, Head(*HEAD.unpack(left[: HEAD.size]))) for port, left in out]


def counter(switch: Switch, name: str) -> int:
    return int(dict(line.split() for line in switch.do("stats"))[name])


def test_resubmit__parses_the_frame_as_it_came_and_keeps_the_field_list(switch: Switch) -> None:
    ((port, head),) = send(switch, RESUBMIT)
    assert (port, head.kept, head.instance_at_ingress, head.instance_at_egress) == (2, 3, RESUBMITTED, NORMAL)
    assert (head.ingress_port, head.length, head.egresses) == (0, len(frame(0)), 1)
    assert counter(switch, "recirculated") == 2


def test_recirculate__parses_the_frame_that_was_deparsed(switch: Switch) -> None:
    ((port, head),) = send(switch, RECIRCULATE)
    assert (port, head.kept, head.instance_at_ingress, head.instance_at_egress) == (2, 3, RECIRCULATED, NORMAL)
    assert (head.ingress_port, head.length, head.egresses) == (0, len(frame(0)), 3)


@pytest.mark.parametrize("what", [FOREVER, FOREVER_AROUND])
def test_loop__is_cut_and_counted(switch: Switch, what: int) -> None:
    assert send(switch, what) == []
    assert (counter(switch, "recirculation_drops"), counter(switch, "packets_used")) == (1, 0)


def test_recirculation__takes_the_time_of_its_link_and_none_of_the_ports(switch: Switch) -> None:
    switch.set("recirculation set rate 1000000000 delay 5000")
    assert switch.do("recirculation show") == ["rate 1000000000", "delay 5000"]
    switch.receive(1000, 3, frame(RECIRCULATE))
    (output,) = switch.run()
    assert output.departure_ns == 1000 + 2 * (8 * (60 + 24) + 5000)


def test_body__is_read_back_when_a_packet_recirculates(switch: Switch) -> None:
    whole = frame(RECIRCULATE, payload=bytes(range(256)) * 4)
    assert switch.receive_with_body(1, 3, whole) == 0
    (output,) = switch.run()
    assert (output.frame[HEAD.size :], switch.bodies) == (whole[HEAD.size :], {})


def test_group__copies_the_packet_to_its_ports_in_order(switch: Switch) -> None:
    switch.set("multicast set 4 7 11 8 12 7 13")
    assert switch.do("multicast show 4") == ["port 7 replica 11", "port 8 replica 12", "port 7 replica 13"]
    assert [(port, head.replica) for port, head in send(switch, GROUP, 4)] == [(7, 11), (7, 13), (8, 12)]
    assert {head.instance_at_egress for _, head in send(switch, GROUP, 4)} == {REPLICATED}
    assert send(switch, GROUP | DROP, 4) == []  # mark_to_drop takes the group back
    switch.set("multicast delete 4")
    assert send(switch, GROUP, 4) == []
    assert (counter(switch, "multicast_drops"), counter(switch, "multicast_copies")) == (1, 6)


def test_clones__go_to_the_sessions_group_and_port(switch: Switch) -> None:
    switch.set("multicast set 4 7 11 8 12", "mirror set 5 1 group 4")
    for what, instance in ((CLONE_INGRESS, INGRESS_CLONE), (CLONE_EGRESS, EGRESS_CLONE)):
        out = {port: head for port, head in send(switch, what) if port != 2}
        assert {port: (head.replica, head.instance_at_egress) for port, head in out.items()} == {
            1: (12, instance), 7: (11, instance), 8: (12, instance),
        }  # fmt: skip
        assert {head.kept for head in out.values()} == {1}
    switch.set("mirror set 5 - group 4")
    assert sorted(port for port, _ in send(switch, CLONE_EGRESS)) == [2, 7, 8]


def test_requests__about_groups_and_recirculation_name_the_mistake(switch: Switch) -> None:
    for text, named in {
        "multicast": "multicast set GROUP PORT RID",
        "multicast set 0 7 1": "1 to 65535",
        "multicast set 4 9 1": "no such port '9'",
        "multicast set 4 7": "replica id",
        "multicast show 5": "no such multicast group",
        "recirculation set speed 1": "one of rate delay",
        "mirror set 5 x": "- for none",
    }.items():
        assert named in switch.refused(text), text
