# SPDX-License-Identifier: MIT
"""PID 1 of the virtual-time kernel: mounts what the lab needs, runs it, closes everything, switches off.

    init=PYTHON ... -- -m virtual.init MODULE

The root is the host's own, read-only, so that nothing in here can change the host; only the job's directory is
writable, and always has the same name in here: a path is part of a program's memory, and the same job shall be the same
bytes.
"""

from __future__ import annotations

import ctypes
import os
import socket
import sys
import traceback
from pathlib import Path

from virtual import PYTHON_ALONE, RUN_DIRECTORY
from virtual.messages import Speaker

MS_NOSUID, MS_NODEV, MS_NOEXEC = 0x2, 0x4, 0x8  # include/uapi/linux/mount.h
PR_SET_TIMERSLACK = 29  # include/uapi/linux/prctl.h
LINUX_REBOOT_CMD_POWER_OFF = 0x4321FEDC  # include/uapi/linux/reboot.h
# Of the tmpfs: pages of the kernel's own memory.
RUN_OPTIONS = "mode=755,size=64m"
# As the host resolves it, whose process this kernel is: the directory that it was started in. No path of the job has to
# pass through a kernel's command line.
JOB_DIRECTORY = "/proc/self/cwd"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    """mount(2). Raises OSError that names the target."""
    if _libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode() or None):
        number = ctypes.get_errno()
        raise OSError(number, f"mount {kind} on {target}: {os.strerror(number)}")


def mount_all() -> None:
    """/proc, /sys, /dev and /run as programs expect them; the job's directory where it always is."""
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
    mount("tracefs", "/sys/kernel/tracing", "tracefs")
    mount("none", str(RUN_DIRECTORY), "hostfs", MS_NOSUID | MS_NODEV, JOB_DIRECTORY)


def become_usual() -> None:
    """What a login would have set. Timers are exact here: no slack of 50 us for the sake of batteries."""
    _libc.prctl(PR_SET_TIMERSLACK, ctypes.c_ulong(1), 0, 0, 0)
    os.umask(0o022)
    socket.sethostname("virtual")


def run_and_reap(module: str) -> int:
    """Runs a module in a program of its own; reaps whatever ends meanwhile. Returns its exit status.

    The program's arguments and environment are the same whatever this one's are: those would show in the addresses of
    its memory.
    """
    environment = {
        "PATH": PATH, "HOME": "/root", "TMPDIR": "/run/tmp", "LC_ALL": "C.UTF-8", **PYTHON_ALONE,
        "PYTHONHASHSEED": "0", "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }  # fmt: skip
    worker = os.fork()
    if worker == 0:
        os.execve(sys.executable, [sys.executable, "-m", module], environment)
    while True:
        pid, status = os.wait()
        if pid == worker:
            return os.waitstatus_to_exitcode(status)


def main(arguments: list[str]) -> None:
    """Does it all; never returns. The argument is the module to run."""
    status = 1
    try:
        mount_all()
        become_usual()
        status = run_and_reap(arguments[0])
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
