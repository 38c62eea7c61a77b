# SPDX-License-Identifier: MIT
"""Plays playbooks with the repository's configuration."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

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
