# SPDX-License-Identifier: MIT
"""Testbeds: which inventories are refused, and a switch that is not reached. (A whole run: test_tofino_run.py.)"""

import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from experiments.lab import machines, testbed
from experiments.lab.machines import Machine
from experiments.machine.host import CHECKOUT
from lib.errors import RunError


def inventory(tmp_path: Path, **changed: dict[str, Any]) -> Path:
    hosts: dict[str, dict[str, Any]] = {
        "tofino1": {"switch_address": "192.0.2.10:50052", "bottleneck_port": "2/0"},
        "sender": {"ansible_host": "192.0.2.12", "bufferscope_interface": "bond0",
                   "bufferscope_address": "198.51.100.2"},
        "receiver": {"ansible_host": "192.0.2.13", "bufferscope_interface": "eth2",
                     "bufferscope_address": "198.51.100.1"},
        "collector": {"ansible_host": "192.0.2.12", "bufferscope_interface": "eth4"},
    }  # fmt: skip
    for name, variables in changed.items():
        hosts[name] = variables
    groups = {"tofino": "tofino1", "senders": "sender", "receivers": "receiver", "collectors": "collector"}
    content = {group: {"hosts": {name: hosts[name]}} for group, name in groups.items()}
    (tmp_path / "hosts.json").write_text(json.dumps(content))
    return tmp_path / "hosts.json"


def test_inventory__says_where_everything_is(tmp_path: Path) -> None:
    found = testbed.load(inventory(tmp_path), "tofino")
    assert found.variable("switch", "bottleneck_port") == "2/0"
    assert found.places == {
        "switch": "tofino1", "sender": "192.0.2.12", "receiver": "192.0.2.13", "collector": "192.0.2.12",
    }  # fmt: skip
    assert found.machines["sender"].interfaces == ("bond0",)
    for target in ("tofino", "soft", "bmv2"):
        name = "tofino" if target == "tofino" else "linux"
        example = testbed.load(CHECKOUT / f"ansible/inventories/testbed-{name}.example", target)
        assert example.machines["receiver"].login[-1] == "bufferscope@192.0.2.13"


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
