# SPDX-License-Identifier: MIT
"""Calls of the kernel's own make: outside the source tree, with an environment of its own, logged, interruptible.

A compiler that was killed may leave half an object that make takes for a whole one. So a mark stands in the objects'
directory while make runs, and is taken away when make has come to its end and could tidy up; where the mark still
stands, the objects are not used again.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from virtual.kernel.errors import KernelError

PR_SET_PDEATHSIG = 1  # include/uapi/linux/prctl.h
MARK = ".make-is-running"
STEP = re.compile(rb"^  [A-Z]+ +\S")  # one line a step: "  CC      kernel/fork.o"
LAST_LINES = 12
GRACE_S = 10.0

# Nothing of the user's environment decides what is built; the same sources give the same bytes.
FIXED = {
    "LC_ALL": "C",
    "LOCALVERSION": "",
    "KBUILD_BUILD_TIMESTAMP": "1970-01-01",
    "KBUILD_BUILD_VERSION": "1",
    "KBUILD_BUILD_USER": "bufferscope",
    "KBUILD_BUILD_HOST": "bufferscope",
}

_libc = ctypes.CDLL(None, use_errno=True)


def fresh_objects(objects: Path) -> None:
    """Remove objects that a killed make may have left half-written."""
    if (objects / MARK).exists():
        shutil.rmtree(objects)
    objects.mkdir(parents=True, exist_ok=True)


def make(
    tree: Path,
    objects: Path,
    arguments: list[str],
    log: BinaryIO,
    lock: int,
    step: Callable[[int], None] = lambda count: None,
) -> None:
    """Run make; step is called with the number of steps done. Raises KernelError with the end of what make said.

    lock is the descriptor of the build's lock: what make leaves behind holds it too, until it is gone.
    """
    command = ["make", "-C", str(tree), f"O={objects}", "ARCH=um", f"-j{len(os.sched_getaffinity(0))}", *arguments]
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    begin = log.tell()
    (objects / MARK).touch()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=kept | FIXED,
        start_new_session=True, pass_fds=(lock,), preexec_fn=_end_with_parent,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        count = 0
        for line in process.stdout:
            log.write(line)
            if STEP.match(line):
                count += 1
                step(count)
        process.wait()
    finally:
        if _ended(process):
            (objects / MARK).unlink(missing_ok=True)
        process.stdout.close()
        log.flush()
    if process.returncode:
        raise KernelError(_failure(log, begin, process.returncode))


def _end_with_parent() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGTERM), 0, 0, 0)


def _ended(process: subprocess.Popen[bytes]) -> bool:
    """End make if it still runs, so that it removes half-written objects; whether it could."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return process.returncode != -signal.SIGKILL


def _failure(log: BinaryIO, begin: int, status: int) -> str:
    """The errors, else the last lines, of what make said."""
    log.seek(begin)
    lines = log.read().decode(errors="replace").splitlines()
    errors = [line for line in lines if re.search(r"\berror\b|undefined reference|No space left", line, re.IGNORECASE)]
    shown = "\n  ".join((errors or lines)[:LAST_LINES] if errors else lines[-LAST_LINES:])
    how = f"was ended by signal {-status}" if status < 0 else f"failed with status {status}"
    return f"make of the kernel {how}; the whole log is {log.name}:\n  {shown}"
