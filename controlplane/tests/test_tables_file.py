# SPDX-License-Identifier: MIT
"""Files of tables, as authors of P4 programs ship them: their meaning on both switches, and their mistakes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from controlplane.schema_files import from_bmv2
from controlplane.soft import SoftSwitch
from controlplane.switch import SwitchError
from controlplane.tables_file import Request, parse, read_text
from p4src.tests import bmv2_target
from p4src.tests.under_test import Connection
from softswitch.library import ROOT, Core
from softswitch.tests.translate import test_meters

PROGRAMS = ROOT / "softswitch/tests/translate/programs/build"
TABLES, CLONES = PROGRAMS / "tables.json", PROGRAMS / "clones.json"
GOOD = """
// a comment
table_add exact_one stop 7 =>                  # another
table_add I.exact_two found_wide 2001:db8::1 511 => 300 0x1 5
table_add lpm_one found 10.1.2.3/8 => 5
table_add lpm_one found 0/0 => 6
table_add ternary_two found 2&&&3 0&&&0 => 9 10
table_add mixture found 1 10.1.0.0/16 100->200 0b1000&&&0xc => 2 0
table_set_default no_key missed
port_add veth0 1
mirroring_add 5 2
mc_mgrp_create 4
mc_node_create 11 1 2
mc_node_associate 4 0
mirroring_add_mc 6 4
"""
RUNTIME = {
    "target": "bmv2",
    "table_entries": [
        {"table": "I.lpm_one", "match": {"key.a": ["10.1.2.3", 8]}, "action_name": "I.found",
         "action_params": {"number": 5}},
        {"table": "I.ternary_two", "match": {"key.a": [2, 3]}, "action_name": "I.found",
         "action_params": {"number": 9}, "priority": 7},
        {"table": "I.no_key", "default_action": True, "action_name": "I.missed", "action_params": {}},
    ],
    "multicast_group_entries": [{"multicast_group_id": 4, "replicas": [{"egress_port": 2, "instance": 3}]}],
    "clone_session_entries": [{"clone_session_id": 5, "replicas": [{"egress_port": 1, "instance": 1}]}],
}  # fmt: skip


@pytest.fixture
def texts(tmp_path: Path) -> Callable[..., list[str]]:
    """The requests of a file for a program."""

    def of(text: str | bytes, program: Path = TABLES, **words: str) -> list[str]:
        return [request.text for request in requests(tmp_path, text, program, words)]

    return of


def requests(directory: Path, text: str | bytes, program: Path = TABLES, words: dict | None = None) -> list[Request]:
    path = directory / "t.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    schema = from_bmv2(json.loads(program.read_text()), program.name)
    return parse(path.name, read_text(path), schema, (1, 2), words or {})


def switch(program: Path = TABLES) -> SoftSwitch:
    return SoftSwitch("this process", Connection(Core(str(program))))


def entries(soft: SoftSwitch, table: str) -> list[str]:
    return sorted(soft.request("table", "dump", table))


def test_commands__set_tables_of_every_match_kind_sessions_and_groups(tmp_path: Path) -> None:
    soft = switch()
    soft.install(requests(tmp_path, GOOD))
    assert entries(soft, "lpm_one") == [
        "I.lpm_one 0/0 = I.found 6",
        "I.lpm_one 167772160/8 = I.found 5",
        "default I.lpm_one I.missed",
    ]
    assert entries(soft, "mixture")[0] == (
        "I.mixture 1 167837696/16 100..200 0x8&&&0xc = I.found 2 priority 2147483647"
    )
    assert entries(soft, "ternary_two")[0].endswith("priority 2147483637")
    assert entries(soft, "exact_two")[0].endswith("= I.found_wide 300 0x1 5")
    assert entries(soft, "no_key") == ["default I.no_key I.missed"]
    assert soft.request("mirror", "show", 6) == ["port 511", "truncate 0", "group 4"]
    assert soft.request("multicast", "show", 4) == ["port 1 replica 11", "port 2 replica 11"]


def test_runtime_json__sets_the_same(tmp_path: Path) -> None:
    soft = switch()
    soft.install(requests(tmp_path, json.dumps(RUNTIME)))
    assert entries(soft, "lpm_one")[0] == "I.lpm_one 167772160/8 = I.found 5"
    assert entries(soft, "ternary_two")[0] == "I.ternary_two 2&&&0x3 0&&&0x0 = I.found 9 priority 7"
    assert soft.request("multicast", "show", 4) == ["port 2 replica 3"]
    assert soft.request("mirror", "show", 5)[0] == "port 1"


def test_words__that_are_the_programs_addresses_are_replaced(texts) -> None:
    words = {"10.1.0.0/16": "10.77.0.2/32", "10.2.0.1": "10.77.0.1"}
    lines = "table_add lpm_one found 10.1.0.0/16 => 5\ntable_add lpm_one found 10.2.0.1/32 => 10.2.0.1"
    with pytest.raises(SwitchError, match=r"t.txt:2: "):  # also in the argument, which is too narrow for it
        texts(lines, **words)
    assert texts(lines.replace("=> 10.2.0.1", "=> 1"), **words) == [
        "table set I.lpm_one 0xa4d0002/32 = I.found 0x5",
        "table set I.lpm_one 0xa4d0001/32 = I.found 0x1",
    ]


def test_commands__that_take_something_back(texts) -> None:
    adds = "table_add exact_one found 1 => 1\ntable_add exact_one found 2 => 2\n"
    kept = "table set I.exact_one {} = I.found {}"
    assert texts(f"{adds}table_delete exact_one 0") == [kept.format("0x2", "0x2")]
    assert texts(f"{adds}table_modify exact_one found 1 9\ntable_delete exact_one 0") == [kept.format("0x2", "0x9")]
    assert texts(f"{adds}table_clear exact_one\nmirroring_add 1 2\nmirroring_delete 1") == []
    assert texts("register_write values 3 7\nregister_reset values\nregister_write values 4 8", CLONES) == [
        "register write I.values 4 0x8"
    ]


def test_queues_and_meters__are_requests_of_the_switch(texts) -> None:
    assert texts("set_queue_rate 500 2 1\nset_queue_rate 300 // pps\nset_queue_depth 10 2\nset_queue_depth 5 2 1") == [
        "queue set 2 1 rate 500", "queue set 1 all rate 300", "queue set 2 all rate 300",
        "port set 2 limit_packets 10", "queue set 2 1 limit_packets 5",
    ]  # fmt: skip
    assert texts("meter_set_rates rates 1 0.001:5 0.5:7\nmeter_array_set_rates rates 1:2 3:4", test_meters.write()) == [
        "meter set rates all 1000000 2 3000000 4"
    ]


MISTAKES = {
    "table_add nothing found 1 => 1": "exact_one",
    "table_add exact_one nothing 1 => 1": "stop",
    "table_add exact_one found 1 1": "=>",
    "table_add exact_one found 1 2 => 1": "1 keys|key.a",
    "table_add exact_one found 1 => 1 2": "number:16",
    "table_add exact_one found 1 => 65536": "16 bits",
    "table_add exact_one found 0x100000000 => 1": "32 bits",
    "table_add exact_one found 10.0.0.256 => 1": "IPv4",
    "table_add exact_one found -1 => 1": "number",
    "table_add exact_one found 1_0 => 1": "number",
    "table_add lpm_one found 1 => 1": "VALUE/BITS",
    "table_add lpm_one found 1/33 => 1": "0 to 32",
    "table_add ternary_two found 1 2 => 1 2": "VALUE&&&MASK",
    "table_add ternary_two found 1&&&1 2&&&2 => 1": "number:16",
    "table_add mixture found 1 1/32 9->8 0&&&0 => 1 1": "ends before",
    "table_set_default exact_one found": "number:16",
    "table_delete exact_one 0": "handle",
    "register_write nothing 0 0": "register",
    "table_frobnicate 1": "table_add",
    "mirroring_add 1 511": "510",
    "mirroring_add 1": "SESSION PORT",
    "mc_node_associate 1 0": "mc_mgrp_create",
    "set_queue_depth 0": "from 1",
    "act_prof_create_group x": "table_add",
}


@pytest.mark.parametrize(("line", "says"), MISTAKES.items())
def test_mistake__is_one_line_with_file_line_and_what_is_allowed(texts, line: str, says: str) -> None:
    with pytest.raises(SwitchError, match=f"(?s)^t.txt:2: .*({says})") as error:
        texts(f"\n{line}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "line", ["register_write values 16 0", "register_write values 0 0x100000", "register_write values x 0"]
)
def test_register__out_of_range_or_too_wide_is_a_mistake(texts, line: str) -> None:
    with pytest.raises(SwitchError, match=r"t.txt:1: "):
        texts(line, CLONES)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x" * (1 << 20 | 1), b'{"table_entries": 7}', b"{", b'{"a":' * 2000])
def test_file__that_is_no_file_of_tables_is_one_line(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(SwitchError) as error:
        requests(tmp_path, content)
    assert "\n" not in str(error.value)


def test_file__that_may_never_end_is_refused() -> None:
    with pytest.raises(SwitchError):
        read_text(Path("/dev/null"))


@pytest.mark.parametrize("seed", range(3))
def test_parser__survives_random_files(tmp_path: Path, seed: int) -> None:
    """Every file either is one line of error, or gives requests that the switch takes or refuses in one line."""
    chance, soft = random.Random(seed), switch()
    lines = [*GOOD.splitlines(), *MISTAKES, "table_add exact_one found 1 => 1", "register_write values 1 1"]
    odd = ("0" * 5000, "9" * 5000, "é", "|", "1e9", "")
    vocabulary = [*sorted({word for line in lines for word in line.split()}), *odd]
    for _ in range(500):
        words = chance.choice(lines).split() or ["help"]
        for _ in range(chance.randrange(3)):
            words[chance.randrange(len(words))] = chance.choice(vocabulary)
        text = " ".join(words)
        if chance.random() < 0.2:
            text = json.dumps(RUNTIME)
            at = chance.randrange(len(text))
            text = text[:at] + chance.choice(('"', "7", "]", "{}", "null", "")) + text[at + chance.randrange(4) :]
        refused = ""
        try:
            soft.install(requests(tmp_path, text))
        except SwitchError as error:
            refused = str(error)
        assert "\n" not in refused


@pytest.mark.software
def test_both_switches__do_the_same_with_a_files_tables(tmp_path: Path) -> None:
    if reason := bmv2_target.why_not():
        pytest.skip(f"bmv2: {reason}")
    wanted = requests(tmp_path, GOOD)
    core, chance = Core(str(TABLES), packets=64, frame_bytes=9216), random.Random(1)
    SoftSwitch("this process", Connection(core)).install(wanted)
    with bmv2_target.Bmv2(program=TABLES) as bmv2:
        bmv2.control.install(wanted)
        for number in range(100):
            which, a, b = number % 9, chance.choice((0x0A010000, 7, 2, 6)), chance.randrange(90, 210)
            key = which.to_bytes(1, "big") + a.to_bytes(4, "big") + b.to_bytes(2, "big") + bytes([1])
            data = key + chance.randbytes(60)
            core.receive(number, 1, data)
            (wanted_frame,) = [out.frame for out in core.run()]
            bmv2.ports.send(1, data)
            assert bmv2.ports.receive(2) == [(1, wanted_frame)]
