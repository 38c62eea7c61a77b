# SPDX-License-Identifier: MIT
"""Columns of the run table for traffic groups: of specs that list `groups`, and of specs without them."""

from typing import Any

from model.experiment import Experiment
from runs.group_columns import of_experiment

RUN: dict[str, Any] = {
    "spec_version": 1, "target": "soft", "clock": "real", "mode": "tail-drop", "groups": [], "rate_bps": 10**9,
    "rtt_ns": 20_000_000, "mtu_bytes": 1500, "wire_bytes": 1538,
    "bdp_packets": 1625, "buffer_packets": 100, "duration_ns": 10**10, "warmup_ns": 0,
}  # fmt: skip
SIZES = {"name": "fixed", "value": 9}
USERS = {
    "kind": "closed-loop", "cc": "reno", "sizes_given": "fixed:9B", "sizes": SIZES, "mean_size_bytes": 9.0,
    "mean_wire_bytes": 400.0, "users": 9, "think": SIZES,
    "mean_think_ns": 9.0, "think_from": "end",
}  # fmt: skip
GROUPS = {
    "groups": [
        {"number": 0, "cc": "cubic", "flows": 20, "rtt_ns": 20_000_000, "ecn": "on"},
        USERS | {"number": 1, "rtt_ns": 20_000_000, "access_links": 2, "rtts_ns": [50_000_000, 20_000_000]},
        {"number": 2, "cc": "bbr", "flows": 5, "rtt_ns": 80_000_000},
        {"kind": "open-loop", "number": 3, "flows": 1, "load": 0.1, "sizes": "fixed", "arrivals": "poisson"},
    ],
}  # fmt: skip


def columns(**more: Any) -> dict[str, Any]:
    return of_experiment(Experiment.model_validate(RUN | more))


def test_columns__of_groups_are_in_the_order_of_their_numbers() -> None:
    values = columns(**GROUPS)
    assert values["groups"] == "20 cubic 20ms + 9 users of reno 50ms,20ms + 5 bbr 80ms + 0.1 open-loop"
    assert values["rtts_ns"] == "20000000,50000000,80000000"
    assert (values["access_links"], values["ecn"]) == (2, "on,off")


def test_columns__of_one_description_are_those_of_the_run() -> None:
    group = {"cc": "reno", "flows": 2, "rtt_ns": 1, "rtt_spread_ns": 2, "rtts_ns": [3, 1], "window_packets": 9}
    spec: dict[str, Any] = {"mode": "ecn", "groups": [group, {**group, "cc": "cubic"}]}
    values = {name: value for name, value in columns(**spec | {"rtt_ns": 1}).items() if value is not None}
    assert values == {"rtts_ns": "1,3", "ecn": "on", "window_packets": 9, "pacing": "off", "rtt_spread_ns": 2}
    assert columns(**spec | {"groups": [group | {"ecn": "off"}]})["ecn"] == "off"
    modes = {"tail-drop": "off", "egress-threshold": "off", "egress-ecn": "on"}
    assert {mode: columns(**spec | {"mode": mode})["ecn"] for mode in modes} == modes
    assert columns(**spec, imported={"what": "files"})["ecn"] is None
