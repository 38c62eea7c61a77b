# SPDX-License-Identifier: MIT
"""The connection plugin: a task runs in the right namespace, and a name never becomes a path or a shell command."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible.tests.conftest import Played, play
from experiments.machine import cell
from experiments.spec import topology

INVENTORY = """
all:
  hosts:
    {host}:
      ansible_connection: netns
      ansible_python_interpreter: "{{{{ ansible_playbook_python }}}}"
"""
PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.command:
        argv: [sh, -c, ip -oneline link; cat /proc/self/mounts]
      changed_when: false
    - ansible.builtin.copy:
        src: {source}
        dest: {destination}
        mode: "0600"
"""


def _play(tmp_path: Path, host: str, **variables: object) -> Played:
    (tmp_path / "hosts.yml").write_text(INVENTORY.format(host=host))
    (tmp_path / "play.yml").write_text(PLAY.format(source=tmp_path / "hosts.yml", destination=tmp_path / "copied"))
    return play("-vv", "-i", tmp_path / "hosts.yml", tmp_path / "play.yml", variables=variables)


@pytest.mark.software
def test_netns__runs_tasks_in_the_namespace_of_its_name_and_copies_on_this_machine(tmp_path: Path) -> None:
    """`ip netns exec` would hide the mounts below /sys, such as tracefs and bpffs, which the tracer needs."""

    def work() -> list[Any]:
        topology.build(topology.Network(1500))
        subprocess.run(["mount", "-t", "tmpfs", "canary", "/sys/fs/cgroup"], check=True)
        both = _play(tmp_path, "switch"), _play(tmp_path, "switch", ansible_netns="collector")
        return [[played.status, played.changed, played.stdout + played.stderr] for played in both]

    (*first, switch), (*second, collector) = cell.run(work)
    assert first == [0, 1], switch
    words = ("to_sender", "to_receiver", "to_collector", "canary /sys/fs/cgroup")
    assert [word for word in words if word not in switch] == []
    assert (tmp_path / "copied").read_text() == (tmp_path / "hosts.yml").read_text()
    assert second == [0, 0], collector  # the copy is there
    assert "eth0@" in collector
    assert "to_sender" not in collector


def test_netns__a_missing_namespace_is_one_sentence(tmp_path: Path) -> None:
    line = _play(tmp_path, "no-such-namespace").sentence(4)
    assert "there is no network namespace /run/netns/no-such-namespace: run this inside the lab's cell" in line


NOT_NAMES = [
    *("sender; touch MARK", "$(touch MARK)", "`touch MARK`", "sender' && touch MARK '", "../../proc/1/ns/net", ".."),
    *("--help", "-t1", "sender\ntouch MARK", "sender\n", "", "a" * 65, "s\u00e9nder", 7),
]


def test_netns__refuses_invalid_names(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    names = [name.replace("MARK", str(mark)) if isinstance(name, str) else name for name in NOT_NAMES]
    hosts = {f"victim{i}": {"ansible_connection": "netns", "ansible_netns": name} for i, name in enumerate(names)}
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    (tmp_path / "play.yml").write_text(PLAY.format(source="/dev/null", destination=tmp_path / "copied"))
    played = play("-i", tmp_path / "hosts.json", tmp_path / "play.yml")
    assert played.status == 4, played.stdout
    for host in hosts:
        assert f"UNREACHABLE {host}: " in played.stderr
        assert played.hosts[host]["unreachable"] == 1
    assert played.stderr.count("is not a namespace name: allowed are 1 to 64 letters") == len(hosts)
    assert not mark.exists()
