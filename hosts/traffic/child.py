# SPDX-License-Identifier: MIT
"""Programs as children: started without a shell, never outliving their parent."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

PR_SET_PDEATHSIG = 1  # include/uapi/linux/prctl.h
TERMINATE_SECONDS = 2.0  # from SIGTERM, when a program writes what it has, to SIGKILL
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
    """Its stdout and stderr go to `output`; it is killed when the thread that started it ends."""
    options: dict[str, Any] = {"stdin": stdin, "stdout": output, "stderr": subprocess.STDOUT}
    return subprocess.Popen(argv, preexec_fn=_end_with_parent, **options)


def end_all(children: Sequence[subprocess.Popen[bytes]]) -> None:
    """SIGTERM to all that still run, SIGKILL to those that stay."""
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
