# SPDX-License-Identifier: MIT
"""Boots the virtual-time kernel for a test. Its root is the host's file system; its program is one Python module."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from .core_driver import ROOT

KERNEL = ROOT / "build/virtual/linux"
MISSING = f"{KERNEL} is missing: make kernel"
TIMEOUT_S = 300  # a boot takes some seconds: one that takes longer than this hangs
INIT = """#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs run /run
mount -t devtmpfs dev /dev
cd {root} && {python} -m {module} {output}
{python} -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'
"""


def boot(directory: Path, module: str, *parameters: str) -> str:
    """Boots, runs `module` with the path `directory`/output as its argument, and returns the console's output. The
    caller needs no root privilege: every user is root inside the kernel.
    """
    paths = {"root": ROOT, "python": sys.executable, "module": module, "output": directory / "output"}
    return run(directory, INIT.format(**{name: shlex.quote(str(path)) for name, path in paths.items()}), *parameters)


def run(directory: Path, text: str, *parameters: str) -> str:
    """Boots with the program `text` as init, and returns the console's output."""
    init = directory / "init"
    init.write_text(text)
    init.chmod(0o755)
    words = [  # random.trust_cpu: else Linux 6.1 waits for entropy from timer jitter, which virtual time does not have
        KERNEL, "mem=512M", "root=none", "rootfstype=hostfs", "rootflags=/", "rw", "con=null", "con0=fd:0,fd:1",
        "time-travel=inf-cpu", "time-travel-start=1000000000000000000", "random.trust_cpu=1", f"uml_dir={directory}",
        f"init={init}", *parameters,
    ]  # fmt: skip
    with subprocess.Popen(
        [str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True, preexec_fn=one_processor,
    ) as process:  # fmt: skip
        try:
            console, _ = process.communicate(timeout=TIMEOUT_S)
        except BaseException:  # the kernel's process has children, which must end, too
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return console.decode(errors="replace")


def one_processor() -> None:
    """Binds the process to one processor: waking it on another one would take most of a boot's time."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
