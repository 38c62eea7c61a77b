# SPDX-License-Identifier: MIT
"""What a results directory has: its runs and sweeps, their size and age, and whether a command is writing to one. No
link is followed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from lib.leftovers import is_locked
from runs.names import ABORTED, ENVIRONMENT, JOB_NAME, PLAN, REPETITION_NAME, SPEC_FILE, SUMMARY, SWEEP_RUNS

OF_A_REPETITION = (SPEC_FILE, ENVIRONMENT, SUMMARY, ABORTED)  # one of them is there soon after a repetition began


class Used(NamedTuple):
    """The room on disk, and when the newest file was written (CLOCK_REALTIME)."""

    bytes: int
    newest_ns: int


def entries(results: Path) -> list[Path]:
    """The runs and sweeps in a directory, by name, analysed or not. Raises OSError."""
    with os.scandir(results) as found:
        paths = [Path(each.path) for each in found if each.is_dir(follow_symlinks=False) and each.name[0] != "."]
    return sorted(path for path in paths if is_sweep(path) or is_run(path))


def is_run(path: Path) -> bool:
    return bool(repetitions(path))


def repetitions(run: Path) -> list[Path]:
    """The directories of a run's repetitions, finished or not, in order."""
    named = {int(match[1]): each for each in _directories(run) if (match := REPETITION_NAME.fullmatch(each.name))}
    return [
        named[number] for number in sorted(named) if any((named[number] / name).is_file() for name in OF_A_REPETITION)
    ]


def is_sweep(path: Path) -> bool:
    return (path / PLAN).is_file() or any(is_run(job) for job in jobs(path))


def jobs(sweep: Path) -> list[Path]:
    """The directories of a sweep's jobs that have begun."""
    place = sweep / SWEEP_RUNS
    return [each for each in _directories(place) if JOB_NAME.fullmatch(each.name)] if not place.is_symlink() else []


def used(path: Path) -> Used:
    """Of a directory with all that it has. Files with several names, such as hard links, count each time."""
    size, newest = 0, 0
    for parent, _, names in os.walk(path):
        for name in (".", *names):
            with suppress(OSError):  # removed meanwhile
                status = os.lstat(f"{parent}/{name}")
                size += 512 * status.st_blocks
                newest = max(newest, 0 if name == "." else status.st_mtime_ns)
    return Used(size, newest)


def written_by(path: Path, itself: bool = True) -> Path | None:
    """A directory in `path`, or `itself`, that a running command has locked; None without one."""
    below = (Path(parent) for parent, _, _ in os.walk(path))
    return next((place for place in below if (itself or place != path) and is_locked(place)), None)


def _directories(parent: Path) -> Iterator[Path]:
    with suppress(OSError), os.scandir(parent) as found:
        yield from [Path(each.path) for each in found if each.is_dir(follow_symlinks=False)]
