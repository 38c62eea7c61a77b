# SPDX-License-Identifier: MIT
"""Which experiment may use which processors, and the queue in which experiments wait for each other.

An experiment in real time shares no processor, because every other process disturbs the result. So there is one such
experiment at a time, whatever its results directory. It has REAL_TIME_PROCESSORS processors, or all if the machine has
no more. An experiment in virtual time is never disturbed. It has a free processor for each repetition, as far as
processors are free, and shares a processor if none is free. An experiment that has to wait waits behind those that came
earlier: a sweep that always has another run cannot keep an experiment in real time from starting.

A lock is the name of an abstract unix socket. The kernel frees the name when the last process of the run ends, wakes
everybody who is connected to the socket, and tells who has the name. Nothing stays in a file system. A lock covers one
network namespace: two containers do not exclude each other. Any local user could take a name first; the message then
names that process.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
import re
import select
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lib.errors import RunError
from lib.terminal import say

NAME = "\0bufferscope-experiment"
MOST_SHARE = 4  # experiments in virtual time on one processor
# The switch is one thread and has a processor for itself. The sender's kernel, the receiver's kernel, and collector and
# tracer together work less for each packet than the switch does.
REAL_TIME_PROCESSORS = 4
MOST_TITLE = 40  # characters; a socket's name has 107 at most
LOOK_AGAIN_S = 0.05  # if the holder's socket cannot be waited for
UNIX_SOCKETS = Path("/proc/net/unix")  # of this network namespace; an abstract name begins with "@" there

NOT_SHARED = "an experiment in real time shares no processor, because other work would make it late"
CAME_FIRST = "it came first"
FULL = f"each processor has {MOST_SHARE} experiments"


class Asking(NamedTuple):
    """Who asks for processors. Without `wait` the experiment is refused if it would have to wait."""

    title: str
    wait: bool = True


@contextlib.contextmanager
def for_real_time(name: str, asking: Asking) -> Iterator[None]:
    """Holds the processors of an experiment in real time, and keeps this process to them. Raises RunError."""
    first = sorted(os.sched_getaffinity(0))[:REAL_TIME_PROCESSORS]
    with contextlib.ExitStack() as held:
        with _turn(name, asking) as queue:
            for place in (name, *(place for number, place in _places(name) if number in first)):
                while not _taken(held, place):
                    queue.wait_for([place], NOT_SHARED)
        held.enter_context(_about(name, asking.title))
        held.enter_context(_kept_to(first))
        yield


@contextlib.contextmanager
def for_virtual_time(name: str, most: int, asking: Asking) -> Iterator[list[int]]:
    """Holds up to `most` processors that no other experiment has, the last processor first, and yields their numbers.
    If every processor is taken, holds one shared processor. Raises RunError.
    """
    every = sorted(os.sched_getaffinity(0))
    with contextlib.ExitStack() as held:
        with _turn(name, asking) as queue:
            while not (processors := _free_processors(held, name, most)):
                in_real_time = [name] if name in _sockets(name) else []
                places = [place for _, place in _places(name)]
                queue.wait_for(in_real_time + places, NOT_SHARED if in_real_time else FULL)
        held.enter_context(_about(name, asking.title))
        others = every[REAL_TIME_PROCESSORS:]
        held.enter_context(_kept_to(others if {*processors} <= {*others} else every))
        yield processors


def _free_processors(held: contextlib.ExitStack, name: str, most: int) -> list[int]:
    processors: list[int] = []
    every = len(os.sched_getaffinity(0))
    for at, (number, place) in enumerate(_places(name)):
        if len(processors) == most or (processors and at >= every):  # from here on, places are shared
            break
        if _taken(held, place):
            processors.append(number)
    return processors


def _places(name: str) -> list[tuple[int, str]]:
    """Processors with the names of their locks. The names for the first experiment on each processor come first."""
    processors = sorted(os.sched_getaffinity(0), reverse=True)
    return [(number, f"{name}-{number}-{share}") for share in range(MOST_SHARE) for number in processors]


def _taken(held: contextlib.ExitStack, place: str) -> bool:
    """Takes the lock `place` until the end of `held`; returns False if another experiment has it."""
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        holder.bind(place)
    except OSError as error:
        holder.close()
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    holder.listen(socket.SOMAXCONN)  # connections of those who wait stay in this queue: nobody accepts them
    held.enter_context(holder)
    return True


@contextlib.contextmanager
def _kept_to(processors: list[int]) -> Iterator[None]:
    """Keeps this thread, and what it starts, to `processors`."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, processors)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def _about(name: str, title: str) -> Iterator[None]:
    """Tells those who will wait for this process what it runs, and since when."""
    with contextlib.ExitStack() as held:
        _taken(held, f"{name}/{os.getpid()}/{time.time():.0f}/{re.sub('[^A-Za-z0-9.:-]', '_', title)[:MOST_TITLE]}")
        yield


@contextlib.contextmanager
def _turn(name: str, asking: Asking) -> Iterator[_Queue]:
    """Yields when everybody who came earlier has processors. At the end of the body it is the next one's turn."""
    with contextlib.ExitStack() as held, _about(name, asking.title):
        mine = f"{name}+{time.time_ns():020}+{os.getpid()}"
        _taken(held, mine)
        queue = _Queue(name, asking)
        while earlier := [ticket for ticket in _sockets(f"{name}+") if ticket < mine]:
            queue.wait_for([max(earlier)], CAME_FIRST)
        yield queue


class _Queue:
    def __init__(self, name: str, asking: Asking) -> None:
        self._name = name
        self._asking = asking
        self._said: set[str] = set()

    def wait_for(self, places: list[str], why: str) -> None:
        """Returns when the holder of one of `places` may have ended. Names the holder of the first lock that is held,
        once. Raises RunError if this experiment does not wait.
        """
        with contextlib.ExitStack() as connections:
            ends, most_s, holder = select.poll(), None, ""
            for place in places:
                waiting = connections.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                waiting.setblocking(False)
                try:
                    waiting.connect(place)
                except BlockingIOError:  # the queue of the holder's socket is full
                    most_s = LOOK_AGAIN_S
                except ConnectionRefusedError:  # the lock is free, or its holder is between bind and listen
                    time.sleep(LOOK_AGAIN_S)
                    return
                else:
                    holder = holder or self._holder(waiting)
                    ends.register(waiting, 0)
            holder = holder or "an unknown process"
            if ends.poll(1000 * LOOK_AGAIN_S):  # the sockets of a process that ends are closed one after another
                return
            if not self._asking.wait:
                raise RunError(f"another experiment is running: {holder}; {why}: wait until it ends, or leave WAIT out")
            if holder not in self._said:
                say(f"waiting for {holder}: {why}")
                self._said.add(holder)
            ends.poll(most_s and 1000 * most_s)

    def _holder(self, connection: socket.socket) -> str:
        """The process that listens, as the kernel reports it, with what the process tells about itself."""
        pid, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        try:
            user = pwd.getpwuid(uid).pw_name
        except KeyError:
            user = f"user {uid}"
        about = max(_sockets(f"{self._name}/{pid}/"), default="")
        _, _, since, title = about.split("/", 3) if re.fullmatch(r"[^/]*/\d+/\d{1,12}/.+", about) else ("", "", "", "")
        if not title:
            return f"a process (pid {pid}, {user})"
        return f"{title} (pid {pid}, {user}, since {time.strftime('%F %T', time.localtime(int(since)))})"


def _sockets(start: str) -> set[str]:
    """The abstract names that begin with `start`."""
    lines = UNIX_SOCKETS.read_text(errors="replace").splitlines()
    shown = "@" + start.removeprefix("\0")
    return {"\0" + name[1:] for line in lines if (name := line.rpartition(" ")[2]).startswith(shown)}
