# SPDX-License-Identifier: MIT
"""Control flow that nested ifs cannot express: a node with several predecessors is written once and reached by goto."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from softswitch.translate.errors import ManyProblems
from softswitch.translate.translate import translate

from .conftest import Switch, compiled
from .fragments import assign, do, field, meta, number, op


def switch_of(program: dict, path: Path) -> tuple[str, Switch]:
    """The C text of a program, and the program in a core."""
    path.write_text(json.dumps(program))
    path.with_suffix(".sha256").write_text("0" * 64)
    return translate(program, "0" * 64).c_text, Switch(path)


def condition(name: str, key: str, true_next: str | None, false_next: str | None) -> dict:
    expression = op("<", field("key", key), number(1))
    return {"name": name, "id": 0, "expression": expression, "true_next": true_next, "false_next": false_next}


# Conditions on a, b and c; `x` sets flags, `y` adds to wide.
GRAPH: dict[str, Any] = {
    "start": "a",
    "a": condition("a", "a", "b", "c"),
    "b": condition("b", "b", "x", "y"),
    "c": condition("c", "c", "y", "x"),
    "x": "y",
    "y": None,
}


def walk(zero: dict[str, bool]) -> list[str]:
    visited, at = [], "start"
    while at is not None:
        visited.append(at)
        step = GRAPH[at]
        at = step["true_next" if zero[at] else "false_next"] if isinstance(step, dict) else step
    return visited


def test_control__follows_the_graph(tmp_path: Path) -> None:
    program = json.loads(compiled("tables")[0].read_text())
    ingress = program["pipelines"][0]
    actions = {action["id"]: json.dumps(action["primitives"]) for action in program["actions"]}

    def hidden(text: str) -> dict:
        for table in ingress["tables"]:
            if table["name"].startswith("tbl_") and text in actions[table["action_ids"][0]]:
                return table
        raise AssertionError(text)

    tables = {"start": hidden("add_header"), "x": hidden('"0x09"'), "y": hidden('"+"')}
    names = {key: table["name"] for key, table in tables.items()} | {key: key for key in "abc"} | {None: None}
    for key, table in tables.items():
        following = names[GRAPH[key]]
        table["next_tables"] = dict.fromkeys(table["actions"], following)
        table["base_default_next"] = following
    ingress["init_table"] = tables["start"]["name"]
    ingress["tables"] = list(tables.values())
    ingress["conditionals"] = [
        dict(node, true_next=names[node["true_next"]], false_next=names[node["false_next"]])
        for node in GRAPH.values()
        if isinstance(node, dict)
    ]
    text, switch = switch_of(program, tmp_path / "graph.json")
    assert "goto node_" in text
    for values in itertools.product((0, 1), repeat=3):
        a, b, c = values
        frame = bytes([0]) + a.to_bytes(4, "big") + b.to_bytes(2, "big") + bytes([c]) + bytes(18)
        out = switch.send_one(frame)
        visited = walk({"a": a == 0, "b": b == 0, "c": c == 0})
        assert (out[2] == 9, out[18] == 1) == ("x" in visited, "y" in visited), values


def unless(name: str, value: int, target: int) -> dict:
    return do("_jump_if_zero", op("<", field("packet", name), number(value)), number(target))


def put(name: str, value: int) -> dict:
    return assign(meta(f"metadata_t.{name}"), number(value))


def with_action(primitives: list[dict]) -> dict:
    """The program `names`, with `primitives` as the body of its action memset."""
    program = json.loads(compiled("names")[0].read_text())
    action = next(action for action in program["actions"] if action["name"] == "memcpy.memset")
    action["primitives"] = primitives
    text = json.dumps(program)
    fields = [name for name, *_ in program["header_types"][0]["fields"]]
    for own in ("double", "a_b"):
        text = text.replace(f'"metadata_t.{own}"', json.dumps(next(name for name in fields if own in name)))
    return json.loads(text)


@pytest.mark.parametrize(
    ("primitives", "flat", "expected"),
    [
        pytest.param(
            [
                unless("static", 1, 4),
                put("a_b", 0x10),
                unless("phv", 1, 5),
                do("_jump", number(6)),
                put("a_b", 0x20),
                put("double", 0x55),
            ],
            True,
            {(0, 0): b"\x00\x10", (0, 1): b"\x55\x10", (1, 0): b"\x55\x20", (1, 1): b"\x55\x20"},
            id="into the middle of an else branch",
        ),
        pytest.param(
            [
                unless("static", 1, 5),
                unless("phv", 1, 3),
                do("_jump", number(6)),
                put("double", 0x55),
                do("_jump", number(6)),
                put("double", 0x66),
            ],
            False,
            {(0, 0): b"\x00\x00", (0, 1): b"\x55\x00", (1, 0): b"\x66\x00", (1, 1): b"\x66\x00"},
            id="out of two ifs at once",
        ),
    ],
)
def test_action__follows_the_jumps_of_its_primitives(
    primitives: list[dict], flat: bool, expected: dict, tmp_path: Path
) -> None:
    text, switch = switch_of(with_action(primitives), tmp_path / f"jumps-{flat}.json")
    assert ("goto step_" in text) == flat
    for (static, phv), out in expected.items():
        switch.do(f"table set goto {static} = memset")
        assert switch.send_one(bytes([0, 0, static, phv]))[:2] == out, (static, phv)


def test_action__with_a_loop_is_refused() -> None:
    with pytest.raises(ManyProblems, match="a loop in an action is not supported by the soft switch"):
        translate(with_action([put("double", 1), unless("phv", 9, 4), put("a_b", 2), do("_jump", number(1))]), "0" * 64)
