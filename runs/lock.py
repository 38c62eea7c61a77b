# SPDX-License-Identifier: MIT
"""The lock of a repetition: one program at a time writes into it. Two would mix their files, and each would overwrite
the other's entries in the record of digests.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from lib import files, owner
from lib.errors import InputError
from lib.terminal import one_line

TOLD = "say FOREIGN=1"  # to a command that replaces stored results


@contextmanager
def only_one(directory: Path) -> Iterator[int]:
    """Holds the lock, and yields a descriptor of the directory, for everything that is written into it. Raises
    InputError if another process has the lock, or if the directory is another user's. The kernel releases the lock when
    the process ends.
    """
    with ExitStack() as held:
        try:
            lock = held.enter_context(files.claimed(directory, follow=True, remedy=TOLD))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"{directory}: is in use by another analysis or what-if; wait until that process ends"
            ) from None
        except owner.NotOurs as error:
            raise InputError(f"{directory}: {one_line(error)}") from None
        except OSError as error:
            raise InputError(
                f"{directory}: {one_line(error)}; give the directory of a repetition (results/<run>/rep-<k>)"
            ) from None
        yield lock
