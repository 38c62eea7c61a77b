# SPDX-License-Identifier: MIT
"""Playbooks and inventories parse; prepare.yml says in one sentence what fails."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible.tests.conftest import ANSIBLE, CHECKOUT, Played, play
from experiments.machine import cell
from experiments.spec import topology

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
def test_prepare__what_fails_is_one_sentence_and_restore_leaves_nothing(tmp_path: Path) -> None:
    def play_here(playbook: str, host: str, **changed: object) -> Played:
        spec = {
            "groups": [{"cc": "cubic", "flows": 16}], "mode": "tail-drop", "delay": "tc", "generator": "iperf3",
            "rtt_ns": 10_000_000, "mtu_bytes": 1500, "bdp_packets": 163, "buffer_packets": 163,
        } | changed  # fmt: skip
        directories = {"run_dir": str(tmp_path), "logs_dir": str(tmp_path), "runtime_dir": str(cell.RUNTIME)}
        programs = {"python": sys.executable, "checkout": str(CHECKOUT)}
        path = ANSIBLE / f"playbooks/{playbook}.yml"
        return play("--limit", host, path, variables={**directories, **programs, "spec": spec})

    def queues() -> str:
        words = topology.inside("receiver", "tc", "qdisc", "show")
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    def work() -> list[Any]:
        topology.build(topology.Network(1500))
        with_netem, delayed = play_here("prepare", "receiver"), queues()
        play_here("restore", "receiver")
        without = play_here("prepare", "sender", delay="switch", groups=[{"cc": "nosuchcc", "flows": 16}])
        return [with_netem.status, with_netem.stderr, delayed, queues(), without.sentence()]

    status, line, delayed, restored, without = cell.run(work)
    if status:
        assert re.fullmatch(r"FAILED   receiver: tc_delay.*this kernel (has no|cannot).*", line.strip())
    else:
        assert "netem" in delayed
    assert not re.search("netem|ifb|clsact", restored)
    assert "congestion control nosuchcc: this host has" in without
