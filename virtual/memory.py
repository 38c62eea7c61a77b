# SPDX-License-Identifier: MIT
"""Where a machine's memory is kept, and whether there is room for it: asked before the boot.

The kernel takes its memory as a file without a name in a directory of the host's (arch/um/os-Linux/mem.c), of which
only what was touched exists. When the directory is full, the next touch is a SIGBUS. In the end a machine touches
nearly all: what it does not need otherwise it uses as a cache of files. So all of it must be there, and what other
machines may still touch, too.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TMPFS = "tmpfs"
MIB = 1 << 20
EXTRA_MIB = 16  # tables of the pages, the kernel's own image
VARIABLE = "TMPDIR"  # the only one that is handed on to the kernel
DEFAULT, FALLBACK = Path("/dev/shm"), Path("/tmp")
CANDIDATES = (DEFAULT, FALLBACK, Path("/var/tmp"))
MARK = b"bufferscope.seed="  # in the command line of each of our machines
PROC = Path("/proc")


class Room(NamedTuple):
    """What a directory has for machines' memory: MiB that are free, and those of them that others may still take."""

    free_mib: int
    promised_mib: int
    of: str  # whose room it is, for a message


def place(environment: dict[str, str] | os._Environ[str] = os.environ) -> Path:
    """The directory that the kernel will choose, as its choose_tempdir() does with what it is handed."""
    own = environment.get(VARIABLE)
    if own:
        return Path(own)
    return next((path for path in (DEFAULT, FALLBACK) if _file_system(path) == TMPFS), FALLBACK)


def problem(needed_mib: int, machines: int = 1, directory: Path | None = None) -> str | None:
    """Why `machines` machines of `needed_mib` each cannot have their memory now, and what to do; None if they can."""
    directory = directory or place()
    what = f"{directory} (from {VARIABLE})" if os.environ.get(VARIABLE) == str(directory) else str(directory)
    unfit = _unfit(directory)
    if unfit:
        return f"{what} cannot hold the memory of a virtual machine: {unfit}; {_advice(directory, 0)}"
    wanted_mib = machines * (needed_mib + EXTRA_MIB)
    for room in _rooms(directory):
        if room.free_mib - room.promised_mib < wanted_mib:
            others = f", of which other virtual machines may take {room.promised_mib:,}" if room.promised_mib else ""
            each = f" for {machines} at once" if machines > 1 else ""
            return (
                f"{what} is too small for the memory of the virtual machine: {wanted_mib:,} MiB are needed{each}, "
                f"{room.of} has {room.free_mib:,} free{others}; {_advice(directory, wanted_mib)}"
            )
    return None


def _unfit(directory: Path) -> str | None:
    """What is wrong with a directory, however large it is."""
    if not directory.is_dir():
        return "no such directory"
    if not os.access(directory, os.W_OK | os.X_OK):
        return "you may not write there"
    if os.statvfs(directory).f_flag & os.ST_NOEXEC:
        return "it is mounted noexec, and programs run from that memory"
    return None


def _rooms(directory: Path) -> Iterator[Room]:
    """The file system's room; of one that is memory, this machine's as well."""
    promised_mib = sum(_promised_mib(process, directory) for process in _machines())
    figures = os.statvfs(directory)
    yield Room(figures.f_bavail * figures.f_frsize // MIB, promised_mib, "it")
    if _file_system(directory) == TMPFS:
        found = dict(re.findall(r"^(\w+): +(\d+) kB$", (PROC / "meminfo").read_text(), re.MULTILINE))
        free_kib = int(found.get("MemAvailable", 0)) + int(found.get("SwapFree", 0))
        yield Room(free_kib >> 10, promised_mib, "this computer's memory, in which it lies,")


def _advice(directory: Path, wanted_mib: int) -> str:
    """A place that would do, if this computer has one."""
    for path in CANDIDATES:
        if path == directory or _unfit(path):
            continue
        if all(room.free_mib - room.promised_mib >= wanted_mib for room in _rooms(path)):
            slower = "" if _file_system(path) == TMPFS else ", on a disk and slower"
            return f"make room, or choose another directory: {VARIABLE}={path} (in the environment{slower})"
    return f"make room, or choose another directory with {VARIABLE}=DIRECTORY in the environment"


def _machines() -> list[Path]:
    """/proc directories of all kernels of ours that run now, whoever started them.

    The processes that one runs user space in have its command line, too; the kernel itself leads their session.
    """
    found = []
    for path in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has just ended
            leads = (path / "stat").read_text().rpartition(")")[2].split()[3] == path.name
            if leads and MARK in (path / "cmdline").read_bytes():
                found.append(path)
    return found


def _promised_mib(process: Path, directory: Path) -> int:
    """What one of them may still take of `directory`."""
    try:
        memory = re.search(rb"\0mem=(\d+)M\0", (process / "cmdline").read_bytes())
        shared = re.search(r"^RssShmem:\s+(\d+) kB", (process / "status").read_text(), re.MULTILINE)
    except OSError:
        return 0
    with contextlib.suppress(OSError):  # of another user: it is taken to be here
        words = (process / "environ").read_bytes().split(b"\0")
        own = dict(os.fsdecode(word).split("=", 1) for word in words if b"=" in word)
        if own and place(own) != directory:
            return 0
    taken_mib = int(shared[1]) >> 10 if shared else 0
    return max(0, int(memory[1]) - taken_mib) if memory else 0


def _file_system(directory: Path) -> str:
    """Type of the file system that a path is on; empty if the kernel does not say."""
    best = ("", "")
    try:
        path = str(directory.resolve())
        for line in (PROC / "self/mountinfo").read_text().splitlines():
            before, _, after = line.partition(" - ")
            point = before.split()[4].encode().decode("unicode_escape")
            if (path == point or path.startswith(point.rstrip("/") + "/")) and len(point) >= len(best[0]):
                best = (point, after.split()[0])
    except OSError:
        return ""
    return best[1]
