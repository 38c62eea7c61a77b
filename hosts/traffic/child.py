# SPDX-License-Identifier: MIT
"""Programs as children: started without a shell, never outliving their parent."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

from hosts import moment, room
from hosts.traffic.outcome import StoppedError

PR_SET_PDEATHSIG = 1  # include/uapi/linux/prctl.h
TERMINATE_SECONDS = 2.0  # from SIGTERM, on which a program writes its report, to SIGKILL
REPORT_SECONDS = 15.0  # for the report, after the program's task
BUILD = Path(__file__).resolve().parents[2] / "build"

_LIBC = ctypes.CDLL(None)


class ProgramMissingError(RuntimeError):
    """A program that is not installed or not built; the text is for the user."""


def built(name: str) -> str:
    """The path of one of our own programs."""
    path = BUILD / name
    if not path.is_file():
        raise ProgramMissingError(f"{path} is missing: build it (make build), or deploy")
    return str(path)


def _end_with_parent() -> None:
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def start(argv: Sequence[str], stdin: IO[bytes] | int, output: IO[bytes]) -> subprocess.Popen[bytes]:
    """Starts a program with stdout and stderr to `output`. It is killed when the thread that started it ends."""
    options: dict[str, Any] = {"stdin": stdin, "stdout": output, "stderr": subprocess.STDOUT}
    return subprocess.Popen(argv, preexec_fn=_end_with_parent, **options)


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


def carry_out(name: str, arguments: Sequence[str], lines: Iterable[str], seconds: float) -> tuple[int, list[str]]:
    """Runs one of our own programs with `lines` as its standard input, for at most `seconds` + REPORT_SECONDS.

    Returns its exit status and its error messages.
    """
    # Files, not pipes: if a signal interrupts the wait, there is no pipe to feed or to drain.
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as output:
        stdin.writelines(line.encode() for line in lines)
        stdin.seek(0)
        argv = [built(name), *arguments]
        moment.wait_for_whole()
        program = start(argv, stdin, output)
        errors = _wait(name, program, seconds + REPORT_SECONDS)
        end_all([program])
        output.seek(0)
        said = [line.removeprefix(f"{name}: ") for line in output.read().decode(errors="replace").splitlines()]
    errors += [line for line in said if line not in errors]
    if program.returncode and not errors:
        full = room.full(Path(tempfile.gettempdir()))
        errors.append(f"{name} ended with status {program.returncode} and said nothing{full and f'; {full}'}")
    return program.returncode, errors


def _wait(name: str, program: subprocess.Popen[bytes], seconds: float) -> list[str]:
    """Waits for the program's end. Returns errors; after an error the program may still run."""
    try:
        program.wait(seconds)
    except StoppedError as stopped:
        return [f"ended by {stopped} before its time"]
    except subprocess.TimeoutExpired:
        return [f"{name} has not ended after {seconds:.0f} s: it was killed"]
    return []
