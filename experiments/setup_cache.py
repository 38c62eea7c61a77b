# SPDX-License-Identifier: MIT
"""Caches the steps of the hosts' set-up. Asking Ansible takes 3 s of processor time, as long as everything else that a
short run does outside of its machine. All repetitions of an experiment have the same steps.

The steps follow from the variables and from the files in ansible/, because no role asks for facts of this machine.
Variables that no role uses are left out of the cache key, so changing them does not invalidate cached steps.
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
MOST_KEPT = 2000  # some 3 kB each; the oldest are removed


def plan(names: tuple[str, ...], variables: dict[str, Any], log: Path, scratch: Path) -> list[SetupStep]:
    """As playbooks.plan, which is called if the steps are not cached. Raises RunError."""
    spec = {key: value for key, value in variables["spec"].items() if key not in OF_NO_HOST}
    used = variables | {"spec": spec}
    file = DIRECTORY / f"{_digest(names, used)}.json"
    try:
        return [SetupStep(**step) for step in json.loads(file.read_text())]
    except (OSError, ValueError, TypeError):  # not cached, or the file is damaged
        steps = playbooks.plan(names, used, log, scratch)
    _remember(file, steps)
    return steps


def _digest(names: tuple[str, ...], variables: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps([names, variables], sort_keys=True).encode())
    for path in _files(playbooks.ANSIBLE):
        digest.update(f"\0{path.relative_to(playbooks.ANSIBLE)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _files(directory: Path) -> Iterator[Path]:
    """The files that decide how a lab's hosts are set up."""
    for path in sorted(directory.rglob("*")):
        parts = path.relative_to(directory).parts
        other_inventory = parts[0] == "inventories" and not path.is_relative_to(playbooks.LAB)
        if path.is_file() and not other_inventory and parts[0] != "tests" and "__pycache__" not in parts:
            yield path


def _remember(file: Path, steps: list[SetupStep]) -> None:
    """Best effort: a user who may not write to build/ has no cache."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps([asdict(step) for step in steps]))
        temporary.replace(file)
        kept = sorted(file.parent.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for old in kept[:-MOST_KEPT]:
            old.unlink()
    except OSError:
        return
