# SPDX-License-Identifier: MIT
"""Run directories: `results/<UTC>-<name>/rep-<k>/`, never overwritten; `results/latest` is the newest complete run.

A repetition is recorded when it has environment.json, and complete when it has summary.json. The digests of its raw
files (digests.json) are written before environment.json. A repetition that ended before it was recorded gets the file
ABORTED with one line that says why; where even the runner was killed, the next command does that, and names each one
that is recorded but was never analysed. A lock in each run directory, which the kernel takes away with the last process
of the run, tells what looks unfinished and still runs. So several may run in one results directory, as far as the
machine can carry them (machine.py).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analysis import record as digests
from experiments.errors import RunError

LATEST = "latest"
ABORTED = "ABORTED"
STOPPED = "ended by "  # and the name of a signal, in ABORTED: no fault of the run
RECORDED = digests.ENVIRONMENT  # written last of the raw files
SUMMARY = "summary.json"  # written last of all
LOCK = ".lock"


@contextlib.contextmanager
def tended(results: Path) -> Iterator[None]:
    """Marks what a killed experiment left, and keeps others from beginning one here until the body has: a moment.

    Raises RunError if `results` cannot hold any.
    """
    try:
        results.mkdir(parents=True, exist_ok=True)
        file = (results / LOCK).open("a")
    except OSError as error:
        raise RunError(f"{results} cannot hold results: {error.strerror}; choose another with RESULTS=") from None
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        mark_killed(results)
        yield


@contextlib.contextmanager
def running(run: Path) -> Iterator[None]:
    """While the body runs, or any process that was forked in it, so does the experiment: nobody takes it for killed."""
    lock = run / LOCK
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def is_running(run: Path) -> bool:
    """Whether a runner, or a process of its, still works on this run."""
    try:
        with (run / LOCK).open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no lock: it came to its end
        return False
    return False


def _left(results: Path) -> Iterator[Path]:
    """Repetitions of experiments that run no more."""
    for run in sorted(results.iterdir()):
        if run.name != LATEST and run.is_dir() and not is_running(run):
            yield from (path for path in sorted(run.glob("rep-*")) if path.is_dir())


def mark_killed(results: Path) -> list[Path]:
    """Marks each repetition that ended with its runner. Returns what it marked."""
    marked = []
    for repetition in _left(results):
        if not is_recorded(repetition) and not (repetition / ABORTED).exists():
            with contextlib.suppress(OSError):  # somebody else's
                abort(repetition, "the runner was killed before the end")
                marked.append(repetition)
    return marked


def unanalysed(results: Path) -> list[Path]:
    """Repetitions of experiments that run no more, recorded to their end but without a summary."""
    return [
        repetition
        for repetition in _left(results)
        if is_recorded(repetition) and not any((repetition / name).exists() for name in (ABORTED, SUMMARY))
    ]


def record(repetition: Path, world: dict[str, Any]) -> None:
    """Ends the recording of a repetition whose raw files are closed: the digests of all of them, then RECORDED."""
    data = _json(world | {digests.MARK: True})
    digests.write_raw(repetition, {RECORDED: data})
    _write(repetition / RECORDED, data)


def replay_command(directory: Path) -> str:
    """What analyses `directory` again, ready to be pasted into a shell."""
    return f"make replay {shlex.quote(f'RUN={directory}')}"


def is_recorded(repetition: Path) -> bool:
    """Whether its raw files are complete, so that it can be analysed, now or again."""
    return (repetition / RECORDED).exists()


def create(results: Path, name: str, now_s: float) -> Path:
    """A new directory for a run that starts at `now_s` (CLOCK_REALTIME). A second one in that second gets a number."""
    stem = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(now_s))}-{name}"
    for number in range(1, 1000):
        path = results / (stem if number == 1 else f"{stem}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise RunError(f"cannot make {path}: {error.strerror}") from None
        return path
    raise RunError(f"cannot make {results / stem}: it and 998 others of its name exist; remove some")


def create_repetition(run: Path, number: int) -> Path:
    """The directory of repetition `number` (from 1), with its directory of logs."""
    repetition = run / f"rep-{number}"
    repetition.mkdir()
    (repetition / "logs").mkdir()
    return repetition


def abort(repetition: Path, why: str) -> None:
    """Marks a repetition as aborted. On a full disk the mark alone remains: an empty file takes no block."""
    mark = repetition / ABORTED
    mark.touch()
    with contextlib.suppress(OSError):
        mark.write_text(f"{why}\n")


def latest_problem(results: Path) -> str | None:
    """Why `results/latest` cannot become a link to a run; None if it can. To be asked before the run, too."""
    link = results / LATEST
    if link.exists() and not link.is_symlink():
        return f"{link} is no link, so it stays as it is; move it away"
    return None


def point_latest(results: Path, run: Path) -> None:
    """Makes `results/latest` a link to `run`, in one step. What is there and is no link stays: it is not ours."""
    problem = latest_problem(results)
    if problem:
        raise RunError(problem)
    link, temporary = results / LATEST, results / f".{LATEST}.{os.getpid()}"
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(run.name)
    temporary.replace(link)


def write_json(path: Path, content: Any) -> None:
    """Writes a JSON file whole or not at all."""
    _write(path, _json(content))


def _json(content: Any) -> bytes:
    return (json.dumps(content, indent=1) + "\n").encode()


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
