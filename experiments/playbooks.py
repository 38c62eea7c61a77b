# SPDX-License-Identifier: MIT
"""Runs Ansible on the lab's hosts: one process for all playbooks of a step, because each start costs a second.

A failure comes back as the sentences that Ansible's callback wrote; everything else is in the repetition's logs.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from experiments import host
from experiments.cell import RUNTIME
from experiments.errors import RunError

ANSIBLE = host.CHECKOUT / "ansible"
TIMEOUT_S = 120


def run(playbooks: tuple[str, ...], variables: dict[str, Any], log: Path) -> None:
    """Runs `playbooks` (names in ansible/playbooks) one after the other. Raises RunError with what failed."""
    variables_file = RUNTIME / "vars.json"
    variables_file.write_text(json.dumps(variables))
    program = host.tool("ansible-playbook")
    assert program  # found by host.missing before
    command = [program, "-i", str(ANSIBLE / "inventories/lab"), "-e", f"@{variables_file}", "-v"]
    command += [str(ANSIBLE / f"playbooks/{name}.yml") for name in playbooks]
    with log.open("a") as output:
        try:
            done = subprocess.run(
                command, env=_environment(), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE,
                timeout=TIMEOUT_S, text=True, errors="replace", check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise RunError(f"ansible-playbook has not ended after {TIMEOUT_S} s: see {log}") from None
        output.write(done.stderr)
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        failures = [line for line in lines if line.startswith(("FAILED", "UNREACHABLE"))]
        raise RunError(*(failures or lines[-1:] or [f"ansible-playbook ended with {done.returncode}: see {log}"]))


def _environment() -> dict[str, str]:
    """Nothing of the user's own Ansible configuration, and no file outside the cell."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    return kept | {
        "ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg"),
        "ANSIBLE_HOME": str(RUNTIME / "ansible"),
        "ANSIBLE_LOCAL_TEMP": str(RUNTIME / "ansible/tmp"),
        "ANSIBLE_REMOTE_TEMP": str(RUNTIME / "ansible/remote-tmp"),
        "ANSIBLE_NOCOLOR": "1",
        "LC_ALL": "C.UTF-8",
        "TMPDIR": str(RUNTIME),
    }
