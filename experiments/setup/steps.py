# SPDX-License-Identifier: MIT
"""The steps of the hosts' set-up: the programs that the Ansible roles would run. playbooks.plan lists the steps, and
this module runs them in a lab that Ansible cannot reach. The roles stay the only definition of a host's set-up.
"""

from __future__ import annotations

import contextlib
import io
import json
import runpy
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from experiments.spec import topology
from lib import syscalls
from lib.errors import RunError

TIMEOUT_S = 60


@dataclass(frozen=True)
class SetupStep:
    """One task of a role for one host."""

    play: str
    host: str
    task: str
    argv: list[str]
    chdir: str


def in_order(steps: list[SetupStep]) -> list[SetupStep]:
    """Sorted by play, then by host, switches first. Ansible works on the hosts of a play at the same time and records
    their tasks in a random order; hosts of one play do not wait for each other.
    """
    plays = list(dict.fromkeys(step.play for step in steps))
    hosts = [host.name for host in topology.HOSTS]

    def place(step: SetupStep) -> tuple[int, int, str]:
        return plays.index(step.play), hosts.index(step.host) if step.host in hosts else -1, step.host

    return sorted(steps, key=place)


def run_steps(steps: list[SetupStep], log: Path, before_each: Callable[[], None]) -> None:
    """Calls `before_each` before each step, and runs the step in its host's namespace. Raises RunError at the first
    failure.
    """
    with log.open("a") as output:
        for step in steps:
            before_each()
            try:
                done = _run(step)
            except subprocess.TimeoutExpired:
                raise RunError(f"{step.host}: {step.task}: has not ended after {TIMEOUT_S} s: see {log}") from None
            output.write(f"{step.host}: {step.task}\n{done.stdout}{done.stderr}")
            if done.returncode != 0 or not _is_answer(done.stdout):
                said = " ".join(done.stderr.split()) or f"ended with {done.returncode} and gave no reason"
                raise RunError(f"FAILED {step.host}: {step.task}: {said}")


def _run(step: SetupStep) -> subprocess.CompletedProcess[str]:
    """Runs a step in its host's namespace. Raises subprocess.TimeoutExpired.

    Our own Python programs run inside this process. In a virtual machine, a fork of this process would cost 2000 page
    faults, and a new interpreter twice as many.
    """
    if step.argv[:2] != [sys.executable, "-m"]:
        return subprocess.run(
            topology.inside(step.host, *step.argv), cwd=step.chdir, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
    said, complained = io.StringIO(), io.StringIO()
    with (
        syscalls.in_network_namespace(topology.netns(step.host)),
        contextlib.chdir(step.chdir),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(complained),
    ):
        status = _run_module(step)
    return subprocess.CompletedProcess(step.argv, status, said.getvalue(), complained.getvalue())


def _run_module(step: SetupStep) -> int:
    """Does what a new interpreter would do with the step's arguments; returns the exit status."""
    argv, path = sys.argv, sys.path
    sys.argv, sys.path = step.argv[2:], [step.chdir, *path]
    try:
        runpy.run_module(step.argv[2], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception:
        traceback.print_exc()
        return 1
    finally:
        sys.argv, sys.path = argv, path
    return 0


def _is_answer(text: str) -> bool:
    """Whether the text is a result for ansible/plugins/action/program.py."""
    try:
        return isinstance(json.loads(text)["changed"], bool)
    except (ValueError, KeyError, TypeError):
        return False
