# SPDX-License-Identifier: MIT
"""`make deploy TARGET=...`: Ansible installs the packages and programs that a target's machines need.

The soft switch and BMv2 run in the lab of this machine, or on a machine of an inventory. A Tofino is always a machine
of an inventory. make itself deploys the soft switch in this machine's lab. Ansible's output is shown.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from controlplane.targets import RUN_TARGETS, TARGETS
from experiments.machine import host, p4_program
from experiments.setup.missing import unbuilt
from experiments.setup.playbooks import ANSIBLE, LAB
from experiments.spec.keys import KEYS, Spec
from lib import inherited, regular, user_cache
from lib.errors import BadValue, RunError, SpecError
from lib.keys import Keys, field, flag, take
from lib.places import IS_INSTALLED
from lib.terminal import say

TESTBED = ANSIBLE / "inventories/testbed"
STAMPS = host.BUILD
OTHERS = ("spec", "results", "yes", "wait")  # keys of make experiment that are not keys of a spec
LABS = "labs"  # the group of machines that run sweeps


class Asked(Keys):
    target: str = field(
        f"what runs the P4 program: {', '.join(RUN_TARGETS)}", default=RUN_TARGETS[0], values=RUN_TARGETS
    )
    inventory: Path | None = field(
        "machines of the target, or labs, machines that run sweeps (default for tofino: ansible/inventories/testbed)"
    )
    check_: bool = flag("1: say what would change on the machines, and change nothing")


def deploy(words: dict[str, Any], errors: list[BadValue]) -> int:
    """Returns the exit status. Accepts the words of `make experiment`, which deploys first. Raises SpecError,
    RunError.
    """
    asked = take(Asked, words, errors)
    errors += [
        BadValue(key.upper(), None, Spec.unknown_key(key)) for key in words if key not in KEYS and key not in OTHERS
    ]
    if errors:
        raise SpecError(errors)
    if stale := p4_program.out_of_date():
        raise RunError(*stale)
    target, given = asked.target, asked.inventory
    dry = ["--check", "--diff"] if asked.check_ else []
    if target == RUN_TARGETS[0] and not given:
        ensure()
        return 0
    if given and "target" not in asked.model_fields_set and given.exists() and has_group(given.absolute(), LABS):
        return deploy_labs(given.absolute(), dry)
    inventory = inventory_of(target, str(given or ""))
    stamp = STAMPS / f"deployed-{target}"
    is_new = _is_newer(stamp, STAMPS / "deployed") and stamp.read_text() == _programs(target)
    if inventory == LAB and is_new and not dry:
        return 0
    say(f"{'checking' if dry else 'deploying'} TARGET={target} on the machines of {inventory}")
    done = subprocess.run(
        [_tool("ansible-playbook"), "-i", str(inventory), *dry, "-e", json.dumps({"target": target}),
         str(ANSIBLE / "playbooks/deploy.yml")],
        env=environment(), stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RunError(f"TARGET={target} is not deployed: see the messages above")
    if inventory == LAB and not dry:
        stamp.write_text(_programs(target))
    return 0


def ensure() -> None:
    """Installs packages (as root) and builds our programs with the playbook of `make`, unless that is done. Raises
    RunError.
    """
    if (STAMPS / "deployed").exists() and not unbuilt():
        return
    if IS_INSTALLED:
        user_cache.directory("build")  # says what a user without a home must do
    if said := inherited.path_problems(host.BUILD):
        raise RunError(*said)
    say(f"preparing this machine: packages, and the programs in {host.BUILD} (a minute or more the first time)")
    begin_s = time.monotonic()
    try:
        host.BUILD.mkdir(parents=True, exist_ok=True)
        command = [str(host.CHECKOUT / "ansible/locked.sh"), _tool("ansible-playbook"), "-i", str(LAB)]
        done = subprocess.run(
            [*command, str(ANSIBLE / "playbooks/deploy.yml")],
            env=environment(), stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RunError(f"the programs in {host.BUILD} are not built: see the messages above")
        (STAMPS / "deployed").touch()
    except OSError as error:
        raise RunError(f"building the programs in {host.BUILD}: {error}") from None
    say(f"built the programs in {time.monotonic() - begin_s:.0f} s")


def deploy_labs(inventory: Path, dry: Sequence[str] = ()) -> int:
    """Copies this commit to each machine of the group `labs`, and builds it there. `dry` has Ansible's options for
    a dry run. Returns the exit status. Raises RunError.
    """
    if IS_INSTALLED:
        raise RunError("labs get a commit with its history, which an installed copy has not: use a checkout")
    doing = "checking" if dry else "deploying"
    say(f"{doing} the labs of {inventory}: packages, this commit, programs, the virtual-time kernel")
    done = subprocess.run(
        [_tool("ansible-playbook"), "-i", str(inventory), *dry, str(ANSIBLE / "playbooks/labs.yml")],
        env=environment(), stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RunError("the labs are not deployed: see the messages above")
    return 0


def inventory_of(target: str, given: str) -> Path:
    """The inventory whose machines a target runs on. Raises RunError if there is no inventory, or if its group `target`
    has no machine.
    """
    example = f"{TESTBED.name}-{'tofino' if target == 'tofino' else 'linux'}.example"
    inventory = Path(given).absolute() if given else LAB if has_group(LAB, target) else TESTBED
    if not inventory.exists():
        how = "" if given else f"copy {example} to {TESTBED.name} beside it and fill in your machines, or "
        raise RunError(
            f"TARGET={target} needs an inventory of its machines; {inventory} does not exist: {how}"
            "name one with INVENTORY="
        )
    if not has_group(inventory, target):
        raise RunError(f"{inventory} has no machine in the group {target}: add it, as inventories/{example} shows")
    return inventory


def read_inventory(inventory: Path) -> dict[str, Any]:
    """Groups and variables, as ansible-inventory --list prints them. Raises RunError with its message."""
    try:
        if not inventory.is_dir():
            regular.check(inventory)  # Ansible would wait for the writer of a FIFO
    except OSError as error:
        raise RunError(f"{inventory} is not an inventory: {error.strerror}") from None
    command = [_tool("ansible-inventory"), "-i", str(inventory), "--list"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunError(f"{inventory} is not an inventory: {' '.join(done.stderr.split())[:300]}")
    content = json.loads(done.stdout)
    return content if isinstance(content, dict) else {}


def environment() -> dict[str, str]:
    """The environment of Ansible: without the user's configuration of Ansible and the variables of a calling make."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "MAKE", "MFLAGS"))}
    kept.pop("CC", None)  # CC is our congestion control; a build under Ansible would take CC for a compiler
    return kept | {"ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg")}


def has_group(inventory: Path, target: str) -> bool:
    group = read_inventory(inventory).get(target)
    return isinstance(group, dict) and bool(group.get("hosts"))


def _programs(target: str) -> str:
    """Identifies the files of a target's programs: after any change of a file the target is deployed again."""
    lines = []
    for name in TARGETS[target].programs:
        path = host.tool(name)
        file = Path(path).stat() if path else None
        lines.append(f"{name} {path} {file.st_size} {file.st_mtime_ns}" if file else f"{name} is missing")
    return "\n".join(lines)


def _is_newer(file: Path, other: Path) -> bool:
    return file.exists() and (not other.exists() or file.stat().st_mtime >= other.stat().st_mtime)


def _tool(name: str) -> str:
    path = host.tool(name)
    if path is None:
        raise RunError(f"{name} is missing; install it: pip install -r requirements.txt")
    return path
