# SPDX-License-Identifier: MIT
"""The steps of the hosts' set-up: programs that the Ansible roles would run. playbooks.plan lists them; they run here.

This is for a lab that Ansible cannot reach. The roles stay the only definition of a host's set-up.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from experiments import topology
from lib import syscalls
from lib.errors import RunError

TIMEOUT_S = 60
MOST_FILES = 1024  # open files of this process, which a step does not inherit


@dataclass(frozen=True)
class SetupStep:
    """One task of a role for one host."""

    play: str
    host: str
    task: str
    argv: list[str]
    chdir: str


def in_order(steps: list[SetupStep]) -> list[SetupStep]:
    """Sorted by play, then by host. Ansible works on the hosts of a play at the same time and records their tasks in a
    random order; hosts of one play do not wait for each other.
    """
    plays = list(dict.fromkeys(step.play for step in steps))
    hosts = [topology.SWITCH, *(host.name for host in topology.HOSTS)]
    return sorted(steps, key=lambda step: (plays.index(step.play), hosts.index(step.host)))


def run_steps(steps: list[SetupStep], log: Path, before_each: Callable[[], None]) -> None:
    """For each step: calls `before_each`, runs it in its host's namespace. Raises RunError at the first failure."""
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

    Our own Python programs run in a copy of this process: starting an interpreter and importing modules takes half a
    second in a virtual machine.
    """
    if step.argv[:2] != [sys.executable, "-m"]:
        return subprocess.run(
            topology.inside(step.host, *step.argv), cwd=step.chdir, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as complained:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            _become(step, said.fileno(), complained.fileno())
        status = _wait(pid, step)
        said.seek(0)
        complained.seek(0)
        texts = [file.read().decode(errors="replace") for file in (said, complained)]
    return subprocess.CompletedProcess(step.argv, os.waitstatus_to_exitcode(status), *texts)


def _become(step: SetupStep, said: int, complained: int) -> NoReturn:
    """Does what a new interpreter would do with the step's arguments. Never returns into the code that forked."""
    status = 1
    try:
        with topology.netns(step.host).open("rb") as namespace:
            syscalls.enter_network_namespace(namespace.fileno())
        null = os.open(os.devnull, os.O_RDONLY)
        for fd, target in ((null, 0), (said, 1), (complained, 2)):
            os.dup2(fd, target)
        os.closerange(3, MOST_FILES)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        os.chdir(step.chdir)
        sys.path.insert(0, step.chdir)
        sys.argv = [step.argv[2], *step.argv[3:]]
        runpy.run_module(step.argv[2], run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _wait(pid: int, step: SetupStep) -> int:
    """The status of a child, as waitpid returns it. Raises subprocess.TimeoutExpired."""
    ending = os.pidfd_open(pid)
    try:
        if not select.select([ending], [], [], TIMEOUT_S)[0]:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise subprocess.TimeoutExpired(step.argv, TIMEOUT_S)
        return os.waitpid(pid, 0)[1]
    finally:
        os.close(ending)


def _is_answer(text: str) -> bool:
    """Whether the text is a result for ansible/plugins/action/program.py."""
    try:
        return isinstance(json.loads(text)["changed"], bool)
    except (ValueError, KeyError, TypeError):
        return False
