# SPDX-License-Identifier: MIT
"""Columns of the run table for traffic groups: of specs that list `groups`, and of specs without them."""

from runs.group_columns import of_spec

GROUPS = {
    "mode": "tail-drop",
    "groups": [
        {"number": 0, "cc": "cubic", "flows": 20, "rtt_ns": 20_000_000, "ecn": "on"},
        {"number": 2, "cc": "bbr", "flows": 5, "rtt_ns": 80_000_000},
    ],
    "transfers": [
        {"number": 1, "kind": "closed-loop", "cc": "reno", "users": 9, "rtt_ns": 20_000_000, "access_links": 2,
         "rtts_ns": [50_000_000, 20_000_000]},
    ],
    "datagrams": [{"number": 3, "flows": 1, "load": 0.1}],
}  # fmt: skip


def test_columns__of_groups_are_in_the_order_of_their_numbers() -> None:
    values = of_spec(GROUPS, imported=False)
    assert values["groups"] == "20 cubic 20ms + 9 users of reno 50ms,20ms + 5 bbr 80ms + 0.1 open-loop"
    assert values["rtts_ns"] == "20000000,50000000,80000000"
    assert (values["access_links"], values["ecn"]) == (2, "on,off")


def test_columns__without_groups_are_those_of_the_run() -> None:
    spec = {"mode": "ecn", "groups": [{"cc": "reno", "flows": 2}], "rtts_ns": [3, 1]}
    values = of_spec(spec, imported=False)
    assert values == {"rtts_ns": "1,3", "access_links": None, "ecn": "on", "groups": None}
    assert of_spec(spec | {"ecn": "off"}, imported=False)["ecn"] == "off"
    modes = {"tail-drop": "off", "egress-threshold": "off", "egress-ecn": "on"}
    assert {mode: of_spec(spec | {"mode": mode}, imported=False)["ecn"] for mode in modes} == modes
    assert of_spec(spec, imported=True)["ecn"] is None
    assert set(of_spec({"groups": "x", "transfers": [None], "rtts_ns": ["a"]}, imported=False).values()) == {
        None,
        "off",
    }
