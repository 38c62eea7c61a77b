# SPDX-License-Identifier: MIT
"""Tests of testbed runs without a testbed: which inventories are refused, and what a run asks of a fake switch and of
Ansible. No playbook runs.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from controlplane import fake
from controlplane.policy import Ecn, TailDrop, Unit, Unwatched
from controlplane.switch import Collector, Count
from controlplane.threshold import Conversion
from experiments.host import CHECKOUT, Host
from experiments.lab import machines, testbed
from experiments.lab.machines import Machine
from experiments.resolve import resolve
from experiments.resolved import Resolved
from experiments.run_plan import policy
from experiments.tests.no_machines import without_machines
from lib.errors import RunError
from runs import results
from runs.names import ENVIRONMENT

ADDRESS = "testbed"
COLLECTOR = Collector(3, "02:00:00:00:01:03", "02:00:00:00:00:04", "203.0.113.1", "203.0.113.2", 5577, 5577)


def spec(**given: str) -> Resolved:
    asked = {"target": "tofino", "rate": "10gbit", "rtt": "1ms", "mtu": "9000", "flows": "2"}
    return resolve(asked | given, Host(("cubic",), netem=False))


def inventory(tmp_path: Path, **changed: dict[str, Any]) -> Path:
    hosts: dict[str, dict[str, Any]] = {
        "tofino1": {"switch_address": "192.0.2.10:50052", "bottleneck_port": "2/0"},
        "sender": {
            "ansible_host": "192.0.2.12",
            "bufferscope_interface": "bond0",
            "bufferscope_address": "198.51.100.2",
        },
        "receiver": {
            "ansible_host": "192.0.2.13",
            "bufferscope_interface": "eth2",
            "bufferscope_address": "198.51.100.1",
        },
        "collector": {"ansible_host": "192.0.2.12", "bufferscope_interface": "eth4"},
    }
    for name, variables in changed.items():
        hosts[name] = variables
    groups = {"tofino": "tofino1", "senders": "sender", "receivers": "receiver", "collectors": "collector"}
    content = {group: {"hosts": {name: hosts[name]}} for group, name in groups.items()}
    (tmp_path / "hosts.json").write_text(json.dumps(content))
    return tmp_path / "hosts.json"


def test_inventory__says_where_everything_is(tmp_path: Path) -> None:
    found = testbed.load(inventory(tmp_path), "tofino")
    assert found.variable("switch", "switch_address") == "192.0.2.10:50052"
    assert found.variable("switch", "bottleneck_port") == "2/0"
    assert found.places == {
        "switch": "tofino1",
        "sender": "192.0.2.12",
        "receiver": "192.0.2.13",
        "collector": "192.0.2.12",
    }
    assert found.machines["sender"].interfaces == ("bond0",)


@pytest.mark.parametrize("target", ["tofino", "soft", "bmv2"])
def test_inventory__of_the_example_is_complete(target: str) -> None:
    found = testbed.load(CHECKOUT / f"ansible/inventories/testbed-{target}.example", target)
    assert found.machines["receiver"].login[-1] == "bufferscope@192.0.2.13"


def test_inventory__gets_one_line_for_each_missing_variable(tmp_path: Path) -> None:
    broken = inventory(tmp_path, tofino1={"switch_address": "x"}, collector={"ansible_host": "192.0.2.99"})
    with pytest.raises(RunError) as failure:
        testbed.load(broken, "tofino")
    first, second = failure.value.lines
    assert "host tofino1 has no bottleneck_port, as in bottleneck_port: 2/0" in first
    assert "host collector has no bufferscope_interface, as in bufferscope_interface: enp1s0" in second


def test_inventory__with_a_delay_line_needs_the_delay_of_a_switch(tmp_path: Path) -> None:
    content = {"bmv2": {"hosts": {"one": {}}}, "lines": {"hosts": {"line": {"switch_ports": ["1=a", "2=b"]}}}}
    (tmp_path / "hosts.json").write_text(json.dumps(content))
    with pytest.raises(RunError) as failure:
        testbed.load(tmp_path / "hosts.json", "bmv2")
    assert "the group lines stands between switch and receiver: give DELAY=switch" in str(failure.value)


def test_bmv2__that_is_not_reached_names_the_machine_and_the_cause() -> None:
    machine = Machine("switch", "192.0.2.1", (), ("sh", "-c"), False, sys.executable, str(CHECKOUT), "/nowhere")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    said = r"switch \(192.0.2.1\): simple_switch is not reached: .*Connection refused"
    with pytest.raises(RunError, match=said), machines.bmv2_switch(machine, port):
        pass


@pytest.fixture
def switch() -> Iterator[fake.FakeSwitch]:
    fake.MEMORIES.pop(ADDRESS, None)
    one = fake.connect(ADDRESS)
    one.memory.ports = {"1/0": 1, "2/0": 2, "3/0": 3}
    one.set_collector(COLLECTOR)
    yield one
    fake.MEMORIES.pop(ADDRESS, None)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch, switch: fake.FakeSwitch) -> list[tuple[str, ...]]:
    """The playbooks that were asked for, each with the policy that was in force while it ran."""
    seen: list[Any] = []

    def play(names: tuple[str, ...], variables: dict[str, Any], *_: object) -> None:
        seen.append((*names, switch.policy(2)))
        assert (variables["collector_address"], variables["collector_source"]) == ("203.0.113.2", "203.0.113.1")
        if "traffic" in names:
            assert variables["traffic_plan"]["server"] == "198.51.100.1"
            assert variables["run_groups"] == "tofino:collectors:senders:receivers"
            switch.memory.counters["arrivals"] = {2: Count(7, 700)}
            switch.memory.counters["postcards_made"] = {3: Count(7, 700)}

    monkeypatch.setattr(testbed.playbooks, "run", play)
    monkeypatch.setattr(testbed, "connect", lambda target, address: fake.connect(address))
    without_machines(monkeypatch)
    return seen


def run(tmp_path: Path, one: testbed.Testbed, asked: Resolved | None = None) -> Path:
    directory = results.create_repetition(tmp_path, 1)
    testbed.TestbedLab(asked or spec(), one).record(1, directory, None)
    return directory


def on(tmp_path: Path) -> testbed.Testbed:
    return testbed.load(inventory(tmp_path, tofino1={"switch_address": ADDRESS, "bottleneck_port": "2/0"}), "tofino")


def test_run__sets_the_policy_and_puts_back_the_one_before(
    tmp_path: Path, switch: fake.FakeSwitch, played: list[Any]
) -> None:
    switch.set_policy(2, TailDrop(5))
    own = run(tmp_path, on(tmp_path))
    assert [entry[:-1] for entry in played] == [("prepare", "start"), ("traffic",), ("stop",), ("stop",)]
    assert played[1][-1] == TailDrop(spec().buffer_packets)
    assert switch.policy(2) == TailDrop(5)
    assert switch.postcards(2) is None
    assert switch.memory.writer is None
    state = json.loads((own / "switch.json").read_text())
    assert state["bottleneck_port"] == 2
    assert state["counters"]["arrivals"]["2"]["packets"] == 7
    assert state["before"]["counters"]["arrivals"] == {}
    assert json.loads((own / ENVIRONMENT).read_text())["frames_lost_in_backlog"] == {
        "sender/eth0": 0,
        "receiver/eth0": 0,
    }


def test_run__that_fails_stops_the_programs_and_puts_the_policy_back(
    tmp_path: Path, switch: fake.FakeSwitch, played: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = testbed.playbooks.run

    def fail(names: tuple[str, ...], *rest: Any) -> None:
        before(names, *rest)
        if "traffic" in names:
            raise RunError("FAILED   sender: no")

    monkeypatch.setattr(testbed.playbooks, "run", fail)
    with pytest.raises(RunError, match="FAILED   sender: no"):
        run(tmp_path, on(tmp_path))
    assert [entry[:-1] for entry in played] == [("prepare", "start"), ("traffic",), ("stop",)]
    assert switch.policy(2) == Unwatched()


def test_run__names_what_the_switch_lacks(tmp_path: Path, switch: fake.FakeSwitch, played: list[Any]) -> None:
    switch.memory.ports = {"1/0": 1}
    with pytest.raises(RunError, match=r"has no port '2/0' \(bottleneck_port\); allowed: 1/0"):
        run(tmp_path, on(tmp_path))


def test_policy__counts_in_cells_on_a_target_that_knows_only_cells(
    switch: fake.FakeSwitch, monkeypatch: pytest.MonkeyPatch
) -> None:
    can = replace(switch.capabilities, depth_units=(Unit.CELLS,), cell_bytes=80, queued_extra_bytes=22)
    monkeypatch.setattr(fake.FakeSwitch, "capabilities", property(lambda _: can))
    conversion = Conversion(9000, 10**10, 10**6)
    each = -(-(9014 + 22) // 80)
    assert testbed.converted(policy(spec(buf="138p")), switch, conversion) == TailDrop(138 * each, Unit.CELLS)
    asked = spec(mode="ecn", buf="100p", ecn_threshold="40p")
    assert testbed.converted(policy(asked), switch, conversion) == Ecn(40 * each, 100 * each, Unit.CELLS)
