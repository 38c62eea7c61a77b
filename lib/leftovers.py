# SPDX-License-Identifier: MIT
"""What killed commands left in directories: scratch directories, and temporary files beside the files that they were to
replace. The next command that writes to the same place removes it, and `bufferscope leftovers` lists it all.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from lib import files, owner

# Of files.scratch, files.complete, a sweep's engine, and a testbed's run.
SCRATCH = re.compile(r"\.(derived|whatif|report|drawn|importing|engine|away)|\..+\.part|\.fetched-.+")
TEMPORARY = re.compile(r"\..+\.(\d+)\.\d+")  # of files.whole and files.link: the process ID, and a number
PREFIX = "bufferscope-scratch-"
NEW_S = 10.0  # a directory that is just being made has no lock yet


@contextlib.contextmanager
def temporary() -> Iterator[Path]:
    """A directory in TMPDIR that no other user may enter. Removes those of killed processes of this user."""
    for left in of_tmpdir():
        remove(left)
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name, files.directory(name, follow=True) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield Path(name)


def of_tmpdir() -> list[Path]:
    """The directories of `temporary` whose process has ended."""
    return [path for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*") if _is_left(path)]


def _is_left(path: Path) -> bool:
    with contextlib.suppress(OSError), files.directory(path) as within:
        is_new = time.time() - os.fstat(within).st_ctime < NEW_S
        return owner.is_ours(within) and not is_new and not _is_locked(path)
    return False


def below(top: Path) -> Iterator[Path]:
    """Scratch directories and temporary files below a directory that no running process uses. No link is followed."""
    for parent, directories, names in os.walk(top):
        for name in [name for name in directories if SCRATCH.fullmatch(name)]:
            directories.remove(name)
            path = Path(parent, name)
            # A run, a repetition and a sweep are locked while a command works there.
            if not path.is_symlink() and not _is_locked(path) and not _is_locked(path.parent):
                yield path
        for name in names:
            match = TEMPORARY.fullmatch(name)
            if match and not Path("/proc", match[1]).exists():
                yield Path(parent, name)


def remove(path: Path) -> None:
    """Raises OSError; owner.NotOurs if the directory that has it belongs to another user."""
    is_shared = path.parent.stat().st_mode & stat.S_ISVTX  # as /tmp, where users cannot remove each other's files
    with (files.directory if is_shared else files.claimed)(path.parent, follow=True) as parent:
        files.remove(path.name, parent)


def _is_locked(directory: Path) -> bool:
    try:
        with files.directory(directory, follow=True) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
