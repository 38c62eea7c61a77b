# SPDX-License-Identifier: MIT
"""Which file system is full. A program that dies of that can often not say so: its log is there, too. Standard library
only, because it also runs on remote hosts.
"""

from __future__ import annotations

import os
from pathlib import Path

# The collector and the sink take a block of 1 MiB off again that did not fit: so much may be free on a full disk.
LEAST_FREE_BYTES = 2 << 20


def full(path: Path) -> str:
    """The file system of `path` with its sizes where there is no room left; '' where there is, or nobody knows."""
    try:
        figures = os.statvfs(path)
        free, total = figures.f_bavail * figures.f_frsize, figures.f_blocks * figures.f_frsize
        names_left = figures.f_favail or not figures.f_files  # some file systems do not count them
        if free >= LEAST_FREE_BYTES and names_left:
            return ""
        sizes = f"{free / 2**20:.1f} of {total / 2**20:.1f} MiB free"
        sizes += "" if names_left else f", none of {figures.f_files} inodes"
        return f"the file system at {_mount_point(path)} is full: {sizes}"
    except OSError:
        return ""


def _mount_point(path: Path) -> Path:
    """The uppermost directory above `path` that is on the same file system."""
    place = path.resolve()
    while place.parent != place and place.parent.stat().st_dev == place.stat().st_dev:
        place = place.parent
    return place
