# SPDX-License-Identifier: MIT
"""What the Ansible roles would run on the lab's hosts, as a list of programs: made by playbooks.plan, run here.

For a lab that Ansible cannot reach, or where starting Ansible costs more than all it does: the roles stay the only
definition of a host's set-up.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from experiments import topology
from experiments.errors import RunError

TIMEOUT_S = 60


@dataclass(frozen=True)
class Step:
    """One task of a role for one host."""

    play: str
    host: str
    task: str
    argv: list[str]
    chdir: str


def in_order(steps: list[Step]) -> list[Step]:
    """Play after play, in each host after host. No host of a play waits for another one of it.

    Ansible works on the hosts of a play at the same time, so that their tasks are recorded in an order of chance.
    """
    plays = list(dict.fromkeys(step.play for step in steps))
    hosts = [topology.SWITCH, *(host.name for host in topology.HOSTS)]
    return sorted(steps, key=lambda step: (plays.index(step.play), hosts.index(step.host)))


def run(steps: list[Step], log: Path, before_each: Callable[[], None]) -> None:
    """Runs each step in its host's namespace, after `before_each`. At the first failure: RunError, in its own words."""
    with log.open("a") as output:
        for step in steps:
            before_each()
            try:
                done = subprocess.run(
                    topology.inside(step.host, *step.argv), cwd=step.chdir, stdin=subprocess.DEVNULL,
                    capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                raise RunError(f"{step.host}: {step.task}: has not ended after {TIMEOUT_S} s: see {log}") from None
            output.write(f"{step.host}: {step.task}\n{done.stdout}{done.stderr}")
            if done.returncode != 0 or not _is_answer(done.stdout):
                said = " ".join(done.stderr.split()) or f"ended with {done.returncode} and gave no reason"
                raise RunError(f"FAILED {step.host}: {step.task}: {said}")


def _is_answer(text: str) -> bool:
    """Whether a program printed what ansible/plugins/action/program.py takes as its result."""
    try:
        return isinstance(json.loads(text)["changed"], bool)
    except (ValueError, KeyError, TypeError):
        return False
