# SPDX-License-Identifier: MIT
"""Before the boot: whether this computer and the control group have enough memory for a machine.

The kernel's memory is a memfd of the host, sparse and without a directory
(kernel/patches/memory-without-directory.patch). If the host has no page left, it ends the machine or another program.
Eventually a machine touches nearly all its memory, because free memory becomes page cache. So the whole size must be
free, plus the memory that other machines may still touch.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from lib import memory_group

MIB = 1 << 20
EXTRA_MIB = 16  # page tables and the kernel's own image
MARK = b"bufferscope.seed="  # in the command line of each of our machines
PROC = Path("/proc")


def problem(needed_mib: int, machines: int = 1, beside_mib: int = 0) -> str | None:
    """Why `machines` machines of `needed_mib` each do not fit now, and the remedy; None: they fit. In a control group
    also `beside_mib` for the programs beside each machine must be free.
    """
    if shortage := group_problem(machines * (needed_mib + EXTRA_MIB + beside_mib)):
        return shortage
    wanted_mib = machines * (needed_mib + EXTRA_MIB)
    promised_mib = sum(map(_promised_mib, _machines()))
    free_mib = _free_mib()
    if free_mib - promised_mib >= wanted_mib:
        return None
    at_once = f" for {machines} at once" if machines > 1 else ""
    return (
        f"this computer has too little memory for the virtual machine: {wanted_mib:,} MiB are needed{at_once}, and "
        f"{free_mib:,} are free{_others(promised_mib)}: end other programs, or add swap space (swapon)"
    )


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


def _free_mib() -> int:
    """This computer's free memory and swap space."""
    meminfo = dict(re.findall(r"^(\w+): +(\d+) kB$", (PROC / "meminfo").read_text(), re.MULTILINE))
    return (int(meminfo.get("MemAvailable", 0)) + int(meminfo.get("SwapFree", 0))) >> 10


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


def _promised_mib(process: Path) -> int:
    """The MiB that a running kernel may still take."""
    try:
        memory = re.search(rb"\0mem=(\d+)M\0", (process / "cmdline").read_bytes())
        shared = re.search(r"^RssShmem:\s+(\d+) kB", (process / "status").read_text(), re.MULTILINE)
    except OSError:
        return 0
    taken_mib = int(shared[1]) >> 10 if shared else 0
    return max(0, int(memory[1]) - taken_mib) if memory else 0
