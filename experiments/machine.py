# SPDX-License-Identifier: MIT
"""Who may use which processor: an experiment in real time has all of them, one in virtual time those it finds free.

Real time shows everything else that runs, so there is one such experiment at a time, whatever its results directory.
Virtual time shows nothing of it; a processor each is only a matter of speed.

A lock is a name among the abstract unix sockets: the kernel frees it with the last process of the run, nothing stays
in a file system, and it can be asked who holds it. It reaches as far as the network namespace that the runner is called
in: two containers do not see each other. Any local user could take the name first; the line then names that process.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
from collections.abc import Iterator

from lib.errors import RunError

NAME = "\0bufferscope-experiment"
MOST_SHARE = 4  # experiments in virtual time on one processor


@contextlib.contextmanager
def all_processors(name: str) -> Iterator[None]:
    """Holds the whole machine, for real time. RunError if any experiment, real or virtual, runs."""
    with contextlib.ExitStack() as held:
        for one in (name, *(place for _, place in _places(name))):
            held.enter_context(alone(one))
        yield


@contextlib.contextmanager
def free_processors(name: str, most: int) -> Iterator[list[int]]:
    """Holds up to `most` processors that no other experiment has, the last ones first, and gives their numbers.

    Where all are taken, it is one that is shared. RunError if an experiment in real time runs, or too many of them.
    """
    with contextlib.ExitStack() as held:
        found: list[int] = []
        refusals: list[str] = []
        for number, place in _places(name):
            if len(found) == most or (found and number in found):
                break
            try:
                held.enter_context(alone(place))
            except RunError as refused:
                refusals += refused.lines
            else:
                found.append(number)
        if not found:
            raise RunError(refusals[0])
        yield found


def _places(name: str) -> list[tuple[int, str]]:
    """Processors with the names that stand for them, those that nobody shares first."""
    processors = sorted(os.sched_getaffinity(0), reverse=True)
    return [(number, f"{name}-{number}-{share}") for share in range(MOST_SHARE) for number in processors]


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
