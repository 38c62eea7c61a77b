# SPDX-License-Identifier: MIT
"""The few system calls that Python 3.11 lacks, through libc: unshare, setns, mount, prctl. Each raises OSError."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

CLONE_NEWNS = 0x00020000  # include/uapi/linux/sched.h
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC = 0x2, 0x4, 0x8  # include/uapi/linux/mount.h
MS_REC, MS_PRIVATE = 0x4000, 0x40000
PR_SET_PDEATHSIG = 1  # include/uapi/linux/prctl.h

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(what: str, result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Gives the caller namespaces of its own (CLONE_NEW*); a new PID namespace holds the caller's children only."""
    _checked("unshare", _libc.unshare(ctypes.c_int(flags)))


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """mount(2)."""
    data = options.encode() or None
    _checked(
        f"mount {kind or 'change'} on {target}",
        _libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data),
    )


def die_with_parent(sig: int = signal.SIGKILL) -> None:
    """The kernel sends `sig` to the caller when its parent ends, for whatever reason. Does nothing on other systems
    than Linux: stored runs can be analysed there, too.
    """
    if not sys.platform.startswith("linux"):
        return
    _checked("prctl", _libc.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(sig), 0, 0, 0))


@contextlib.contextmanager
def in_network_namespace(path: Path) -> Iterator[None]:
    """Runs its body in another network namespace. Only the calling thread enters it, and returns to the namespace of
    the main thread. Sockets made there stay there.
    """
    with Path("/proc/self/ns/net").open("rb") as before, path.open("rb") as other:
        _checked(f"enter network namespace {path}", _libc.setns(other.fileno(), CLONE_NEWNET))
        try:
            yield
        finally:
            _checked("return to the caller's network namespace", _libc.setns(before.fileno(), CLONE_NEWNET))
