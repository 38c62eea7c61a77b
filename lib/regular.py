# SPDX-License-Identifier: MIT
"""Opens regular files only. Opening a FIFO blocks until a writer comes, and reading a device may never end: this
module raises OSError at once for both. A program that reads a directory of unknown origin opens every file with this
module.
"""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

NOT_REGULAR = "is not a regular file"


def expanded(name: str | Path) -> Path:
    """The path with the home in place of ~ or ~user, or, as in a shell, unchanged if there is no such home."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def opened(path: Path) -> BufferedReader:
    """The file, open for reading. Raises OSError, whose text is NOT_REGULAR for a FIFO, a device or a directory."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, NOT_REGULAR, str(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def check(path: Path) -> None:
    """Raises OSError unless `path` is a regular file. Call it before a library opens the path."""
    opened(path).close()


def read_text(path: Path, errors: str = "strict") -> str:
    """The whole file as UTF-8. Raises OSError, UnicodeDecodeError."""
    with opened(path) as file:
        return file.read().decode("utf-8", errors)


def read_bytes(path: Path, most: int) -> bytes:
    """The whole file, of at most `most` bytes. Raises OSError."""
    with opened(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"is larger than {most} bytes", str(path))
    return data
