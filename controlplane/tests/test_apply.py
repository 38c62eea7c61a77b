# SPDX-License-Identifier: MIT
"""Applying a switch.yaml: the whole file, the differences only, and again after a lost connection at any write."""

from pathlib import Path

import pytest

from controlplane.apply import ApplyError, apply, plan
from controlplane.desired import desired
from controlplane.policy import Ecn, Unwatched
from controlplane.program import Switch
from controlplane.spec import validate
from controlplane.switch import Queue, SwitchError
from controlplane.tests.local import LocalSwitch
from lib import strict_yaml

EXAMPLE = Path(__file__).parents[1] / "switch.example.yaml"
CHANGES = 7  # a queue, a policy, postcards, the collector, three hosts


def wanted(switch: Switch, **other: object):
    return desired(validate({**(strict_yaml.load(EXAMPLE) or {}), **other}, "example"), switch, "example")


def test_plan__lists_changes_and_makes_none(local: LocalSwitch) -> None:
    apply(local, wanted(local))
    local.set_policy(2, Ecn(5, 9))
    local.set_postcards(1, 3)
    local.set_forwarding("02:bf:00:00:00:09", 1)
    local.set_forwarding("02:bf:00:00:00:01", 3)
    writes = local.connection.writes
    assert [str(change) for change in plan(local, wanted(local))] == [
        "forwarding 02:bf:00:00:00:09: port 1 -> none",
        "port 2 policy: ecn marks from 5, drops from 9 packets -> tail-drop from 163 packets",
        "port 1 postcards: on, switch id 3 -> off",
        "forwarding 02:bf:00:00:00:01: port 3 -> port 1",
    ]
    assert local.connection.writes == writes
    assert len(apply(local, wanted(local)).changes) == 4
    assert plan(local, wanted(local)) == []


def test_plan__settings_absent_from_the_file_stay_or_are_switched_off(local: LocalSwitch) -> None:
    apply(local, wanted(local))
    less = wanted(local, ports={}, forwarding=None)
    less.forwarding = None
    assert [str(change) for change in plan(local, less)] == [
        "port 2 policy: tail-drop from 163 packets -> unwatched",
        "port 2 postcards: on, switch id 1 -> off",
    ]
    apply(local, less)
    assert local.policy(2) == Unwatched()
    assert len(local.forwarding()) == 3
    assert local.queue(2) == Queue(rate_bps=200_000_000, limit_packets=20_000)


@pytest.mark.parametrize("writes", range(CHANGES + 1))  # setting the collector takes two writes
def test_apply__after_a_lost_connection_does_the_rest(local: LocalSwitch, writes: int) -> None:
    local.connection.writes_left = writes
    with pytest.raises(ApplyError, match="lost the connection") as failure:
        apply(local, wanted(local))
    lines = failure.value.lines
    done = sum(line.startswith("applied      ") for line in lines)
    left = sum(line.startswith("not applied  ") for line in lines)
    assert (done + 1 + left, sum(line.startswith("not certain  ") for line in lines)) == (CHANGES, 1)
    assert lines[1] == f"applied {done} of {CHANGES} changes; applying again does the rest"
    assert done in (writes, writes - 1)
    assert len(apply(local, wanted(local)).changes) == CHANGES - done
    assert plan(local, wanted(local)) == []


def test_apply__a_switch_that_keeps_other_settings_is_an_error(
    local: LocalSwitch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "set_queue", lambda port, queue: None)
    with pytest.raises(SwitchError, match="reads back other settings: port 2 queue: no bound -> 200mbit"):
        apply(local, wanted(local))


def test_apply__is_the_same_on_every_switch(switch: Switch) -> None:
    """One of the switches is BMv2, which takes rates in packets/s: the file's rate is converted."""
    ports = {"2": {"rate": "100mbit", "policy": {"mode": "tail-drop", "threshold": "0.5bdp"}, "postcards": "1"}}
    names = {str(number): name for name, number in switch.ports().items()}
    content = {
        **(strict_yaml.load(EXAMPLE) or {}),
        "ports": {names[port]: settings for port, settings in ports.items()},
    }
    content["forwarding"] = {mac: names[port] for mac, port in content["forwarding"].items()}
    content["collector"] = {**content["collector"], "port": names["3"]}
    everything = desired(validate(content, "example"), switch, "example")
    nothing = desired(validate({**content, "ports": {}, "forwarding": {}}, "example"), switch, "example")
    assert apply(switch, everything).changes
    assert apply(switch, everything).changes == []
    apply(switch, nothing)
    assert (switch.policy(2), switch.forwarding()) == (Unwatched(), {})
    switch.set_queue(2, Queue())
