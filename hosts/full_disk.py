# SPDX-License-Identifier: MIT
"""Names a full file system, for error messages. A program that fails for lack of space often cannot log the reason,
because its log is on the same file system. Standard library only, because this module also runs on remote hosts.
"""

from __future__ import annotations

import os
from pathlib import Path

# A collector or sink that cannot write a whole block of up to 1 MiB removes the part that it wrote, so a disk that was
# full may have up to 1 MiB free again.
LEAST_FREE_BYTES = 2 << 20


def full(path: Path) -> str:
    """A clause that names the file system of `path` if it is full; '' if it has room, or if statvfs fails."""
    try:
        figures = os.statvfs(path)
        free, total = figures.f_bavail * figures.f_frsize, figures.f_blocks * figures.f_frsize
        names_left = figures.f_favail or not figures.f_files  # some file systems do not count inodes
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
