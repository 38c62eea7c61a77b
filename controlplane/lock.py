# SPDX-License-Identifier: MIT
"""One writer at a time, for switches that accept every writer: a lock file for each address, on this machine.

The kernel releases the locks of a process that ends, so a crash leaves no lock. A normal end also removes the file.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from controlplane.switch import SwitchError
from lib import files

DIRECTORIES: tuple[Path, ...] = (
    Path("/run/lock"),
    Path(tempfile.gettempdir()),
)  # the first that exists is used; all users can write there
TRIES = 20


@contextmanager
def only_writer(target: str, address: str, key: str = "") -> Iterator[None]:
    """Holds the lock of `key` (default: `address`) on this machine. SwitchError if the lock is already held, by another
    process or by this one.
    """
    path = lock_file(target, key or address)
    descriptor = _take(path, f"{target} switch at {address}")
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def lock_file(target: str, key: str) -> Path:
    directory = next(directory for directory in DIRECTORIES if directory.is_dir())
    return directory / f"bufferscope-{hashlib.sha256(f'{target} {key}'.encode()).hexdigest()[:16]}.lock"


def left() -> list[Path]:
    """The files of locks that killed processes held."""
    paths = [path for directory in DIRECTORIES for path in sorted(directory.glob("bufferscope-*.lock"))]
    return [path for path in paths if not _is_held(path)]


def _is_held(path: Path) -> bool:
    try:
        descriptor = files.open_regular(path, os.O_RDWR)
    except OSError:  # another user's
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _take(path: Path, switch: str) -> int:
    for _ in range(TRIES):
        try:
            descriptor = files.open_regular(path, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise SwitchError(f"{switch}: cannot lock it: {path}: {error.strerror}; are two users at work?") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 64).decode(errors="replace").strip() or "another process"
            os.close(descriptor)
            raise SwitchError(f"{switch}: {holder} is writing to it; wait for its end, or end it ({path})") from None
        if path.exists() and os.fstat(descriptor).st_ino == path.stat().st_ino:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()}\n".encode(), 0)
            return descriptor
        os.close(descriptor)  # the previous holder removed the file between our open and our lock: try the new file
    raise SwitchError(f"{switch}: cannot lock it: {path} keeps disappearing")
