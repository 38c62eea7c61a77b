# SPDX-License-Identifier: MIT
"""The runs that a sweep still needs, their time and disk space: shown before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from analysis.wording.formats import duration
from experiments.plan import cost
from experiments.spec import disk
from experiments.sweep.plan import Job
from experiments.sweep.rounds import Round
from experiments.sweep.spec import Sweep
from lib.terminal import counted


class Need(NamedTuple):
    """All runs of a sweep, with those that a search is expected to add."""

    runs: int
    done: int
    certain: bool  # whether all runs are known by now
    clock: str
    at_once: int
    duration_s: float
    kept_bytes: int  # upper bound, of the missing runs when they are done
    passing_bytes: int  # upper bound, of running jobs before they are thinned

    @property
    def bytes(self) -> int:
        return self.kept_bytes + self.passing_bytes


def of(sweep: Sweep, now: Round, todo: list[Job], at_once: int, slow: float = 1.0) -> Need:
    """The needs of `todo` and of expected jobs, on a machine with the slowness `slow` (machine_speed.py). `now` has at
    least one job.
    """
    todo_s = sum(cost.repetition_s(job.spec, slow, sweep.keep) for job in todo) / max(min(at_once, len(todo)), 1)
    more_s = (slow if now.jobs[0].spec.clock == "virtual" else 1.0) * now.more_cost_s / min(at_once, now.more_at_once)
    kept = [disk.kept_bytes(job.spec, sweep.keep) for job in todo]
    whole = sorted((disk.estimate_bytes(job.spec) for job in todo), reverse=True)
    first = now.jobs[0].spec
    return Need(
        runs=len(now.jobs) + now.more,
        done=len(now.jobs) - len(todo),
        certain=not now.more,
        clock=first.clock,
        at_once=at_once,
        duration_s=todo_s + more_s,
        kept_bytes=sum(kept) + now.more * disk.kept_bytes(first, sweep.keep),
        passing_bytes=sum(whole[:at_once]),
    )


def headline(sweep: Sweep, need: Need, directory: Path) -> str:
    """The work ahead, its duration, and its disk space."""
    points = counted(len(sweep.points), "point")
    return f"{sweep.name}: {points}, {_amounts(need)} of disk at most (keep: {sweep.keep}) -> {directory}"


def headline_of_set(needs: Sequence[Need], results: Path) -> str:
    """Like `headline`, for several sweeps that run one after the other. `needs` has at least one sweep."""
    total = needs[0]._replace(
        runs=sum(need.runs for need in needs),
        done=sum(need.done for need in needs),
        certain=all(need.certain for need in needs),
        at_once=max(need.at_once for need in needs),
        duration_s=sum(need.duration_s for need in needs),
        kept_bytes=sum(need.kept_bytes for need in needs),
        passing_bytes=max(need.passing_bytes for need in needs),
    )
    there = next(path for path in (results, *results.parents) if path.exists())
    free = disk.free_bytes(there)
    return f"{counted(len(needs), 'sweep')}: {_amounts(total)} of disk at most, {disk.mib(free)} free -> {results}"


def shortage(need: Need, directory: Path) -> str | None:
    """The message for the user if `directory` cannot hold the sweep; None if it can."""
    needed, free = need.bytes + disk.RESERVE_BYTES, disk.free_bytes(directory)
    if needed <= free:
        return None
    return (
        f"{directory} has {disk.mib(free)} free; this sweep may need {disk.mib(needed)}: make room, choose another "
        "directory with RESULTS=, or keep less of each run with KEEP=tables, flows or summary"
    )


def _amounts(need: Need) -> str:
    done = f", {need.done} done" if need.done else ""
    runs = f"{'' if need.certain else 'about '}{counted(need.runs, 'run')} in {need.clock} time{done}"
    return f"{runs}; {need.at_once} at once, about {duration(need.duration_s)}; {disk.mib(need.bytes)}"
