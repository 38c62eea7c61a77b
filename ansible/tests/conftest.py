# SPDX-License-Identifier: MIT
"""A cell with the lab's network, and ansible-playbook inside it, as in a run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from experiments.spec import topology

CHECKOUT = Path(__file__).resolve().parents[2]
ANSIBLE = CHECKOUT / "ansible"
PLAYBOOK = Path(sys.executable).parent / "ansible-playbook"
# Longer than a loaded machine needs, short enough for a test that hangs.
TIMEOUT_S = 300


@dataclass
class Played:
    """The result of a playbook: exit status, output, and the recap's totals by host."""

    status: int
    stdout: str
    stderr: str
    hosts: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def changed(self) -> int:
        return sum(totals["changed"] for totals in self.hosts.values())

    def sentence(self, status: int = 2) -> str:
        """The one line that says why it failed."""
        assert self.status == status, self.stdout + self.stderr
        (line,) = self.stderr.strip().splitlines()
        return line


def play(*arguments: str | Path, prefix: tuple[str, ...] = (), variables: dict[str, object] | None = None) -> Played:
    """Runs ansible-playbook with the repository's configuration."""
    command = [*prefix, str(PLAYBOOK), *map(str, arguments)]
    if variables is not None:
        command += ["-e", json.dumps(variables)]
    result = subprocess.run(
        command,
        env={**os.environ, "ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    played = Played(result.returncode, result.stdout, result.stderr)
    for host, totals in re.findall(r"^(\S+) +(ok=\d+ changed=.*)$", result.stdout, re.M):
        played.hosts[host] = {key: int(value) for key, value in (pair.split("=") for pair in totals.split())}
    return played


def deploy_here(directory: Path, group: str, **more: object) -> Played:
    """Plays deploy.yml for a host of `group`, which is this machine through a local connection in place of SSH: it has
    no checkout, only copied files.
    """
    inventory = {"machines": {"hosts": {"one": {"ansible_connection": "local"}}}, group: {"hosts": {"one": {}}}}
    (directory / "hosts.json").write_text(json.dumps(inventory))
    variables: dict[str, object] = {
        "ansible_python_interpreter": sys.executable,
        "binaries_source": "copy",
        "bufferscope_dir": str(directory / "bufferscope"),
        "bufferscope_state_dir": str(directory / "state"),
        "packages_by_group": {},
    }
    playbook = ANSIBLE / "playbooks/deploy.yml"
    return play("-i", directory / "hosts.json", playbook, variables=variables | more)


@dataclass
class Cell:
    """Private PID, mount and network namespaces with the lab's network; everything in it ends with the fixture."""

    pid: int

    @property
    def prefix(self) -> tuple[str, ...]:
        return ("nsenter", f"--target={self.pid}", "--mount", "--net", "--pid", f"--wd={CHECKOUT}", "--")

    def run(self, *command: str, netns: str | None = None) -> str:
        inside = ("nsenter", f"--net=/run/netns/{netns}", "--") if netns else ()
        result = subprocess.run(
            [*self.prefix, *inside, *command], capture_output=True, text=True, timeout=TIMEOUT_S, check=True
        )
        return result.stdout

    def play(self, playbook: str, limit: str = "all", **variables: object) -> Played:
        path = ANSIBLE / "playbooks" / f"{playbook}.yml"
        return play("--limit", limit, path, prefix=self.prefix, variables=variables)


@pytest.fixture(scope="session")
def cell() -> Iterator[Cell]:
    if os.geteuid() != 0:
        pytest.skip("needs root: makes network namespaces")
    unshare = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    process = subprocess.Popen(
        [*unshare, sys.executable, str(ANSIBLE / "tests/lab_init.py")],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    (init,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    yield Cell(int(init))
    process.stdin.close()
    process.wait(timeout=60)


@pytest.fixture
def run_variables(cell: Cell, tmp_path: Path) -> dict[str, Any]:
    """The variables of a repetition, as the runner passes them. Each test has a new runtime_dir in the cell's /run."""
    cell.run("mkdir", f"/run/{tmp_path.name}")
    return {
        "run_dir": str(tmp_path),
        "logs_dir": str(tmp_path / "logs"),
        "runtime_dir": f"/run/{tmp_path.name}",
        "python": sys.executable,
        "checkout": str(CHECKOUT),
        "collector_address": topology.COLLECTOR.ipv4,
        "collector_source": topology.POSTCARD_SOURCE,
        "spec": {
            "groups": [{"cc": "cubic", "flows": 16}],
            "mode": "tail-drop",
            "delay": "switch",
            "generator": "iperf3",
            "rtt_ns": 10_000_000,
            "mtu_bytes": 1500,
            "bdp_packets": 163,
            "buffer_packets": 163,
        },
    }
