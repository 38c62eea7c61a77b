# SPDX-License-Identifier: MIT
"""The lock of a repetition: one program at a time writes into it. Two would mix their files, and each would overwrite
the other's entries in the record of digests.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lib.errors import InputError


@contextmanager
def only_one(directory: Path) -> Iterator[None]:
    """Holds the lock. Raises InputError if another process has it. The kernel releases it when the process ends."""
    try:
        lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise InputError(
            f"{directory}: {error.strerror}; give the directory of a repetition (results/<run>/rep-<k>)"
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise InputError(
            f"{directory}: is in use by another analysis or what-if; wait until that process ends"
        ) from None
    finally:
        os.close(lock)
