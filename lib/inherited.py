# SPDX-License-Identifier: MIT
"""What a command inherits from the process that starts it: open files, limits, memory control groups, the locale, the
directory for temporary files. Everything is examined here, before the command begins. `python3 -m lib.inherited` also
examines the checkout's path; make calls it before it builds anything. Standard library only.
"""

from __future__ import annotations

import os
import re
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lib import memory_group
from lib.errors import fail

MIB = 1 << 20
REPLACED = {"LC_ALL": "C.UTF-8", "MPLBACKEND": "agg"}  # a locale or a module that this machine may not have
TEMPORARY = ("TMPDIR", "TEMP", "TMP")  # the first that is set names the directory (iperf3, gcc and Python)
LEAST_FREE_BYTES = 4 * MIB  # in that directory
LEAST_MEMORY_BYTES = 256 * MIB  # of Python with its packages
CHECKOUT = Path(__file__).resolve().parents[1]
PATH = re.compile(r"[\w./+,@-]+")  # other characters have a meaning for make or a shell


class Limit(NamedTuple):
    """A limit of the process (setrlimit(2)), and the least value with which every command works."""

    resource: int
    option: str  # of ulimit
    of: str
    least: int
    unit: str = "KiB"  # of ulimit; '': a count


LIMITS = (
    Limit(resource.RLIMIT_AS, "-v", "address space", 4 << 20),
    Limit(resource.RLIMIT_DATA, "-d", "data segment", 2 << 20),
    Limit(resource.RLIMIT_STACK, "-s", "stack", 1 << 10),
    Limit(resource.RLIMIT_FSIZE, "-f", "size of a file", 4 << 20),
    Limit(resource.RLIMIT_NOFILE, "-n", "number of open files", 128, ""),
    Limit(resource.RLIMIT_NPROC, "-u", "number of processes", 64, ""),
)


def settle() -> None:
    """Replaces what the command could not work with: a locale that is not installed, or is not in UTF-8; Matplotlib's
    backend; an empty name of a directory; a closed standard input or standard error.
    """
    for name, value in REPLACED.items():
        if os.environ.get(name) != value:  # a program that another thread is starting would find half an environment
            os.environ[name] = value
    for name in TEMPORARY:
        if os.environ.get(name) == "":
            del os.environ[name]
    for descriptor, mode in ((0, "r"), (2, "w")):
        if not _is_open(descriptor):
            file = os.open(os.devnull, os.O_RDWR)
            if file != descriptor:
                os.dup2(file, descriptor)
                os.close(file)
            os.set_inheritable(descriptor, True)  # programs that the command starts would open other files there
            setattr(sys, ("stdin", "", "stderr")[descriptor], os.fdopen(descriptor, mode, closefd=False))


def problems() -> list[str]:
    """A line for each thing that no command can work with."""
    closed = [] if _is_open(1) else ["standard output is closed; allowed: a file, a pipe, a terminal or /dev/null"]
    return [*closed, *_limits(), *_memory()]


def temporary_problem() -> str | None:
    """Why programs that a command starts could not make temporary files; None if they can. Python itself would take
    another directory.
    """
    name = next((name for name in TEMPORARY if os.environ.get(name)), "")
    directory = Path(os.environ.get(name) or "/tmp")
    problem = _unfit(directory)
    if not problem:
        return None
    shown = f"{name}={directory}" if name else f"{directory}, for temporary files,"
    return (
        f"{shown} {problem}; allowed: a directory that you may write to, with {LEAST_FREE_BYTES // MIB} MiB free: "
        f"{f'unset {name}, or ' if name else ''}name one with {name or TEMPORARY[0]}=DIRECTORY in the environment"
    )


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _limits() -> Iterator[str]:
    for limit in LIMITS:
        soft, _ = resource.getrlimit(limit.resource)
        value = soft >> 10 if limit.unit else soft
        if soft != resource.RLIM_INFINITY and value < limit.least:
            yield (
                f"the limit of the {limit.of} (ulimit {limit.option}) is {value} {limit.unit}".rstrip()
                + f"; allowed: {limit.least} or more: raise it (ulimit {limit.option} {limit.least}), or start the "
                "command from a shell without it"
            )


def _memory() -> Iterator[str]:
    for group in memory_group.limited():
        if group.free_bytes < LEAST_MEMORY_BYTES:
            yield (
                f"the memory control group {group.directory} has {group.free_bytes // MIB:,} of "
                f"{group.limit_bytes // MIB:,} MiB free; allowed: {LEAST_MEMORY_BYTES // MIB} MiB or more: raise its "
                "limit, or end other programs in it"
            )


def _unfit(directory: Path) -> str:
    """Why the directory cannot hold temporary files; '' if it can."""
    if not directory.is_absolute():
        return "is not an absolute path"
    try:
        if not directory.is_dir():
            return "is not a directory"
        if not os.access(directory, os.W_OK | os.X_OK):
            return "is a directory that you may not write to"
        figures = os.statvfs(directory)
    except OSError as error:
        return f"cannot be used: {error.strerror}"
    free = figures.f_bavail * figures.f_frsize
    if free < LEAST_FREE_BYTES or (figures.f_files and not figures.f_favail):
        return f"is full ({free / MIB:.1f} MiB and {figures.f_favail} inodes free)"
    return ""


def path_problems(*places: Path) -> list[str]:
    """A line for each directory in which make could not build."""
    return [
        f"{str(path)!r} cannot be the path of a checkout or of its builds: make and shells would divide it; allowed: "
        "letters, digits and . _ - + , @: move the checkout, or clone it to another directory"
        for path in places
        if not PATH.fullmatch(str(path))
    ]


if __name__ == "__main__":
    settle()
    if said := [*path_problems(CHECKOUT), *problems(), *filter(None, [temporary_problem()])]:
        sys.exit(fail(said))
