# SPDX-License-Identifier: MIT
"""Reserves one processor for the switch, because no other program of the lab may delay it.

In a kernel without preemption the switch wakes up only after the system call of another program on its processor has
ended, up to several ms later. Every program that is started in the cell inherits the other processors.
"""

from __future__ import annotations

import os
from pathlib import Path


def keep_one_free() -> dict[str, list[int]]:
    """Takes the last processor from this process and from the children that it starts from now on. Returns the
    processors of the switch and of all other programs. If there is only one processor, all share it.
    """
    every = sorted(os.sched_getaffinity(0))
    if len(every) == 1:
        return {"switch": every, "others": every}
    os.sched_setaffinity(0, every[:-1])
    return {"switch": every[-1:], "others": every[:-1]}


def move(pid: int, processors: list[int]) -> None:
    """Moves a process and its descendants, with all their threads, to `processors`. Raises OSError if one of them has
    ended.
    """
    for thread in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), processors)
        for child in (thread / "children").read_text().split():
            move(int(child), processors)
