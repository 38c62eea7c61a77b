# SPDX-License-Identifier: MIT
"""The memory control groups (cgroups, version 1 or 2) of a process. A container, a service or a batch job may have less
memory than its machine: the kernel then kills a process of the group although the machine has free memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")
LIMITS = ("memory.max", "memory.high", "memory.limit_in_bytes")  # the kernel throttles a group above memory.high
USED = ("memory.current", "memory.usage_in_bytes")
# Memory that the kernel reclaims before it kills: cached files. In version 1 the names with total_ include subgroups.
RECLAIMED = ("inactive_file", "active_file", "slab_reclaimable", "total_inactive_file", "total_active_file")
UNLIMITED_BYTES = 1 << 60  # version 1 has a number near 2^63 for "no limit"


class Group(NamedTuple):
    """A group with a limit, and the part of the limit that is still free."""

    directory: Path
    limit_bytes: int
    free_bytes: int


def limited(process: Path = PROC / "self") -> Iterator[Group]:
    """The groups of a process that have a limit, the innermost first. `process` is its directory in /proc."""
    for directory in directories(process):
        limits = [limit for name in LIMITS if (limit := _number(directory / name)) is not None]
        used = next((bytes_ for name in USED if (bytes_ := _number(directory / name)) is not None), None)
        if limits and used is not None and min(limits) < UNLIMITED_BYTES:
            yield Group(directory, min(limits), max(0, min(limits) - used + _reclaimed(directory)))


def directories(process: Path) -> list[Path]:
    """The directories of the process's memory groups, the innermost first; none if the process has ended, or if the
    system has no groups. Some may not exist: a container sees its own group as the root.
    """
    try:
        lines = (process / "cgroup").read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        number, controllers, name = line.split(":", 2)
        if number == "0" or "memory" in controllers.split(","):
            root = CGROUPS if number == "0" else CGROUPS / "memory"
            path = root / name.lstrip("/")
            found += [path, *(parent for parent in path.parents if parent.is_relative_to(root))]
    return found


def _reclaimed(directory: Path) -> int:
    words = [line.split() for line in (directory / "memory.stat").read_text().splitlines()]
    counts = {name: int(value) for name, value in words}
    has_totals = "total_inactive_file" in counts
    return sum(counts.get(name, 0) for name in RECLAIMED if name.startswith("total_") == has_totals)


def _number(file: Path) -> int | None:
    """The number in a file of a group; None for `max`, and without such a file."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None
