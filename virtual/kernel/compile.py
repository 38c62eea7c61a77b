# SPDX-License-Identifier: MIT
"""Calls the kernel's make: outside the source tree, with a fixed environment, logged, interruptible.

A killed compiler may leave a half-written object that make considers whole. make removes such objects when it ends,
unless SIGKILL ends it. So a mark file exists in the objects' directory while make runs, and stays after SIGKILL. The
next build then discards the objects.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from lib import syscalls
from virtual.kernel.errors import KernelError

MARK = ".make-is-running"
STEP = re.compile(rb"^  [A-Z]+ +\S")  # one line per step: "  CC      kernel/fork.o"
LAST_LINES = 12
GRACE_S = 10.0

# User-Mode Linux compiles for modules anywhere in memory (-mcmodel=large: every call goes through a register), and
# without the compiler's memcpy and memset (-fno-builtin: copying six bytes of a header is a call). This kernel has no
# modules and lies below 2 GiB, so it is compiled like a kernel for hardware. KCFLAGS come last in the compiler's
# arguments.
FLAGS = "-mcmodel=small -fbuiltin"

# Only PATH of the user's environment decides the result: the same sources and compiler give the same bytes.
FIXED = {
    "KCFLAGS": FLAGS,
    "LC_ALL": "C",
    "LOCALVERSION": "",
    "KBUILD_BUILD_TIMESTAMP": "1970-01-01",
    "KBUILD_BUILD_VERSION": "1",
    "KBUILD_BUILD_USER": "bufferscope",
    "KBUILD_BUILD_HOST": "bufferscope",
}


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
    """Run make; calls `step` with the number of steps done. Raises KernelError with the errors in make's output.

    `lock` is the descriptor of the build lock. make's processes inherit the lock, and hold it until the last one ends.
    """
    command = ["make", "-C", str(tree), f"O={objects}", "ARCH=um", f"-j{len(os.sched_getaffinity(0))}", *arguments]
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    begin = log.tell()
    (objects / MARK).touch()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment | FIXED,
        start_new_session=True, pass_fds=(lock,), preexec_fn=lambda: syscalls.die_with_parent(signal.SIGTERM),
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


def _ended(process: subprocess.Popen[bytes]) -> bool:
    """End make with SIGTERM, so that it removes half-written objects. False: make was killed by SIGKILL."""
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
    """The errors in make's output, else its last lines."""
    log.seek(begin)
    lines = log.read().decode(errors="replace").splitlines()
    errors = [line for line in lines if re.search(r"\berror\b|undefined reference|No space left", line, re.IGNORECASE)]
    shown = "\n  ".join((errors or lines)[:LAST_LINES] if errors else lines[-LAST_LINES:])
    how = f"was ended by signal {-status}" if status < 0 else f"failed with status {status}"
    return f"make of the kernel {how}; the whole log is {log.name}:\n  {shown}"
