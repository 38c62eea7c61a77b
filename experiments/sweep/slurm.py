# SPDX-License-Identifier: MIT
"""Runs a sweep's jobs as array jobs of Slurm, one task per job, on nodes that share the sweep's directory and the
checkout.

The scheduler owns the tasks: they go on if this process is stopped or killed. This process cancels them only if no job
can go on, as on a full disk. The next call follows the tasks that are in the queue and submits the other jobs. The
comment of an array job names the file of `.slurm` that lists its jobs. No other record of a submission exists, so none
can be lost. After pre-emption or the loss of a node Slurm repeats the task; after a time limit the sweep's next round
submits the job again.

No value of a spec reaches a shell: the script is a constant, job names have only lower-case letters, digits and '-',
and the rest is in the environment.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from experiments.machine import host
from experiments.sweep.plan import JOB_ID
from lib import places
from lib.errors import Interrupted, RunError
from lib.terminal import complain, counted, say

SCRIPT = """#!/bin/sh
name=$(sed -n "$((SLURM_ARRAY_TASK_ID + 1))p" "$BUFFERSCOPE_JOBS")
exec "$BUFFERSCOPE_PYTHON" -m bufferscope job SWEEP="$BUFFERSCOPE_SWEEP" NAME="$name"
"""
PROGRAMS = ("sbatch", "squeue", "scancel", "scontrol", "sinfo")
HOME = ".slurm"  # in the sweep's directory: lists of jobs, and the output of tasks before their own log began
ASK_EVERY_S = 5.0  # interval of queries to the scheduler
PATIENCE_S = 600.0  # longest time without an answer of the scheduler
ANSWER_S = 60.0
TIME_FACTOR, TIME_MORE_S = 3.0, 600.0  # the time limit of each task is factor x the estimate of the largest job + more
MOST_TASKS = 1000  # tasks per array; fewer if the scheduler allows fewer (MaxArraySize)
COMMENT = re.compile(r"[0-9a-f]{16}")
OF_USER = re.compile(r"(SQUEUE|SCANCEL|SINFO|SCONTROL)_")
CLUSTERS = ("SBATCH_CLUSTERS", "SLURM_CLUSTERS")
ORDINARY = frozenset(("None", "Priority", "Resources", "JobArrayTaskLimit", "Dependency", "BeginTime", "Cleaning"))


class Size(NamedTuple):
    """The needs of the largest job."""

    memory_mib: int
    seconds: float


class Queued(NamedTuple):
    """A job that is in the scheduler's queue."""

    array: str  # number of the array job
    runs: bool  # False: the job waits
    reason: str  # why the job waits, in Slurm's words


def check() -> None:
    """Raises RunError if a command of Slurm is missing, the environment names another cluster, or the scheduler does
    not answer.
    """
    lacking = [name for name in PROGRAMS if shutil.which(name) is None]
    if lacking:
        raise RunError(f"ENGINE=slurm needs Slurm's commands; missing: {', '.join(lacking)}: run this on a login node")
    elsewhere = [name for name in CLUSTERS if name in os.environ]
    if elsewhere:
        raise RunError(f"ENGINE=slurm: {elsewhere[0]} would send jobs to another cluster; unset it, and run this there")
    _most_tasks()


def processors() -> int:
    """The number of processors of the whole cluster, an upper bound for jobs at once."""
    counts = [line.split("/") for line in _ask("sinfo", "--noheader", "--format=%C").splitlines()]
    return max(1, sum(int(count[3]) for count in counts if len(count) == 4 and count[3].isdecimal()))


def queued(directory: Path) -> dict[str, Queued]:
    """The jobs of the sweep in `directory` that are in the queue. Raises RunError if the scheduler does not answer, or
    if the job of one of the sweep's tasks is unknown.
    """
    by_job: dict[str, Queued] = {}
    lists: dict[str, list[str]] = {}
    said = _ask("squeue", "--me", "--array", "--noheader", f"--name={_name(directory)}", "--format=%k|%F|%K|%T|%r")
    for line in said.splitlines():
        comment, array, index, state, reason = [*line.split("|"), *5 * [""]][:5]
        try:
            if not COMMENT.fullmatch(comment):
                raise ValueError(f"its comment is {comment!a}, not ours")
            if comment not in lists:
                lists[comment] = (directory / HOME / f"jobs-{comment}").read_text().splitlines()
            by_job[lists[comment][int(index)]] = Queued(array, state == "RUNNING", reason)
        except (OSError, ValueError, IndexError) as error:
            raise RunError(
                f"Slurm: the jobs that array job {array} runs for {directory} are not known ({error}); "
                f"scancel {array} ends the array job"
            ) from None
    return by_job


def state(directory: Path) -> str:
    """One line: how many of the sweep's jobs run and wait in the queue. Raises RunError."""
    tasks = queued(directory).values()
    running = sum(task.runs for task in tasks)
    arrays = ", ".join(sorted({task.array for task in tasks}))
    return f"Slurm: {running} jobs run, {len(tasks) - running} wait" + (f" (array job {arrays})" if arrays else "")


def run(directory: Path, names: list[str], at_once: int, watch: Callable[[], None], size: Size) -> None:
    """Runs the jobs `names` of the sweep in `directory`, at most `at_once` at the same time (0: no limit), and calls
    `watch` every ASK_EVERY_S. A RunError of `watch` means that no job can go on, so the tasks are cancelled. After any
    other exception the tasks go on. Raises RunError.
    """
    bad = [name for name in names if not JOB_ID.fullmatch(name)]
    if bad:
        raise RunError(f"{bad[0]!a} is not the name of a job")
    (directory / HOME).mkdir(mode=0o700, exist_ok=True)
    mine = queued(directory)
    new = [name for name in names if name not in mine]
    if len(new) < len(names):
        say(f"{len(names) - len(new)} jobs are in Slurm's queue already")
    _submit_all(directory, new, at_once, size)
    try:
        _follow(directory, set(names), watch)
    except Interrupted:
        with contextlib.suppress(RunError):
            arrays = " ".join(sorted({task.array for task in queued(directory).values()}))
            complain(f"note: the jobs go on under Slurm; the same command follows them, scancel {arrays} ends them")
        raise


def _follow(directory: Path, names: set[str], watch: Callable[[], None]) -> None:
    """Waits until none of the jobs is in the queue."""
    answered_s = time.monotonic()
    announced: set[str] = set()
    while True:
        try:
            watch()
        except RunError:
            with contextlib.suppress(RunError):
                _ask("scancel", "--me", f"--name={_name(directory)}")
            raise
        time.sleep(ASK_EVERY_S)
        try:
            tasks = {name: task for name, task in queued(directory).items() if name in names}
        except RunError:
            if time.monotonic() - answered_s > PATIENCE_S:
                raise
            continue
        if not tasks:
            return
        answered_s = time.monotonic()
        reasons = {task.reason for task in tasks.values() if not task.runs} - ORDINARY - announced
        for reason in sorted(reasons):
            complain(f"note: jobs wait in Slurm's queue: {reason} (squeue --me has more)")
        announced |= reasons


def _submit_all(directory: Path, names: list[str], at_once: int, size: Size) -> None:
    """Submits array jobs; they run one after the other if only `at_once` jobs may run. A refusal is not an error after
    the first array job: the next round submits the other jobs.
    """
    most, before = _most_tasks(), ""
    for first in range(0, len(names), most):
        part = names[first : first + most]
        try:
            array = _submit(directory, part, at_once, size, before if at_once else "")
        except RunError as refused:
            if not before:
                raise
            complain(f"note: {len(names) - first} jobs are submitted later: {refused}")
            return
        say(f"submitted {counted(len(part), 'job')} to Slurm: array job {array}")
        before = array


def _submit(directory: Path, names: list[str], at_once: int, size: Size, after: str) -> str:
    """Submits an array job; returns its number. The environment's SBATCH_* variables choose partition, account and
    limits, as for any sbatch.
    """
    comment = os.urandom(8).hex()
    jobs = directory / HOME / f"jobs-{comment}"
    jobs.write_text("".join(f"{name}\n" for name in names))
    values = {
        "BUFFERSCOPE_PYTHON": sys.executable, "BUFFERSCOPE_SWEEP": str(directory), "BUFFERSCOPE_JOBS": str(jobs),
        "PYTHONPATH": str(host.CHECKOUT), "PYTHONUNBUFFERED": "1", **places.for_programs(),
    }  # fmt: skip
    limit = f"%{at_once}" if at_once else ""
    command = [
        "sbatch", "--parsable", f"--job-name={_name(directory)}", f"--comment={comment}",
        f"--array=0-{len(names) - 1}{limit}", "--requeue", "--ntasks=1", "--cpus-per-task=1",
        f"--chdir={host.CHECKOUT}", f"--output={directory / HOME}/%A_%a.out", "--open-mode=append",
        f"--export=PATH,HOME,{','.join(values)}",
    ]  # fmt: skip
    if after:
        command.append(f"--dependency=afterany:{after}")
    if "SBATCH_TIMELIMIT" not in os.environ:
        command.append(f"--time={math.ceil((TIME_FACTOR * size.seconds + TIME_MORE_S) / 60)}")
    if not {"SBATCH_MEM_PER_NODE", "SBATCH_MEM_PER_CPU"} & os.environ.keys():
        command.append(f"--mem={size.memory_mib}")
    return _said(command, SCRIPT, os.environ | values).split(";")[0].strip()


def _most_tasks() -> int:
    match = re.search(r"^MaxArraySize\s*=\s*(\d+)", _ask("scontrol", "show", "config"), re.MULTILINE)
    return max(1, min(MOST_TASKS, int(match[1]) - 1 if match else MOST_TASKS))


def _name(directory: Path) -> str:
    """The name of the sweep's array jobs, unique to the sweep."""
    return f"bufferscope-{hashlib.sha256(str(directory.resolve()).encode()).hexdigest()[:12]}"


def _ask(*command: str) -> str:
    """Runs a command of Slurm. The user's settings of the command are left out, because they could hide tasks."""
    return _said(list(command), "", {name: value for name, value in os.environ.items() if not OF_USER.match(name)})


def _said(command: list[str], text: str, environment: dict[str, str]) -> str:
    """The output of a command of Slurm. Raises RunError with its message."""
    try:
        done = subprocess.run(
            command, input=text, env=environment, capture_output=True, text=True, timeout=ANSWER_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise RunError(f"Slurm: {command[0]} does not answer within {ANSWER_S:.0f} s") from None
    except OSError as error:
        raise RunError(f"Slurm: {command[0]}: {error.strerror}") from None
    if done.returncode:
        raise RunError(f"Slurm: {command[0]}: {' '.join(done.stderr.split())[-300:] or f'status {done.returncode}'}")
    return done.stdout
