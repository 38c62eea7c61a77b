# SPDX-License-Identifier: MIT
"""The command `rm`: removes runs and sweeps, or with KEEP= only their large files, after it has said what that frees.

A run to remove is renamed into a scratch directory first, so that after SIGKILL it is either there or gone; the next
`rm`, or `leftovers`, removes the rest. No link is followed, and nothing is touched that a running command has locked.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from analysis.wording.formats import si
from experiments.sweep.thin import thin
from lib import files, owner
from lib.errors import InputError, RunError
from lib.exit_codes import Exit
from lib.keys import Keys, Wrong, field, flag
from lib.terminal import agreed, complain, counted, located, say
from runs import contents, run_table, thinned, verdict
from runs.lock import only_one
from runs.names import LATEST, REPETITION

MOST_LISTED = 20
_AGE = re.compile(r"([0-9]{1,6})(min|h|d|w)")
_SECONDS = {"min": 60, "h": 3600, "d": 86_400, "w": 604_800}


def age_s(value: object) -> int:
    """Raises ValueError."""
    match = _AGE.fullmatch(str(value).strip())
    if not match:
        raise ValueError("is no age; allowed: a whole number of min, h, d or w, as 30d")
    return int(match[1]) * _SECONDS[match[2]]


class Asked(Keys):
    run: Path | None = field("one run or sweep: results/NAME, results/latest")
    older_than: int | None = field("every run and sweep whose newest file is at least that old: 30d, 12h, 2w", age_s)
    results: Path = field("with OLDER_THAN: the directory with the runs", default="results")
    keep: str | None = field(
        "what stays of each analysed run: tables, flows, summary, as a sweep's KEEP; pages stay (default: nothing "
        "stays)", values=thinned.KEEP[1:],
    )  # fmt: skip
    yes: bool = flag("1: remove without asking")

    def check(self, wrong: Wrong) -> None:
        if (self.run is None) == (self.older_than is None):
            wrong("older_than", "or RUN is needed, and only one of them: OLDER_THAN=30d, RUN=results/NAME")


class Chosen(NamedTuple):
    """A run or a sweep, the bytes that its removal frees, and with KEEP the repetitions to thin."""

    path: Path
    bytes: int
    thinned: list[Path]


def run(asked: Asked) -> int:
    """Returns the exit status: DOUBTFUL if something that was asked for stays. Raises InputError, RunError."""
    top, paths = _asked_for(asked)
    busy = {path: place for path in paths if (place := contents.written_by(path))}
    for path, place in busy.items():
        complain(f"{path}: a running command writes to {place}; it stays")
    chosen = [_chosen(path, asked.keep) for path in paths if path not in busy]
    chosen = [each for each in chosen if each.thinned or not asked.keep]
    for each in chosen[:MOST_LISTED]:
        say(f"{each.path}  {si(float(each.bytes), 'B')}")
    if len(chosen) > MOST_LISTED:
        say(f"and {len(chosen) - MOST_LISTED} more")
    if not chosen:
        say("nothing to remove")
        return Exit.DOUBTFUL if busy else Exit.DONE
    sweeps = sum(contents.is_sweep(each.path) for each in chosen)
    what = f"{counted(len(chosen) - sweeps, 'run')} and {counted(sweeps, 'sweep')}"
    kept = sum(len(each.thinned) for each in chosen)
    how = f"keeps the {asked.keep} of {counted(kept, 'repetition')} in" if asked.keep else "removes"
    say(f"{how} {what}: frees {si(float(sum(each.bytes for each in chosen)), 'B')}")
    if not (asked.yes or (answer := agreed("Remove it?"))):
        raise RunError(
            "nothing was removed" if answer is False else "removing needs a yes: add YES=1; nothing was removed"
        )
    try:
        stayed = _thin(chosen, asked.keep) if asked.keep else _remove(top, chosen)
    except OSError as error:
        raise RunError(located(error, top)) from None
    with suppress(OSError):  # a cache, which may be another user's
        run_table.write(top)
    return Exit.DOUBTFUL if stayed or busy else Exit.DONE


def _asked_for(asked: Asked) -> tuple[Path, list[Path]]:
    """The directory with the runs, and the runs and sweeps. Raises InputError."""
    try:
        if asked.run is None:
            before_ns = time.time_ns() - (asked.older_than or 0) * 10**9
            found = contents.entries(asked.results)
            return asked.results, [path for path in found if contents.used(path).newest_ns <= before_ns]
        top, path = asked.run.absolute().parent, asked.run
        if asked.run.is_symlink():  # such as results/latest
            path = asked.run.resolve()
            if path.parent != top.resolve():
                raise InputError(f"{asked.run}: leads out of {asked.run.parent}; allowed: a run itself: {path}")
        if path.name not in {each.name for each in contents.entries(top)}:
            raise InputError(f"{asked.run}: is no run or sweep; allowed: a directory that has rep-1 or runs/")
        return asked.run.parent, [asked.run.parent / path.name]
    except OSError as error:
        raise InputError(f"{located(error, asked.results)}; allowed: a directory with runs") from None


def _chosen(path: Path, keep: str | None) -> Chosen:
    if keep is None:
        return Chosen(path, contents.used(path).bytes, [])
    jobs = [job / REPETITION for job in contents.jobs(path)]
    repetitions = [each for each in jobs if each.is_dir()] or contents.repetitions(path)
    thinner = [each for each in repetitions if _may_thin(each, keep)]
    names = [each / name for each in thinner for name in thinned.REMOVED[keep]]
    return Chosen(path, sum(map(_bytes, names)), thinner)


def _bytes(path: Path) -> int:
    """Of a directory, or a file, which may be missing."""
    if path.is_dir() and not path.is_symlink():
        return contents.used(path).bytes
    return 512 * path.lstat().st_blocks if path.is_file() else 0


def _may_thin(repetition: Path, keep: str) -> bool:
    """Whether a repetition has a summary, and more than `keep` keeps. Without a summary nothing would be left of it."""
    had, order = thinned.kept(repetition), thinned.KEEP.index
    try:
        verdict.read(repetition)
    except (OSError, ValueError) as error:
        complain(f"{repetition}: {verdict.unread(error)}; it stays")
        return False
    return had in thinned.KEEP and order(had) < order(keep)


@contextmanager
def _held(path: Path) -> Iterator[int]:
    """A descriptor of a run or sweep, locked: no command begins there. Raises OSError."""
    with files.claimed(path) as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield held


def _thin(chosen: list[Chosen], keep: str) -> bool:
    """Whether something stayed."""
    stayed = False
    for each in chosen:
        try:
            with _held(each.path):
                for repetition in each.thinned:
                    with only_one(repetition):
                        thin(repetition, keep)
        except (OSError, InputError) as error:
            stayed = True
            complain(located(error, each.path) if isinstance(error, OSError) else str(error))
    return stayed


def _remove(top: Path, chosen: list[Chosen]) -> bool:
    """Whether something stayed. Raises OSError."""
    stayed = False
    with files.directory(top, follow=True) as place, files.scratch(f".removed-{os.geteuid()}.part", place) as trash:
        for each in chosen:
            name = each.path.name
            try:
                with _held(each.path) as held:
                    os.rename(name, name, src_dir_fd=place, dst_dir_fd=trash)
                    moved = os.stat(name, dir_fd=trash, follow_symlinks=False)
                    is_other = (moved.st_dev, moved.st_ino) != (os.fstat(held).st_dev, os.fstat(held).st_ino)
                    if is_other or contents.written_by(files.path_of(trash) / name, itself=False):
                        os.rename(name, name, src_dir_fd=trash, dst_dir_fd=place)
                        raise BlockingIOError(0, "a command began to write to it; it stays", str(each.path))
                files.remove(name, trash)
            except OSError as error:
                stayed = True
                complain(located(error, each.path))
        link = top / LATEST
        if link.is_symlink() and not link.exists() and link.lstat().st_uid in {os.geteuid(), owner.caller().uid}:
            os.unlink(LATEST, dir_fd=place)
    return stayed
