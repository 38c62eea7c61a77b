# SPDX-License-Identifier: MIT
"""Machines that run a sweep's jobs in place of this machine: the group `labs` of an inventory, reached over ssh, each
with a checkout of the same commit (make deploy INVENTORY=...). Labs are independent: every lab can run every job.

GNU parallel passes the arguments of ssh to a shell, so only arguments without special characters are accepted.
"""

from __future__ import annotations

import hashlib
import platform
import shlex
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from experiments.machine import ssh
from experiments.setup.deploy import read_inventory
from lib import sources
from lib.errors import RunError
from lib.terminal import complain

GROUP = "labs"
CHECKOUT = "/opt/bufferscope-lab"  # unless the inventory has lab_checkout
ANSWER_S = 15


class RemoteLab(NamedTuple):
    """A machine: its name in the inventory, the ssh command to reach it, and the directory of its checkout."""

    name: str
    ssh: tuple[str, ...]
    checkout: str
    processors: int = 1  # the real number is known only after the machine has answered

    @property
    def login(self) -> str:
        """The ssh command, for GNU parallel."""
        return " ".join(self.ssh)


def load(inventory: Path) -> list[RemoteLab]:
    """The labs of an inventory. Raises RunError if there are none, or if a lab's variable cannot be used."""
    if not inventory.exists():
        raise RunError(f"INVENTORY={inventory} does not exist: name an inventory with machines in the group {GROUP}")
    content = read_inventory(inventory)
    names = _hosts(content, GROUP)
    if not names:
        raise RunError(f"{inventory} has no machine in the group {GROUP}; ansible/inventories/labs.example shows one")
    variables = content.get("_meta", {}).get("hostvars", {})
    labs = [_lab(name, variables.get(name, {}), inventory) for name in names]
    if len({lab.checkout for lab in labs}) > 1:
        raise RunError(f"{inventory}: lab_checkout differs between labs; allowed: one path for all of them")
    return labs


def ready(labs: list[RemoteLab], virtual: bool) -> list[RemoteLab]:
    """The labs that answer and have this commit, built. Reports why the others are left out. Raises RunError if no lab
    remains.
    """
    checkout = sources.commit() or {}
    if checkout.get("dirty"):
        complain("note: the labs run the last commit, without your uncommitted changes")
    asked = [(lab, _ask(lab)) for lab in labs]
    usable, problems = [], []
    for lab, process in asked:
        try:
            usable.append(lab._replace(processors=_processors(process, str(checkout.get("commit")), virtual)))
        except RunError as problem:
            problems.append(f"{lab.name}: {problem}")
    if not usable:
        raise RunError(*problems)
    for line in problems:
        complain(f"note: without {line}")
    return usable


def directory(checkout: str, sweep: Path) -> str:
    """The directory on a lab for the jobs of this machine's `sweep`."""
    code = hashlib.sha256(f"{platform.node()} {sweep}".encode()).hexdigest()[:12]
    return f"{checkout}/results/away-{code}"


def _hosts(content: dict[str, Any], group: str) -> list[str]:
    """The hosts of a group and of its children."""
    entry = content.get(group, {})
    names = list(entry.get("hosts", []))
    for child in entry.get("children", []):
        names += _hosts(content, child)
    return list(dict.fromkeys(names))


def _lab(name: str, variables: dict[str, Any], inventory: Path) -> RemoteLab:
    checkout = ssh.check(name, str(variables.get("lab_checkout", CHECKOUT)), inventory)
    return RemoteLab(name, ssh.command(name, variables, inventory), checkout)


def _ask(lab: RemoteLab) -> subprocess.Popen[str]:
    """Starts the query of a lab's commit and build; all labs are queried at once."""
    there = shlex.quote(lab.checkout)
    question = (
        f"cd {there} && git -c safe.directory={there} rev-parse HEAD && nproc && ls build/deployed build/virtual/linux"
    )
    return subprocess.Popen(
        [*lab.ssh, question], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _processors(process: subprocess.Popen[str], commit: str, virtual: bool) -> int:
    """Number of processors of a lab, from its answer. Raises RunError if the lab cannot be used."""
    try:
        said, complaint = process.communicate(timeout=ANSWER_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise RunError(f"it does not answer within {ANSWER_S} s") from None
    words = said.split()
    if len(words) < 2 or not words[1].isdecimal():
        raise RunError(f"it cannot be used: {' '.join(complaint.split())[-200:] or 'it says nothing'}")
    if words[0] != commit:
        raise RunError(f"it has the commit {words[0][:12]}, this machine {commit[:12]}: make deploy INVENTORY=...")
    missing = {"build/deployed", *(["build/virtual/linux"] if virtual else [])} - set(words)
    if missing:
        raise RunError(f"it has no {' and no '.join(sorted(missing))}: make deploy INVENTORY=...")
    return int(words[1])
