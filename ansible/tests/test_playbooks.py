# SPDX-License-Identifier: MIT
"""Playbooks and inventories parse; prepare.yml and start.yml say in one sentence what fails."""

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
from hosts.tests.patience import wait_until

PHASES = ["preflight.yml", "install.yml", "configure.yml", "ensure.yml"]
PLAYBOOKS = sorted((ANSIBLE / "playbooks").glob("*.yml"))


def test_playbooks__and_example_inventories_parse() -> None:
    played = play("--syntax-check", *PLAYBOOKS)
    assert played.status == 0, played.stderr
    for name in ("testbed-tofino", "testbed-soft", "testbed-bmv2", "labs"):
        assert inventory_of(f"{name}.example")["_meta"]["hostvars"]


def inventory_of(name: str) -> dict[str, Any]:
    command = [Path(sys.executable).parent / "ansible-inventory", "-i", ANSIBLE / "inventories" / name, "--list"]
    listed: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return listed


def test_roles__read_preflight_install_configure_ensure() -> None:
    for role in (ANSIBLE / "roles").iterdir():
        main = (role / "tasks/main.yml").read_text()
        phases = [
            found for found in re.findall(r'(?:import|include)_tasks: "?(\S+?)"?$', main, re.M) if found in PHASES
        ]
        assert phases == sorted(phases, key=PHASES.index), role
        assert all((role / path).is_file() for path in ("README.md", "meta/argument_specs.yml", "defaults/main.yml"))


def test_lab_inventory__has_the_names_of_the_topology() -> None:
    inventory = inventory_of("lab")
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
def test_prepare__what_the_kernel_lacks_is_one_sentence(cell: Cell, run_variables: dict[str, Any]) -> None:
    run_variables["spec"]["delay"] = "tc"
    played = cell.play("prepare", "receiver", **run_variables)
    if played.status == 0:
        assert "netem" in cell.run("tc", "qdisc", "show", netns="receiver")
    else:
        (line,) = played.stderr.strip().splitlines()
        assert re.search(r"FAILED   receiver: tc_delay.*this kernel (has no|cannot)", line)
    cell.play("restore", "receiver", **run_variables)
    assert not re.search("netem|ifb|clsact", cell.run("tc", "qdisc", "show", netns="receiver"))
    run_variables["spec"]["groups"][0]["cc"] = "nosuchcc"
    played = cell.play("prepare", "sender", **run_variables)
    assert played.status == 2
    (line,) = played.stderr.strip().splitlines()
    assert "congestion control nosuchcc: this host has" in line


@pytest.mark.software
def test_start__that_fails_is_one_sentence(cell: Cell, run_variables: dict[str, Any]) -> None:
    def sentence(host: str, **more: object) -> str:
        played = cell.play("start", host, **run_variables | more)
        assert played.status == 2
        (line,) = played.stderr.strip().splitlines()
        return line

    line = sentence("switch", switch_binary="/no/such/softswitch")
    assert line.startswith("FAILED   switch: daemon : Ensure softswitch is started: softswitch: cannot start")
    line = sentence("switch", runtime_dir=run_variables["runtime_dir"] + "/" + "x" * 100)
    assert "a Unix socket's path has at most 107: choose a shorter runtime_dir" in line
    command = [*cell.prefix, "nsenter", "--net=/run/netns/receiver", "iperf3", "--server", "--port", "5201"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as busy:
        try:
            wait_until(lambda: ":5201" in cell.run("ss", "-ltnH", netns="receiver"))
            assert "servers: port 5201 is busy" in sentence("receiver")
        finally:
            busy.terminate()
