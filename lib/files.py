# SPDX-License-Identifier: MIT
"""Files and directories below one that other users may write to, for a process that may be root. Nothing is written
through a link and no FIFO is waited for: one in the way of a file is an OSError. A written file is whole or not there.
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
MOST_TRIES = 100  # names for a temporary file, of which a killed process of this number may have left some


@contextlib.contextmanager
def directory(path: Path | str, within: int | None = None) -> Iterator[int]:
    """A descriptor of a directory that is no link, by its name in the directory `within` if that is given."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | SAFE, dir_fd=within)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_regular(path: Path | str, flags: int, within: int | None = None) -> int:
    """A descriptor of a regular file with one name. One that is made here belongs to whoever the run is for."""
    descriptor = os.open(path, flags | SAFE, 0o666, dir_fd=within)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or (found.st_nlink > 1 and flags & (os.O_WRONLY | os.O_RDWR)):
            raise OSError(errno.EINVAL, "is no regular file of its own", str(path))
        os.set_blocking(descriptor, True)
        if flags & os.O_CREAT:
            give_open(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def write_text(path: Path, text: str) -> None:
    """Puts a whole file in the place of what is there. Raises OSError."""
    with whole(path) as file:
        file.write(text.encode())


@contextlib.contextmanager
def whole(path: Path) -> Iterator[IO[bytes]]:
    """A new file beside `path`, in whose place it is put when the body ends well. Raises OSError."""
    temporary, descriptor = _new(path)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def link(path: Path, target: str) -> None:
    """Puts a symbolic link in the place of what is there. Raises OSError."""
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
    """Removes a file, a link, or a whole directory; nothing if there is none. Raises OSError. shutil.rmtree alone
    would wait for the writer of a FIFO.
    """
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def exists(name: str, within: int) -> bool:
    """Whether there is anything of that name, a link to nowhere included."""
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
    """Not drawn at random: in the virtual-time machine nothing may depend on entropy."""
    return (path.with_name(f".{path.name}.{os.getpid()}.{number}") for number in range(MOST_TRIES))
