# SPDX-License-Identifier: MIT
"""Reads and writes files, possibly as root, in directories that other users may write to. Opening a symbolic link or a
FIFO raises OSError: no link at the end of a path is followed, and no open waits for the other end of a FIFO.
`write_text`, `whole` and `link` replace a name atomically, even that of a link or a FIFO.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from lib.owner import give_open

SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
MOST_TRIES = 100  # names tried for a temporary file: killed processes that had this PID may have left some


@contextlib.contextmanager
def directory(path: Path | str, within: int | None = None) -> Iterator[int]:
    """A descriptor of a directory; a symbolic link is refused. If `within` is given, `path` is relative to it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | SAFE, dir_fd=within)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_regular(path: Path | str, flags: int, within: int | None = None) -> int:
    """A descriptor of a regular file. A file that is opened for writing must have only one hard link: another link
    might be the file of another user. With O_CREAT the file gets the run's owner.
    """
    descriptor = os.open(path, flags | SAFE, 0o666, dir_fd=within)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or (status.st_nlink > 1 and flags & (os.O_WRONLY | os.O_RDWR)):
            raise OSError(errno.EINVAL, "is not a regular file, or has a second hard link", str(path))
        os.set_blocking(descriptor, True)
        if flags & os.O_CREAT:
            give_open(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def write_text(path: Path, text: str) -> None:
    """Replaces a file atomically. Raises OSError."""
    with whole(path) as file:
        file.write(text.encode())


@contextlib.contextmanager
def whole(path: Path) -> Iterator[IO[bytes]]:
    """A temporary file that replaces `path` when the body ends without an exception. Raises OSError."""
    temporary, descriptor = _new(path)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def link(path: Path, target: str) -> None:
    """Replaces `path` with a symbolic link, atomically. Raises OSError."""
    for temporary in _temporaries(path):
        with contextlib.suppress(FileExistsError):
            temporary.symlink_to(target)
            break
    else:
        raise OSError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    try:
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def remove(path: Path) -> None:
    """Removes a file, a link, or a directory with its content; does nothing if `path` does not exist. Raises OSError.
    shutil.rmtree is called for directories only: it opens `path`, and a FIFO would block it.
    """
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def exists(name: str, within: int) -> bool:
    """Whether the directory `within` has an entry of that name, even a dangling link."""
    try:
        os.stat(name, dir_fd=within, follow_symlinks=False)
    except OSError:
        return False
    return True


def _new(path: Path) -> tuple[Path, int]:
    for temporary in _temporaries(path):
        with contextlib.suppress(FileExistsError):
            return temporary, open_regular(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    raise OSError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))


def _temporaries(path: Path) -> Iterator[Path]:
    """Candidates for a temporary name. Not random: nothing in the virtual-time machine may depend on entropy."""
    return (path.with_name(f".{path.name}.{os.getpid()}.{number}") for number in range(MOST_TRIES))
