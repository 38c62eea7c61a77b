# SPDX-License-Identifier: MIT
"""Meters, of an array and of a table, and the value sets of a parser."""

from pathlib import Path

from .conftest import Switch
from .fragments import assign, cut, do, extract, field, meta, named, number, program, state, std

GREEN, YELLOW, RED = range(3)
SECOND_NS = 1_000_000_000


def write() -> Path:
    """The result of a frame is its array meter, its table's meter, and 1 if the parser found it in the value set."""
    table = {
        "name": "by_port", "id": 0, "key": [
            {"match_type": "exact", "name": "index", "target": ["head", "index"], "mask": None}
        ],
        "match_type": "exact", "type": "simple", "max_size": 16, "with_counters": False, "support_timeout": False,
        "direct_meters": "direct", "action_ids": [0], "actions": ["pass"], "base_default_next": "tbl_ingress",
        "next_tables": {"pass": "tbl_ingress"},
        "default_entry": {"action_id": 0, "action_const": False, "action_data": [], "action_entry_const": False},
    }  # fmt: skip
    return program(
        "meters",
        {"head_h": [("kind", 16), ("part", 4), ("rest", 12), ("index", 32), ("array", 8), ("direct", 8), ("known", 8)]},
        {"head": "head_h"},
        [
            state(
                "start", [extract("head")], [field("head", "kind"), field("head", "part")],
                {"kinds": "known", None: None},
            ),
            state("known", [do("set", meta("known"), number(1))]),
        ],
        [
            assign(std("egress_spec"), number(2)),
            do("execute_meter", named("meter_array", "rates"), field("head", "index"), meta("array")),
            assign(field("head", "array"), cut(meta("array"), 8)),
            assign(field("head", "direct"), cut(meta("direct"), 8)),
            assign(field("head", "known"), meta("known")),
        ],
        metadata=[("array", 16), ("direct", 16), ("known", 8)],
        tables=[table],
        actions=[{"name": "pass", "id": 0, "runtime_data": [], "primitives": []}],
        parse_vsets=[{"name": "kinds", "id": 0, "compressed_bitwidth": 20, "max_size": 4}],
        meter_arrays=[
            {"name": "rates", "id": 0, "is_direct": False, "size": 4, "rate_count": 2, "type": "bytes"},
            {
                "name": "direct", "id": 1, "is_direct": True, "size": 16, "rate_count": 2, "type": "packets",
                "binding": "by_port", "result_target": ["scalars", "direct"],
            },
        ],
    )  # fmt: skip


def send(switch: Switch, at_ns: int, index: int = 0, size: int = 100, kind: int = 0, part: int = 0) -> tuple[int, ...]:
    """(colour of the array's meter, of the table's, 1 if the kind is in the value set)."""
    frame = kind.to_bytes(2, "big") + (part << 12).to_bytes(2, "big") + index.to_bytes(4, "big")
    assert switch.receive(at_ns, 1, frame.ljust(size, b"\xff")) == 0
    (output,) = switch.run()
    return tuple(output.frame[8:11])


def test_meter__has_a_colour_for_each_rate_exceeded(switch: Switch) -> None:
    assert send(switch, 1)[0] == GREEN  # without rates
    switch.do("meter set rates 0 1000 200 3000 500")
    at_ns = 5 * SECOND_NS
    assert [send(switch, at_ns)[0] for _ in range(7)] == [GREEN, GREEN, YELLOW, YELLOW, YELLOW, RED, RED]
    # 100 bytes come after 100 ms at the committed rate, after a third of that at the peak rate.
    assert send(switch, at_ns + SECOND_NS // 30 - 1)[0] == RED
    assert send(switch, at_ns + SECOND_NS // 30 + 1)[0] == YELLOW
    assert send(switch, at_ns + SECOND_NS // 10)[0] == GREEN
    assert send(switch, at_ns + SECOND_NS, index=1)[0] == GREEN
    switch.do("meter clear rates all")
    assert [send(switch, at_ns + SECOND_NS)[0] for _ in range(9)] == [GREEN] * 9


def test_meter__fills_over_long_times_without_overflow(switch: Switch) -> None:
    switch.do(f"meter set rates all 10000000000 {2**62 - 1} 10000000000 {2**62 - 1}")
    assert [send(switch, at_ns)[0] for at_ns in (1, 2**61, 2**61 + 1)] == [GREEN] * 3


def test_direct_meter__is_its_entrys_and_a_miss_has_none(switch: Switch) -> None:
    switch.set("table set by_port 7 = pass", "table set by_port 8 = pass", "meter set direct 1 1 1 1 1")
    at_ns = 9 * SECOND_NS
    assert [send(switch, at_ns, index)[1] for index in (7, 7, 8, 8, 9, 9)] == [GREEN, GREEN, GREEN, RED, GREEN, GREEN]
    switch.set("table delete by_port 7")  # the entry of 8 moves, with its meter
    assert send(switch, at_ns, 8)[1] == RED
    switch.set("table set by_port 7 = pass")
    assert send(switch, at_ns, 7)[1] == GREEN


def test_value_set__is_a_table_of_values(switch: Switch) -> None:
    assert send(switch, 1, kind=0x1234, part=5)[2] == 0
    switch.set("table set kinds 0x1234 5 = member", "table set kinds 0x1234 6 = member")
    assert [send(switch, 2, kind=0x1234, part=part)[2] for part in (4, 5, 6)] == [0, 1, 1]
    switch.set("table delete kinds 0x1234 5")
    assert [send(switch, 3, kind=0x1234, part=part)[2] for part in (4, 5, 6)] == [0, 0, 1]


def test_requests__about_meters_name_the_mistake(switch: Switch) -> None:
    for text, named_ in {
        "meter": "set NAME INDEX|all",
        "meter set rate 0": "'rate' is unknown or ambiguous: the program has rates, direct",
        "meter set rates 4 1 1 1 1": "out of range: the size is 4",
        "meter set rates 0 2 1 1 1": "the committed rate at most",
        "meter set rates 0 1 1 20000000000 1": "at most 10000000000",
        "meter set rates 0 1 1 1": "burst",
        "meter set direct 0 1 1 1 1": "out of range: the size is 0",
    }.items():
        assert named_ in switch.refused(text), text
