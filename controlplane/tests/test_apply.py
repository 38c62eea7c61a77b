# SPDX-License-Identifier: MIT
"""Applying a switch.yaml: the whole file, the differences only, and again after a lost connection at any write."""

from __future__ import annotations

from pathlib import Path

import pytest

from controlplane.apply import ApplyError, apply, plan
from controlplane.desired import desired
from controlplane.policy import Ecn, Unwatched
from controlplane.program import Switch
from controlplane.spec import validate
from controlplane.switch import Queue, SwitchError
from controlplane.tests.fake import FakeSwitch
from lib import strict_yaml

EXAMPLE = Path(__file__).parents[1] / "switch.example.yaml"
CHANGES = 7  # a queue, a policy, postcards, the collector, three hosts


def wanted(switch: Switch, **other: object):
    return desired(validate({**(strict_yaml.load(EXAMPLE) or {}), **other}, "example"), switch, "example")


def test_plan__lists_changes_and_makes_none(fake: FakeSwitch) -> None:
    apply(fake, wanted(fake))
    fake.set_policy(2, Ecn(5, 9))
    fake.set_postcards(1, 3)
    fake.set_forwarding("02:bf:00:00:00:09", 1)
    fake.set_forwarding("02:bf:00:00:00:01", 3)
    writes = fake.memory.writes
    assert [str(change) for change in plan(fake, wanted(fake))] == [
        "forwarding 02:bf:00:00:00:09: port 1 -> none",
        "port 2 policy: ecn marks from 5, drops from 9 packets -> tail-drop from 163 packets",
        "port 1 postcards: on, switch id 3 -> off",
        "forwarding 02:bf:00:00:00:01: port 3 -> port 1",
    ]
    assert fake.memory.writes == writes
    assert len(apply(fake, wanted(fake)).changes) == 4
    assert plan(fake, wanted(fake)) == []


def test_plan__settings_absent_from_the_file_stay_or_are_switched_off(fake: FakeSwitch) -> None:
    apply(fake, wanted(fake))
    less = wanted(fake, ports={}, forwarding=None)
    less.forwarding = None
    assert [str(change) for change in plan(fake, less)] == [
        "port 2 policy: tail-drop from 163 packets -> unwatched",
        "port 2 postcards: on, switch id 1 -> off",
    ]
    apply(fake, less)
    assert fake.policy(2) == Unwatched()
    assert len(fake.forwarding()) == 3
    assert fake.queue(2) == Queue(rate_bps=200_000_000, limit_packets=20_000)


@pytest.mark.parametrize("writes", range(CHANGES + 1))  # setting the collector takes two writes
def test_apply__after_a_lost_connection_does_the_rest(fake: FakeSwitch, writes: int) -> None:
    fake.memory.writes_left = writes
    with pytest.raises(ApplyError, match="fake switch at test: lost the connection") as failure:
        apply(fake, wanted(fake))
    lines = failure.value.lines
    done = sum(line.startswith("applied      ") for line in lines)
    left = sum(line.startswith("not applied  ") for line in lines)
    assert (done + 1 + left, sum(line.startswith("not certain  ") for line in lines)) == (CHANGES, 1)
    assert lines[1] == f"applied {done} of {CHANGES} changes; applying again does the rest"
    assert done in (writes, writes - 1)
    assert len(apply(fake, wanted(fake)).changes) == CHANGES - done
    assert plan(fake, wanted(fake)) == []


def test_apply__a_switch_that_keeps_other_settings_is_an_error(
    fake: FakeSwitch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake, "set_queue", lambda port, queue: None)
    with pytest.raises(SwitchError, match="reads back other settings: port 2 queue: no bound -> 200mbit"):
        apply(fake, wanted(fake))


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
