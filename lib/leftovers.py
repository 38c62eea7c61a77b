# SPDX-License-Identifier: MIT
"""What killed commands left in directories: scratch directories, and temporary files beside the files that they were to
replace. The next command that writes to the same place removes a scratch directory; `bufferscope leftovers` lists it
all. What a running command uses is locked. (A process ID would not show it: a run has its own PID namespace.)
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
TEMPORARY = re.compile(r"\..+\.\d+\.\d+\.part")  # of files.replacing and files.link
PREFIX = "bufferscope-scratch-"
NEW_S = 10.0  # a directory that is just being made has no lock yet


@contextlib.contextmanager
def temporary() -> Iterator[Path]:
    """A directory in TMPDIR that no other user may enter. Removes those of killed processes of this user, if it may."""
    for left in of_tmpdir():
        with contextlib.suppress(OSError):  # another process removes it just now, or TMPDIR is another user's
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
        return owner.is_ours(within) and not is_new and not is_locked(path)
    return False


def below(top: Path) -> Iterator[Path]:
    """Scratch directories and temporary files below a directory that no running process uses. No link is followed."""
    for parent, directories, names in os.walk(top):
        for path in [Path(parent, name) for name in (*directories, *names) if name.startswith(".")]:
            is_directory = path.is_dir() and not path.is_symlink()
            if not (SCRATCH if is_directory else TEMPORARY).fullmatch(path.name):
                continue
            if is_directory:
                directories.remove(path.name)
            # A run, a repetition and a sweep are locked while a command works there.
            place = path.parent.resolve()
            if not any(map(is_locked, (path, place, place.parent))):
                yield path


def remove(path: Path) -> None:
    """Raises OSError; owner.NotOurs if the directory that has it belongs to another user."""
    is_shared = path.parent.stat().st_mode & stat.S_ISVTX  # as /tmp, where users cannot remove each other's files
    with (files.directory if is_shared else files.claimed)(path.parent, follow=True) as parent:
        files.remove(path.name, parent)


def is_locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | files.SAFE)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False
