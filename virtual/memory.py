# SPDX-License-Identifier: MIT
"""Before the boot: which directory holds a machine's memory, and whether it has enough space.

The kernel's memory is a sparse unnamed file in a directory of the host (arch/um/os-Linux/mem.c). If the directory's
file system is full, the next touch of a new page raises SIGBUS. Eventually a machine touches nearly all its memory,
because free memory becomes page cache. So the whole size must be free, plus the memory that other machines may still
touch.

The directory is a tmpfs if one has room, else the directory that TMPDIR names. TMPDIR is not the first choice: GNU
parallel, Slurm and PAM set it, too, for files that may be on a slow disk.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lib import memory_group

TMPFS = "tmpfs"
MIB = 1 << 20
EXTRA_MIB = 16  # page tables and the kernel's own image
VARIABLE = "TMPDIR"
DEFAULT, FALLBACK = Path("/dev/shm"), Path("/tmp")
CANDIDATES = (DEFAULT, FALLBACK, Path("/var/tmp"))
MARK = b"bufferscope.seed="  # in the command line of each of our machines
PROC = Path("/proc")


class Room(NamedTuple):
    """Space for machines' memory: the free MiB, and the part of these MiB that running machines may still take."""

    free_mib: int
    promised_mib: int
    of: str  # the owner of the space, for messages


class NoRoomError(Exception):
    """No directory can hold the memory; the message is one line, with the remedy."""


def place(needed_mib: int, machines: int = 1, beside_mib: int = 0) -> Path:
    """The directory for the memory of `machines` machines of `needed_mib` each. In a control group also `beside_mib`
    for the programs beside each machine must be free. Raises NoRoomError.
    """
    if shortage := group_problem(machines * (needed_mib + EXTRA_MIB + beside_mib)):
        raise NoRoomError(shortage)
    problems = []
    for directory in _allowed():
        problem = _problem(directory, needed_mib, machines)
        if problem is None:
            return directory
        problems.append(problem)
    raise NoRoomError("; ".join([*problems, _advice(needed_mib, machines)]))


def problem(needed_mib: int, machines: int = 1, beside_mib: int = 0) -> str | None:
    """Why `machines` machines of `needed_mib` each do not fit now, and the remedy; None: they fit."""
    try:
        place(needed_mib, machines, beside_mib)
    except NoRoomError as error:
        return str(error)
    return None


def group_problem(wanted_mib: int) -> str | None:
    """Why `wanted_mib` do not fit into the memory control groups of this process; None: they fit. Machines of other
    groups take nothing from them.
    """
    for group in memory_group.limited(PROC / "self"):
        inside = [process for process in _machines() if group.directory in memory_group.directories(process)]
        promised_mib = sum(_promised_mib(process) for process in inside)
        if group.free_bytes // MIB - promised_mib < wanted_mib:
            return (
                f"{wanted_mib:,} MiB of memory are needed; the memory control group {group.directory} has "
                f"{group.free_bytes // MIB:,} of {group.limit_bytes // MIB:,} free{_others(promised_mib)}: raise the "
                "limit of this container, service or batch job"
            )
    return None


def _others(promised_mib: int) -> str:
    return f", of which other virtual machines may take {promised_mib:,}" if promised_mib else ""


def _allowed() -> list[Path]:
    """The directories that may hold the memory, the best first."""
    fast = [path for path in (DEFAULT, FALLBACK) if _file_system(path) == TMPFS]
    asked = os.environ.get(VARIABLE)
    return list(dict.fromkeys([*fast, *([Path(asked)] if asked else [])])) or [FALLBACK]


def _problem(directory: Path, needed_mib: int, machines: int) -> str | None:
    """Why `directory` cannot hold the memory; None if it can."""
    shown = f"{directory} (from {VARIABLE})" if os.environ.get(VARIABLE) == str(directory) else str(directory)
    if unfit := _unfit(directory):
        return f"{shown} cannot hold the memory of a virtual machine: {unfit}"
    wanted_mib = machines * (needed_mib + EXTRA_MIB)
    for room in _rooms(directory):
        if room.free_mib - room.promised_mib < wanted_mib:
            at_once = f" for {machines} at once" if machines > 1 else ""
            return (
                f"{shown} is too small for the memory of the virtual machine: {wanted_mib:,} MiB are needed{at_once}, "
                f"{room.of} has {room.free_mib:,} free{_others(room.promised_mib)}"
            )
    return None


def _unfit(directory: Path) -> str | None:
    """Why a directory cannot hold a machine's memory, whatever its free space; None if it can."""
    if not directory.is_dir():
        return "no such directory"
    if not os.access(directory, os.W_OK | os.X_OK):
        return "you may not write there"
    if os.statvfs(directory).f_flag & os.ST_NOEXEC:
        return "it is mounted noexec, and programs run from that memory"
    return None


def _rooms(directory: Path) -> Iterator[Room]:
    """The file system's space; for a tmpfs, also this computer's free memory and swap space."""
    promised_mib = sum(_promised_mib(process, directory) for process in _machines())
    figures = os.statvfs(directory)
    yield Room(figures.f_bavail * figures.f_frsize // MIB, promised_mib, "its file system")
    if _file_system(directory) == TMPFS:
        meminfo = dict(re.findall(r"^(\w+): +(\d+) kB$", (PROC / "meminfo").read_text(), re.MULTILINE))
        free_kib = int(meminfo.get("MemAvailable", 0)) + int(meminfo.get("SwapFree", 0))
        yield Room(free_kib >> 10, promised_mib, "this computer's memory, which this tmpfs uses,")


def _advice(needed_mib: int, machines: int) -> str:
    """Names a directory with enough space, if this computer has one."""
    for path in CANDIDATES:
        if path not in _allowed() and _problem(path, needed_mib, machines) is None:
            slower = "" if _file_system(path) == TMPFS else ", on a disk and slower"
            return f"make room, or choose another directory: {VARIABLE}={path} (in the environment{slower})"
    return f"make room, or choose another directory with {VARIABLE}=DIRECTORY in the environment"


def _machines() -> list[Path]:
    """/proc directories of all our running kernels, of all users.

    A kernel's user-space processes have the same command line; the kernel itself is the leader of their session.
    """
    machines = []
    for path in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # the process has just ended
            leads = (path / "stat").read_text().rpartition(")")[2].split()[3] == path.name
            if leads and MARK in (path / "cmdline").read_bytes():
                machines.append(path)
    return machines


def _promised_mib(process: Path, directory: Path | None = None) -> int:
    """The MiB of `directory`, or of any directory, that a running kernel may still take."""
    try:
        memory = re.search(rb"\0mem=(\d+)M\0", (process / "cmdline").read_bytes())
        shared = re.search(r"^RssShmem:\s+(\d+) kB", (process / "status").read_text(), re.MULTILINE)
    except OSError:
        return 0
    with contextlib.suppress(OSError):  # another user's environment is unreadable: assume this directory
        words = (process / "environ").read_bytes().split(b"\0")
        its_directory = b"%s=%s" % (VARIABLE.encode(), os.fsencode(directory or ""))
        if directory and words != [b""] and its_directory not in words:
            return 0
    taken_mib = int(shared[1]) >> 10 if shared else 0
    return max(0, int(memory[1]) - taken_mib) if memory else 0


def _file_system(directory: Path) -> str:
    """Type of the file system that holds `directory`; empty if unknown."""
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
