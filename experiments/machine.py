# SPDX-License-Identifier: MIT
"""One experiment on this machine at a time, whatever its results directory: two would share the processors.

The lock is a name among the abstract unix sockets: the kernel frees it with the last process of the run, nothing stays
in a file system, and it can be asked who holds it. It reaches as far as the network namespace that the runner is called
in: two containers do not see each other. Any local user could take the name first; the line then names that process.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import struct
from collections.abc import Iterator

from experiments.errors import RunError

NAME = "\0bufferscope-experiment"


@contextlib.contextmanager
def alone(name: str) -> Iterator[None]:
    """Holds this machine for one experiment. RunError if another one has it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as holder:
        try:
            holder.bind(name)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise RunError(
                f"another experiment is running ({_holder(name)}); two would disturb each other: wait until it ends"
            ) from None
        holder.listen(socket.SOMAXCONN)  # whoever asks stays in this queue: nobody accepts
        yield


def _holder(name: str) -> str:
    """The process that listens, by the kernel's word. None is known in the moment between its bind and its listen."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.setblocking(False)  # a full queue must not hold this one up
        try:
            asking.connect(name)
            pid, _, _ = struct.unpack("3i", asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        except OSError:
            return "process unknown"
        return f"pid {pid}"
