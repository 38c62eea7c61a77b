# SPDX-License-Identifier: MIT
"""PID 1 of the virtual-time kernel: mounts the file systems, runs one module, syncs, powers off.

    init=PYTHON ... -- -m virtual.init MODULE

The root is the host's, mounted read-only, so that nothing inside can change the host. Only the job's directory is
writable. It always has the same path inside: paths are part of a program's memory, and the same job must give the same
bytes.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import socket
import sys
import traceback
from pathlib import Path

from lib import places
from lib.syscalls import MS_NODEV, MS_NOEXEC, MS_NOSUID, mount
from virtual import PATH, PYTHON_ALONE, RUN_DIRECTORY
from virtual.messages import Speaker

PR_SET_TIMERSLACK = 29  # include/uapi/linux/prctl.h
LINUX_REBOOT_CMD_POWER_OFF = 0x4321FEDC  # include/uapi/linux/reboot.h
# The size is bounded, because the tmpfs on /run takes pages of the machine's memory.
RUN_OPTIONS = "mode=755,size=64m"
# The host resolves this path for the kernel's process, so the path leads to the directory in which the kernel was
# started. The kernel's command line need not name the job's directory.
JOB_DIRECTORY = "/proc/self/cwd"

_libc = ctypes.CDLL(None, use_errno=True)


def mount_all() -> None:
    """Mounts /proc, /sys, /dev and /run as programs expect them, and the job's directory at RUN_DIRECTORY."""
    restricted = MS_NOSUID | MS_NODEV | MS_NOEXEC
    mount("proc", "/proc", "proc", restricted)
    mount("sysfs", "/sys", "sysfs", restricted)
    mount("devtmpfs", "/dev", "devtmpfs", MS_NOSUID)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        Path("/dev", name).symlink_to(target)
    Path("/dev/shm").mkdir()
    mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV)
    mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, RUN_OPTIONS)
    for directory in (Path("/run/netns"), RUN_DIRECTORY, Path("/run/tmp")):
        directory.mkdir(parents=True)
    mount("tracefs", "/sys/kernel/tracing", "tracefs", 0)
    mount("none", str(RUN_DIRECTORY), "hostfs", MS_NOSUID | MS_NODEV, JOB_DIRECTORY)


def set_login_defaults() -> None:
    """Sets umask, host name and 1 ns of timer slack, which children inherit. The default of 50 us only saves power."""
    _libc.prctl(PR_SET_TIMERSLACK, ctypes.c_ulong(1), 0, 0, 0)
    os.umask(0o022)
    socket.sethostname("virtual")


def run_module(name: str) -> int:
    """Runs a module in this process; returns the exit status. A second interpreter would take 0.3 s of processor time,
    because every page of it costs a fault.

    The environment of programs inside influences the addresses of their memory. So it is the same in every run of a
    checkout; only the paths of checkout and build depend on the checkout.
    Ended children that nobody waits for stay as zombies. They do no harm, because the machine ends soon.
    """
    inherited = {"PYTHONPATH": os.environ.get("PYTHONPATH", ""), **places.for_programs()}
    os.environ.clear()
    os.environ.update({"PATH": PATH, "HOME": "/root", "TMPDIR": "/run/tmp", "LC_ALL": "C.UTF-8", **inherited})
    os.environ.update(PYTHON_ALONE)
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def main(arguments: list[str]) -> None:
    """Runs the module that is the first argument, then powers off; never returns."""
    status = 1
    try:
        mount_all()
        set_login_defaults()
        try:
            status = run_module(arguments[0])
        except Exception:
            traceback.print_exc()
        Speaker().say(end=status)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.sync()
        _libc.reboot(ctypes.c_uint(LINUX_REBOOT_CMD_POWER_OFF))


if __name__ == "__main__":
    main(sys.argv[1:])
