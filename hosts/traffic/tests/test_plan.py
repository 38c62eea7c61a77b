# SPDX-License-Identifier: MIT
"""Plans: groups are split into processes with their own ports, and all errors are reported at once."""

import json
import re
import signal
import socket

import pytest

from hosts.traffic import long_flows
from hosts.traffic.idle_rtt import checksum, reply_sequence
from hosts.traffic.plan import parse, server_ports
from hosts.traffic.plan_reader import PlanError, read_json

GROUP = {"cc": "cubic", "flows": 16, "server_port": 5201, "first_client_port": 30000}
PLAN = {"start_mono_ns": 0, "seconds": 10, "server": "10.77.0.2", "groups": [GROUP]}


def test_plan__more_than_128_flows_are_split():
    plan = parse({**PLAN, "groups": [{**GROUP, "flows": 300}]})
    assert [(p.flows, p.server_port, p.first_client_port) for p in plan.processes] == [
        (128, 5201, 30000),
        (128, 5202, 30128),
        (44, 5203, 30256),
    ]
    assert server_ports(plan) == [5201, 5202, 5203]


def test_plan__what_is_no_plan_is_refused_with_its_place():
    for change, place in (
        ({"generator": ["epoll"]}, "the plan: generator"),
        ({"generator": "epol"}, "generator"),
        ({"colour": 1}, "the plan: colour"),
        ({"seconds": True}, "the plan: seconds"),
        ({"seconds": 0}, "generator"),
        ({"start_mono_ns": -1}, "the plan: start_mono_ns"),
        ({"pacing": "yes"}, "the plan: pacing"),
        ({"groups": 7}, "groups is not a list"),
        ({"groups": [GROUP, 7]}, "groups[1] is not an object"),
        ({"groups": [{**GROUP, "server_port": None}]}, "groups[0]: server_port"),
        ({"groups": [{"cc": "cubic"}]}, "groups[0]: flows"),
        ({"groups": [{**GROUP, "cc": "../x"}]}, "cc"),
        ({"kernel_names": {"mycc": "my cc"}}, "cc"),
        ({"transfers": [{"kind": "finite", "cc": "reno", "first_server_port": 1}]}, ""),
    ):
        with pytest.raises(ValueError, match="^" + re.escape(place)):
            parse({**PLAN, **change})
    bad: tuple[object, ...] = (None, [], 3)
    for values in bad:
        with pytest.raises(PlanError):
            parse(values)


def test_plan__file_that_is_no_json(tmp_path, capsys):
    path = tmp_path / "plan.json"
    path.write_text("{")
    assert long_flows.main([str(path), str(tmp_path / "results")]) == 1
    assert capsys.readouterr().err.startswith(f"long_flows: {path}: this is not JSON")
    assert not (tmp_path / "results").exists()
    with pytest.raises(PlanError, match="No such file"):
        read_json(tmp_path / "none.json", parse)


def test_start__planned_long_ago_is_refused(tmp_path, capsys):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({**PLAN, "server": "127.0.0.1", "start_mono_ns": 1}))
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    assert long_flows.main([str(path), str(tmp_path / "results")]) == 1
    assert before == {number: signal.getsignal(number) for number in before}
    assert "s ago: give a future time of this host's CLOCK_MONOTONIC" in capsys.readouterr().err


def test_idle_rtt__checksum_of_rfc_1071_and_replies_of_any_length():
    assert checksum(bytes([0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7])) == 0xFFFF - 0xDDF2
    for length in range(40):
        for family in (socket.AF_INET, socket.AF_INET6):
            for raw in (True, False):
                assert reply_sequence(b"\xff" * length, family, raw, 1) is None
