# SPDX-License-Identifier: MIT
"""Run directories: `results/<UTC>-<name>/rep-<k>/`, never overwritten; `results/latest` is the newest complete run.

A repetition is recorded when it has environment.json, and complete when it has summary.json. The digests of its raw
files (digests.json) are written before environment.json. A repetition that ended before it was recorded gets the file
ABORTED (aborted.py). If the runner was killed, the next run writes ABORTED, and names each repetition that was
recorded but not analysed. Every running run holds a lock on its directory, and the kernel releases the lock when the
run's last process ends; an unfinished run without a lock was killed. So several experiments may run in one results
directory, if the machine has the processors (experiments/machine/reservation.py).

Users may share a results directory, and one of them may be root. Directories themselves are locked: a lock file would
have an owner, who could keep others out. Each run marks and names only the runs of its own user.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shlex
import time
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

from lib import files, owner
from lib.errors import RunError
from lib.terminal import complain, one_line
from runs import aborted
from runs import record as digests
from runs.aborted import Cause
from runs.names import ABORTED, ENVIRONMENT, LATEST, PLACE, SUMMARY, SWEEP_RUNS


@contextlib.contextmanager
def locked(results: Path) -> Iterator[None]:
    """Marks the repetitions of killed runners, and holds the lock of `results` while the body makes a run directory.

    Raises RunError if `results` cannot hold results.
    """
    with contextlib.ExitStack() as held:
        try:
            lock = held.enter_context(files.directory(results, follow=True, make=True))
            if not os.access(".", os.R_OK | os.W_OK | os.X_OK, dir_fd=lock):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            raise RunError(f"{results} cannot hold results: {one_line(error)}; choose another with RESULTS=") from None
        fcntl.flock(lock, fcntl.LOCK_EX)
        mark_killed(results)
        yield


@contextlib.contextmanager
def running(run: Path) -> Iterator[None]:
    """Marks the run as running while the body, or a process forked in it, runs."""
    with files.directory(run) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_running(run: Path) -> bool:
    """Whether a runner, or a process that it started, still works on this run."""
    try:
        with files.directory(run) as lock:
            return _is_locked(lock)
    except OSError:  # not there
        return False


def _is_locked(directory: int) -> bool:
    try:
        fcntl.flock(directory, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(directory, fcntl.LOCK_UN)
    return False


def _ended(results: Path) -> Iterator[tuple[Path, int]]:
    """The repetitions of this user's ended experiments (not of sweeps), each with a descriptor of its directory."""
    for run in sorted(results.iterdir()):
        with contextlib.suppress(OSError), files.directory(run) as within:
            with os.scandir(within) as entries:
                names = sorted(entry.name for entry in entries if entry.name.startswith("rep-"))
            if not names or not owner.is_ours(within) or _is_locked(within):
                continue
            for name in names:
                with contextlib.suppress(OSError), files.directory(name, within) as repetition:
                    yield run / name, repetition


def mark_killed(results: Path) -> list[Path]:
    """Marks each repetition that was killed with its runner. Returns the marked repetitions."""
    marked = []
    for path, repetition in _ended(results):
        if not any(files.exists(name, repetition) for name in (ENVIRONMENT, ABORTED)):
            with contextlib.suppress(OSError):  # this user may not write to the directory
                _mark(repetition, Cause.KILLED, "the runner was killed before the end")
                marked.append(path)
    return marked


def unanalysed(results: Path) -> list[Path]:
    """Repetitions of ended experiments, recorded to their end but without a summary."""
    return [
        path
        for path, repetition in _ended(results)
        if files.exists(ENVIRONMENT, repetition)
        and not any(files.exists(name, repetition) for name in (ABORTED, SUMMARY))
    ]


def record(repetition: Path, world: dict[str, Any]) -> None:
    """Ends the recording of a repetition whose raw files are closed: the digests of all of them, then ENVIRONMENT. To
    `world` it adds the repetition's path below the results directory.
    """
    of_sweep = repetition.parent.parent.name == SWEEP_RUNS
    place = PurePath(*repetition.parts[-4 if of_sweep else -2 :])
    data = files.as_json(world | {digests.MARK: True, PLACE: str(place)})
    digests.write_raw(repetition, {ENVIRONMENT: data})
    with files.replacing(repetition / ENVIRONMENT) as file:
        file.write(data)


def replay_command(directory: Path) -> str:
    """The command that analyses `directory` again, quoted for a shell."""
    return f"make replay {shlex.quote(f'RUN={directory}')}"


def is_recorded(repetition: Path) -> bool:
    """Whether a repetition's raw files are complete, so that it can be analysed."""
    return (repetition / ENVIRONMENT).exists()


def create(results: Path, name: str, now_s: float) -> Path:
    """A new directory for a run that starts at `now_s` (CLOCK_REALTIME). Runs of the same second get numbers."""
    stem = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(now_s))}-{name}"
    for number in range(1, 1000):
        path = results / (stem if number == 1 else f"{stem}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise RunError(f"cannot make {path}: {one_line(error)}") from None
        owner.give(path)
        return path
    raise RunError(f"cannot make {results / stem}: it and 998 others of its name exist; remove some")


def repetition_path(run: Path, number: int) -> Path:
    """The directory of repetition `number` (from 1)."""
    return run / f"rep-{number}"


def create_repetition(run: Path, number: int) -> Path:
    """Makes the directory of repetition `number`, with its directory of logs."""
    directory = repetition_path(run, number)
    directory.mkdir()
    (directory / "logs").mkdir()
    owner.give(directory)
    return directory


def abort(repetition: Path, cause: Cause, reason: str) -> None:
    """Marks a repetition as aborted. On a full disk only the mark remains: an empty file takes no block."""
    with files.directory(repetition) as directory:
        _mark(directory, cause, reason)


def _mark(repetition: int, cause: Cause, reason: str) -> None:
    mark = files.open_regular(ABORTED, os.O_WRONLY | os.O_CREAT, repetition)
    try:
        os.ftruncate(mark, 0)
        with contextlib.suppress(OSError):
            os.write(mark, aborted.text(cause, reason).encode())
    finally:
        os.close(mark)


def latest_problem(results: Path) -> str | None:
    """Why `results/latest` cannot become a link to a run; None if it can. Also checked before the run."""
    link = results / LATEST
    if link.exists() and not link.is_symlink():
        return f"{link} is not a link, so it stays as it is; move it away"
    return None


def point_latest(results: Path, run: Path) -> None:
    """Makes `results/latest` a link to `run`, in one step. Raises RunError for a file or directory of that name."""
    problem = latest_problem(results)
    if problem:
        raise RunError(problem)
    try:
        files.link(results / LATEST, run.name)
        owner.give(results / LATEST)
    except OSError as error:  # a sticky directory, and the link is another user's
        complain(f"note: {results / LATEST} does not lead to this run: {one_line(error)}")
