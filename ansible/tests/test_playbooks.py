# SPDX-License-Identifier: MIT
"""The playbooks parse with every inventory; prepare.yml is idempotent and can be undone."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible.tests.conftest import ANSIBLE, Cell, play
from experiments import topology

PHASES = ["preflight.yml", "install.yml", "configure.yml", "ensure.yml"]
PLAYBOOKS = sorted((ANSIBLE / "playbooks").glob("*.yml"))
ROLES = sorted((ANSIBLE / "roles").iterdir())


@pytest.mark.parametrize(
    "inventory", ["lab", "testbed-tofino.example", "testbed-soft.example", "testbed-bmv2.example", "labs.example"]
)
def test_playbooks__parse_with_every_inventory(inventory: str) -> None:
    played = play("--syntax-check", "-i", ANSIBLE / "inventories" / inventory, *PLAYBOOKS)
    assert played.status == 0, played.stderr


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_roles__read_preflight_install_configure_ensure(role: Path) -> None:
    main = (role / "tasks/main.yml").read_text()
    phases = [phase for phase in re.findall(r'(?:import|include)_tasks: "?(\S+?)"?$', main, re.M) if phase in PHASES]
    assert phases == sorted(phases, key=PHASES.index)
    assert all((role / path).is_file() for path in ("README.md", "meta/argument_specs.yml", "defaults/main.yml"))


def test_lab_inventory__has_the_names_of_the_topology() -> None:
    command = [Path(sys.executable).parent / "ansible-inventory", "-i", ANSIBLE / "inventories/lab", "--list"]
    inventory = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    bmv2 = topology.Network(1500, "bmv2_switch", line=True)
    assert set(inventory["namespaces"]["hosts"]) == {*topology.Network(1500).namespaces, *bmv2.namespaces}
    for name in (topology.SWITCH, bmv2.switch):
        switch = inventory["_meta"]["hostvars"][name]
        assert switch["switch_ports"] == [f"{host.port}={host.switch_interface}" for host in topology.HOSTS]
        assert switch["tune_interfaces"] == [host.switch_interface for host in topology.HOSTS]
    line = inventory["_meta"]["hostvars"][topology.LINE]
    interfaces = [topology.LINE_INTERFACE, topology.RECEIVER.switch_interface]
    ports = [topology.LINE_TO_SENDER, topology.LINE_TO_RECEIVER]
    assert line["switch_ports"] == [f"{port}={name}" for port, name in zip(ports, interfaces, strict=True)]
    assert line["tune_interfaces"] == interfaces
    assert inventory["_meta"]["hostvars"]["sender"]["bufferscope_interface"] == topology.INTERFACE


@pytest.mark.software
def test_prepare__twice_changes_nothing_and_restore_puts_all_back(cell: Cell, run_variables: dict[str, Any]) -> None:
    before = _settings(cell)
    first = cell.play("prepare", **run_variables)
    assert first.status == 0, first.stderr
    changed = {host: totals["changed"] for host, totals in first.hosts.items()}
    assert changed == {"switch": 1, "sender": 1, "receiver": 1, "collector": 1}
    tuned = _settings(cell)
    for interface in tuned["offloads"].values():
        assert not [f for f in ("tso", "gso", "gro", "lro") if re.search(rf"^{LONG[f]}: on", interface, re.M)]
    assert set(tuned["gso_max_segs"].values()) == {"1"}
    assert tuned["sysctls"]["sender"].split() == ["1", "0"]

    second = cell.play("prepare", **run_variables)
    assert (second.status, second.changed) == (0, 0), second.stdout + second.stderr

    restored = cell.play("restore", **run_variables)
    assert restored.status == 0, restored.stderr
    assert _settings(cell) == before
    assert cell.play("restore", **run_variables).changed == 0


@pytest.mark.software
def test_prepare__an_unknown_congestion_control_is_one_sentence(cell: Cell, run_variables: dict[str, Any]) -> None:
    run_variables["spec"]["groups"][0]["cc"] = "nosuchcc"
    played = cell.play("prepare", "sender", **run_variables)
    assert played.status == 2
    (line,) = played.stderr.strip().splitlines()
    assert line.startswith("FAILED   sender: congestion_control")
    assert "congestion control nosuchcc: this host has" in line


@pytest.mark.software
def test_prepare__tc_delays_or_says_that_there_is_no_netem(cell: Cell, run_variables: dict[str, Any]) -> None:
    run_variables["spec"]["delay"] = "tc"
    played = cell.play("prepare", "receiver", **run_variables)
    if played.status == 0:
        assert "netem" in cell.run("tc", "qdisc", "show", netns="receiver")
        assert cell.play("prepare", "receiver", **run_variables).changed == 0
    else:
        (line,) = played.stderr.strip().splitlines()
        assert re.search(r"FAILED   receiver: tc_delay.*this kernel (has no|cannot)", line)
    cell.play("restore", "receiver", **run_variables)
    assert not re.search("netem|ifb|clsact", cell.run("tc", "qdisc", "show", netns="receiver"))


LONG = {
    "tso": "tcp-segmentation-offload",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
    "lro": "large-receive-offload",
}


def _settings(cell: Cell) -> dict[str, dict[str, str]]:
    names = ["net.ipv4.tcp_no_metrics_save", "net.ipv4.tcp_slow_start_after_idle"]
    paths = [f"/proc/sys/{name.replace('.', '/')}" for name in names]
    interfaces = [("switch", host.switch_interface) for host in topology.HOSTS]
    interfaces += [(host.name, topology.INTERFACE) for host in topology.HOSTS]
    return {
        "sysctls": {host: cell.run("cat", *paths, netns=host) for host in ("sender", "receiver")},
        "offloads": {f"{host} {name}": cell.run("ethtool", "-k", name, netns=host) for host, name in interfaces},
        "gso_max_segs": {f"{host} {name}": _gso_max_segs(cell, host, name) for host, name in interfaces},
    }


def _gso_max_segs(cell: Cell, host: str, interface: str) -> str:
    (link,) = json.loads(cell.run("ip", "-j", "-d", "link", "show", "dev", interface, netns=host))
    return str(link["gso_max_segs"])
