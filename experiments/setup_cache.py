# SPDX-License-Identifier: MIT
"""What the roles would run on the lab's hosts, remembered: asking Ansible takes 3 s of a processor, as long as all else
of a short run outside of its machine, and repetitions of one experiment get the same answer.

The answer follows from the variables and from what is in ansible/, for nothing there asks for facts of this machine.
What no role may depend on, the roles are not told, so that it cannot be a reason to ask again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments import host, playbooks
from experiments.steps import SetupStep

DIRECTORY = host.BUILD / "plans"
OF_NO_HOST = ("name", "seed", "reps", "buffer_given", "duration_ns", "warmup_ns", "start_spread_ns", "spec_version")
MOST_KEPT = 2000  # some 3 kB each; the oldest go


def plan(names: tuple[str, ...], variables: dict[str, Any], log: Path, scratch: Path) -> list[SetupStep]:
    """As playbooks.plan, which is asked if the answer is not known. Raises RunError."""
    spec = {key: value for key, value in variables["spec"].items() if key not in OF_NO_HOST}
    told = variables | {"spec": spec}
    own = DIRECTORY / f"{_digest(names, told)}.json"
    try:
        return [SetupStep(**step) for step in json.loads(own.read_text())]
    except (OSError, ValueError, TypeError):  # not known, or the file is no answer
        steps = playbooks.plan(names, told, log, scratch)
    _remember(own, steps)
    return steps


def _digest(names: tuple[str, ...], variables: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps([names, variables], sort_keys=True).encode())
    for path in _files(playbooks.ANSIBLE):
        digest.update(f"\0{path.relative_to(playbooks.ANSIBLE)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _files(directory: Path) -> Iterator[Path]:
    """What decides how a lab's hosts are set up."""
    for path in sorted(directory.rglob("*")):
        parts = path.relative_to(directory).parts
        other_inventory = parts[0] == "inventories" and not path.is_relative_to(playbooks.LAB)
        if path.is_file() and not other_inventory and parts[0] != "tests" and "__pycache__" not in parts:
            yield path


def _remember(own: Path, steps: list[SetupStep]) -> None:
    """Best effort: whoever may not write in build/ asks each time."""
    temporary = own.with_name(f".{own.name}.{os.getpid()}")
    try:
        own.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps([asdict(step) for step in steps]))
        temporary.replace(own)
        kept = sorted(own.parent.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for old in kept[:-MOST_KEPT]:
            old.unlink()
    except OSError:
        return
