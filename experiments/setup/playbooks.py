# SPDX-License-Identifier: MIT
"""Runs Ansible on the hosts of the lab or of a testbed: one process for all playbooks of a step, because each start of
Ansible costs a second.

A failure is reported with the messages of our callback plugin (ansible/plugins/callback). All other output is in the
repetition's logs. `plan` runs nothing: the same playbooks list the programs that they would run, for hosts that do not
exist yet.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from experiments.machine import host
from experiments.machine.cell import RUNTIME
from experiments.setup.steps import SetupStep, in_order
from lib import syscalls
from lib.errors import RunError

ANSIBLE = host.CHECKOUT / "ansible"
LAB = ANSIBLE / "inventories/lab"
TIMEOUT_S = 120
SETUP = ("prepare", "start")


class UnfinishedError(RunError):
    """A task may still run on a host: nobody waits for it any more."""


def plan(playbooks: tuple[str, ...], variables: dict[str, Any], log: Path, scratch: Path) -> list[SetupStep]:
    """The programs that `playbooks` would run on the lab's hosts, in an order that does not depend on timing.

    `scratch` is a directory for temporary files. Raises RunError with the failures.
    """
    file = scratch / "plan.jsonl"
    file.touch()
    run(playbooks, variables | {"bufferscope_plan": str(file)}, log, scratch)
    return in_order([SetupStep(**json.loads(line)) for line in file.read_text().splitlines()])


def run(
    playbooks: tuple[str, ...], variables: dict[str, Any], log: Path, scratch: Path = RUNTIME, inventory: Path = LAB,
    more_s: float = 0.0,
) -> None:  # fmt: skip
    """Runs `playbooks` (names in ansible/playbooks) one after the other. `more_s` is added to the time limit.
    Raises RunError with the failures.
    """
    variables_file = scratch / "vars.json"
    variables_file.write_text(json.dumps(variables))
    program = host.tool("ansible-playbook")
    assert program  # missing.py has checked this
    command = [program, "-i", str(inventory), "-e", f"@{variables_file}", "-v"]
    command += [str(ANSIBLE / f"playbooks/{name}.yml") for name in playbooks]
    with log.open("a") as output:
        try:
            done = subprocess.run(
                command, env=_environment(scratch, inventory == LAB), stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.PIPE, timeout=TIMEOUT_S + more_s, text=True, errors="replace", check=False,
                preexec_fn=syscalls.die_with_parent,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise UnfinishedError(
                f"ansible-playbook has not ended after {TIMEOUT_S + more_s:.0f} s: see {log}"
            ) from None
        output.write(done.stderr)
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        failures = [line for line in lines if line.startswith(("FAILED", "UNREACHABLE"))]
        kind = UnfinishedError if any(line.startswith("UNREACHABLE") for line in failures) else RunError
        raise kind(*(failures or lines[-1:] or [f"ansible-playbook ended with {done.returncode}: see {log}"]))


def _environment(scratch: Path, in_the_lab: bool) -> dict[str, str]:
    """Ansible's environment. It ignores the user's configuration. Ansible's temporary files on this machine, and on the
    lab's hosts, go to `scratch`.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    return kept | {
        "ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg"),
        "ANSIBLE_HOME": str(scratch / "ansible"),
        "ANSIBLE_LOCAL_TEMP": str(scratch / "ansible/tmp"),
        **({"ANSIBLE_REMOTE_TEMP": str(scratch / "ansible/remote-tmp")} if in_the_lab else {}),
        "ANSIBLE_NOCOLOR": "1",
        "LC_ALL": "C.UTF-8",
        "TMPDIR": str(scratch),
    }
