# SPDX-License-Identifier: MIT
"""iperf3 as a child process: started without a shell, never outliving its parent, its own error text read back."""

from __future__ import annotations

import ctypes
import json
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

PR_SET_PDEATHSIG = 1  # include/uapi/linux/prctl.h
TERMINATE_SECONDS = 2.0  # from SIGTERM, when iperf3 writes what it has, to SIGKILL

_LIBC = ctypes.CDLL(None)


class IperfMissingError(RuntimeError):
    """iperf3 is not installed."""


def find() -> str:
    path = shutil.which("iperf3")
    if path is None:
        raise IperfMissingError("iperf3 is not installed: apt install iperf3 (3.12 or later)")
    return path


def _end_with_parent() -> None:
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def start(arguments: Sequence[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    """Its stdout and stderr go to `output`; it is killed when the thread that started it ends."""
    return subprocess.Popen(
        [find(), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        preexec_fn=_end_with_parent,
    )


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


def read_result(path: Path) -> tuple[dict[str, Any], str | None]:
    """What iperf3 wrote with --json, and its error if it had one. With --json it exits 0 even then (3.12)."""
    text = path.read_text(errors="replace")
    try:
        result = json.loads(text)
    except ValueError:
        return {}, text.strip().splitlines()[-1] if text.strip() else "it wrote nothing"
    if not isinstance(result, dict):
        return {}, "it wrote no JSON object"
    return result, result.get("error")
