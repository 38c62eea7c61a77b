# SPDX-License-Identifier: MIT
"""Programs as children: started without a shell, with few capabilities, never outliving their parent."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, NamedTuple

from hosts import aligned_start, full_disk
from hosts.ending import ended_within
from hosts.traffic.outcome import StoppedError

PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 24, 38  # include/uapi/linux/prctl.h
# include/uapi/linux/capability.h: for reports in a directory of the caller of sudo; for any congestion control, tcp_ecn
# and large buffers; for more open files than the hard limit.
CAP_DAC_OVERRIDE, CAP_NET_ADMIN, CAP_SYS_RESOURCE = 1, 12, 24
KEPT, MOST_CAPABILITIES = (CAP_NET_ADMIN, CAP_SYS_RESOURCE), 64
TERMINATE_SECONDS = 2.0  # from SIGTERM, on which a program writes its report, to SIGKILL
REPORT_SECONDS = 15.0  # for the report, after the program's task
BUILD = Path(os.environ.get("BUFFERSCOPE_BUILD") or Path(__file__).resolve().parents[2] / "build")  # lib/places.py

_LIBC = ctypes.CDLL(None)


class ProgramMissingError(RuntimeError):
    """A program that is not installed or not built; the text is for the user."""


def built(name: str) -> str:
    """The path of one of our own programs."""
    path = BUILD / name
    if not path.is_file():
        raise ProgramMissingError(f"{path} is missing: build it (make build), or deploy")
    return str(path)


def _begin(kept: Sequence[int]) -> None:
    """Runs in the child before the program, which gets the capabilities of `kept` that this process has."""
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    for capability in set(range(MOST_CAPABILITIES)).difference(kept):
        if _LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0):
            break  # not root, or beyond the kernel's last capability
    _LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def start(
    argv: Sequence[str], stdin: IO[bytes] | int, output: IO[bytes], kept: Sequence[int] = KEPT
) -> subprocess.Popen[bytes]:
    """Starts a program with stdout and stderr to `output`, and of root's capabilities only those of `kept`. When the
    starting thread ends, the program is killed.
    """
    options: dict[str, Any] = {"stdin": stdin, "stdout": output, "stderr": subprocess.STDOUT}
    return subprocess.Popen(argv, preexec_fn=lambda: _begin(kept), **options)


def end_all(children: Sequence[subprocess.Popen[bytes]]) -> None:
    """Sends SIGTERM to all running children, then SIGKILL to those that remain."""
    running = [child for child in children if child.poll() is None]
    for child in running:
        child.terminate()
    deadline = time.monotonic() + TERMINATE_SECONDS
    for child in running:
        try:
            child.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


class Task(NamedTuple):
    """One of our own programs, with `lines` as its standard input. It may take `seconds` + REPORT_SECONDS."""

    name: str
    arguments: Sequence[str]
    lines: Iterable[str]
    seconds: float


def carry_out(name: str, arguments: Sequence[str], lines: Iterable[str], seconds: float) -> tuple[int, list[str]]:
    """Runs a program; returns its exit status and its error messages."""
    return carry_out_all([Task(name, arguments, lines, seconds)])[0]


def carry_out_all(tasks: Sequence[Task]) -> list[tuple[int, list[str]]]:
    """Runs programs at the same time and waits for them in order: after one that failed, ends the others. Returns
    (exit status, error messages) of each.
    """
    # Files, not pipes: if a signal interrupts the wait, there is no pipe to feed or to drain.
    with ExitStack() as files:
        programs, outputs = [], []
        for task in tasks:
            stdin, output = (files.enter_context(tempfile.TemporaryFile()) for _ in range(2))
            stdin.writelines(line.encode() for line in task.lines)
            stdin.seek(0)
            outputs.append((stdin, output))
        for task, (stdin, output) in zip(tasks, outputs):
            argv = [built(task.name), *task.arguments]
            aligned_start.wait_for_whole()
            programs.append(start(argv, stdin, output, (*KEPT, CAP_DAC_OVERRIDE)))
            files.callback(end_all, [programs[-1]])
        errors: list[list[str]] = []
        for task, program in zip(tasks, programs):
            failed = any(errors) or any(ended.returncode for ended in programs)
            errors.append([] if failed else _wait(task.name, program, task.seconds + REPORT_SECONDS))
        end_all(programs)
        said = [_said(task.name, output) for task, (_, output) in zip(tasks, outputs)]
    results = []
    for task, program, problems, lines in zip(tasks, programs, errors, said):
        problems += [line for line in lines if line not in problems]
        if program.returncode and not problems:
            full = full_disk.full(Path(tempfile.gettempdir()))
            problems.append(
                f"{task.name} ended with status {program.returncode} and said nothing{full and f'; {full}'}"
            )
        results.append((program.returncode, problems))
    return results


def _said(name: str, output: IO[bytes]) -> list[str]:
    output.seek(0)
    return [line.removeprefix(f"{name}: ") for line in output.read().decode(errors="replace").splitlines()]


def _wait(name: str, program: subprocess.Popen[bytes], seconds: float) -> list[str]:
    """Waits for the program's end. Returns errors; after an error the program may still run."""
    try:
        ended = ended_within(program, seconds)
    except StoppedError as stopped:
        return [f"ended by {stopped} before its time"]
    return [] if ended else [f"{name} has not ended after {seconds:.0f} s: it was killed"]
