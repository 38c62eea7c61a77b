# SPDX-License-Identifier: MIT
"""Which experiment may use which processors. An experiment in real time has all of them. An experiment in virtual time
has a free processor for each repetition, as far as processors are free, and shares a processor if none is free.

In real time every other process disturbs the result, so there is one such experiment at a time, whatever its results
directory. Virtual time is not disturbed; a processor for each repetition only makes it faster.

A lock is the name of an abstract unix socket. The kernel frees the name when the last process of the run ends, and
tells which process holds it. Nothing stays in a file system. A lock covers one network namespace: two containers do not
exclude each other. Any local user could take the name first; the error then names that process.
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
        for place in (name, *(shared for _, shared in _places(name))):
            held.enter_context(alone(place))
        yield


@contextlib.contextmanager
def free_processors(name: str, most: int) -> Iterator[list[int]]:
    """Holds up to `most` processors that no other experiment has, the last processor first, and yields their numbers.

    If every processor is taken, holds one shared processor. RunError if an experiment in real time runs, or if each
    processor has MOST_SHARE experiments.
    """
    with contextlib.ExitStack() as held:
        processors: list[int] = []
        refusals: list[str] = []
        for number, place in _places(name):
            if len(processors) == most or (processors and number in processors):
                break
            try:
                held.enter_context(alone(place))
            except RunError as refused:
                refusals += refused.lines
            else:
                processors.append(number)
        if not processors:
            raise RunError(refusals[0])
        yield processors


def _places(name: str) -> list[tuple[int, str]]:
    """Processors with the names of their locks. The names for the first experiment on each processor come first."""
    processors = sorted(os.sched_getaffinity(0), reverse=True)
    return [(number, f"{name}-{number}-{share}") for share in range(MOST_SHARE) for number in processors]


@contextlib.contextmanager
def alone(name: str) -> Iterator[None]:
    """Holds the lock `name`. RunError if another experiment has it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as holder:
        try:
            holder.bind(name)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise RunError(
                f"another experiment is running ({_holder(name)}); two would disturb each other: wait until it ends"
            ) from None
        holder.listen(socket.SOMAXCONN)  # connections of _holder stay in this queue: nobody accepts them
        yield


def _holder(name: str) -> str:
    """The process that holds the lock, as the kernel reports it. It is unknown between the process's bind and listen,
    and while its queue of connections is full.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.setblocking(False)  # a full queue must not block
        try:
            asking.connect(name)
            pid, _, _ = struct.unpack("3i", asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        except OSError:
            return "process unknown"
        return f"pid {pid}"
