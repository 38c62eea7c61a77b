# SPDX-License-Identifier: MIT
"""Caches the steps of the hosts' set-up. Asking Ansible takes 3 s of processor time, as much as everything else that a
short run does outside of its virtual machine. All repetitions of an experiment have the same steps, unless their finite
flows need different numbers of server ports.

The steps depend only on the variables and on the files in ansible/, because no role asks for facts of this machine. Two
rules let runs share cached steps. First, Ansible gets only the fields of the spec that roles read (run_plan.py); a test
compares the list with the roles. Second, Ansible gets placeholders for values that roles only pass on to a program
(PASSED_ON); the values are filled in afterwards. So runs that differ only in rate, buffer or length share one cache
entry, unless they need different limits of socket buffers or unsent bytes, or netem makes the delay.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from experiments.machine import host
from experiments.setup import playbooks
from experiments.setup.steps import SetupStep
from lib import files

DIRECTORY = host.BUILD / "plans"
# Variables that are an argument, or a list of arguments, of a program.
PASSED_ON = ("tune_window_bytes", "switch_frame_bytes", "switch_options", "collector_options", "tracer_options")
FIRST_MARK = 7_700_000_000_000  # placeholders are numbers, because some roles check for a number
MOST_KEPT = 2000  # cached plans of about 3 kB each; the oldest plans are removed


def plan(names: tuple[str, ...], variables: dict[str, Any], log: Path, scratch: Path) -> list[SetupStep]:
    """The steps of playbooks.plan, from the cache if possible. Raises RunError."""
    marks = {name: str(FIRST_MARK + number) for number, name in enumerate(PASSED_ON) if name in variables}
    asked = variables | {
        name: [mark] if isinstance(variables[name], list) else int(mark) for name, mark in marks.items()
    }
    values = {mark: variables[name] for name, mark in marks.items()}
    return [replace(step, argv=_unmarked(step.argv, values)) for step in _plan(names, asked, log, scratch)]


def _plan(names: tuple[str, ...], variables: dict[str, Any], log: Path, scratch: Path) -> list[SetupStep]:
    file = DIRECTORY / f"{_digest(names, variables)}.json"
    try:
        return [SetupStep(**step) for step in json.loads(file.read_text())]
    except (OSError, ValueError, TypeError):  # not cached, or the file is damaged
        steps = playbooks.plan(names, variables, log, scratch)
    _remember(file, steps)
    return steps


def _unmarked(argv: list[str], values: dict[str, Any]) -> list[str]:
    """The arguments, with each placeholder replaced by its value or values."""
    words: list[str] = []
    for word in argv:
        value = values.get(word, word)
        words += map(str, value) if isinstance(value, list) else [str(value)]
    return words


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
    try:
        files.make(file.parent)
        files.write_text(file, json.dumps([asdict(step) for step in steps]))
        kept = sorted(file.parent.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for old in kept[:-MOST_KEPT]:
            old.unlink()
    except OSError:
        return
