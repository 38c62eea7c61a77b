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

PLAYBOOKS = sorted((ANSIBLE / "playbooks").glob("*.yml"))


def test_playbooks__and_example_inventories_parse() -> None:
    played = play("--syntax-check", *PLAYBOOKS)
    assert played.status == 0, played.stderr
    for name in ("testbed-tofino", "testbed-linux", "labs"):
        command = [
            Path(sys.executable).parent / "ansible-inventory",
            "-i",
            ANSIBLE / f"inventories/{name}.example",
            "--list",
        ]
        assert json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["_meta"]["hostvars"]


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
    line = cell.play("prepare", "sender", **run_variables).sentence()
    assert "congestion control nosuchcc: this host has" in line


@pytest.mark.software
def test_start__that_fails_is_one_sentence(cell: Cell, run_variables: dict[str, Any]) -> None:
    line = cell.play("start", "switch", **run_variables, daemon_argv=["/no/such/softswitch"]).sentence()
    assert line.startswith("FAILED   switch: daemon : Ensure the host's program is started: softswitch: cannot start")
