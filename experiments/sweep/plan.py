# SPDX-License-Identifier: MIT
"""Turns a sweep into jobs. Every point is checked as an experiment before anything runs. Job names are stable. The
order is random, with all first repetitions before the second ones. Jobs read their parameters from the sweep's
plan.json.

Every repetition has one seed for all points (common random numbers): as far as possible, two points of a repetition
differ only in their parameters.
"""

from __future__ import annotations

import contextlib
import hashlib
import random
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from experiments.machine.host import Host
from experiments.spec.resolve import resolve
from experiments.sweep.spec import Point, Sweep
from lib.errors import BadValue, RunError, SpecError
from lib.terminal import counted, one_line
from model.experiment import Experiment
from runs import plan_file
from runs.names import PLAN
from runs.plan_file import Plan, PlannedJob, PlannedSweep

JOB_ID = re.compile(r"[a-z0-9-]{1,100}")  # a job's name is the only text of a sweep that a shell reads


class Job(NamedTuple):
    """One run: a repetition of a point, in the directory runs/<id>."""

    id: str
    point: Point
    repetition: int
    spec: Experiment


def jobs(sweep: Sweep, probe: Callable[[str], Host]) -> list[Job]:
    """All jobs of a sweep without a search, in the order in which they are to run. Raises SpecError."""
    checked = check(sweep, sweep.points, probe)
    unique = {job_id(spec, 1): (point, spec) for point, spec in checked}
    planned = [
        repetition(sweep, point, spec, number)
        for number in range(1, sweep.most_reps + 1)
        for point, spec in shuffled(list(unique.values()), f"order {sweep.seed} {number}")
        if number <= sweep.repetitions(point)
    ]
    return planned


def shuffled(items: list[Any], seed: str) -> list[Any]:
    random.Random(seed).shuffle(items)
    return items


def offered(sweep: Sweep, probe: Callable[[str], Host]) -> Sweep:
    """The sweep without the points whose congestion control is optional and missing in the kernel. A sweep that would
    have no point left stays as it is: the check of its points says what is missing.
    """
    known = cache(probe)

    def lacking(point: Point) -> frozenset[str]:
        given = sweep.given(point)
        controls = known(str(given.get("clock", "")).strip().lower()).congestion_controls
        used = {word.partition(":")[0].strip() for word in str(given.get("cc", "")).split(",")}
        return frozenset() if controls is None else sweep.optional_cc & used - {*controls}

    if not sweep.optional_cc:
        return sweep
    missing = {name for point in sweep.points for name in lacking(point)}
    kept = tuple(point for point in sweep.points if not lacking(point))
    if not missing or not kept:
        return sweep
    left_out = counted(len(sweep.points) - len(kept), "point")
    note = f"no kernel at hand has {' and '.join(sorted(missing))}: {left_out} left out"
    return replace(sweep, points=kept, note="; ".join(filter(None, (sweep.note, note))))


def check(
    sweep: Sweep, points: Iterable[Point], probe: Callable[[str], Host], more: Point | None = None
) -> list[tuple[Point, Experiment]]:
    """Each point as an experiment, with `more` parameters. Raises one SpecError that lists each error once.

    `probe` returns the host for a clock, and is called once for each clock.
    """
    checked: list[tuple[Point, Experiment]] = []
    errors: dict[tuple[str, str, str], BadValue] = {}
    known = cache(probe)
    for point in points:
        given = {**sweep.given(point), **(more or {}), "reps": "1", "seed": "0"}
        try:
            checked.append((point, resolve(given, known(str(given.get("clock", "")).strip().lower()))))
        except SpecError as failure:
            for error in failure.errors:
                where = sweep.file if error.key.lower() in sweep.base else f"{sweep.file}, {describe(point)}"
                errors.setdefault((error.key, str(error.value), error.problem), error._replace(origin=where))
    if errors:
        raise SpecError(list(errors.values()))
    clocks = {spec.clock for _, spec in checked}
    if len(clocks) > 1:
        raise SpecError([BadValue("clock", None, "differs between points; allowed: one for all", sweep.file)])
    return checked


def describe(point: Point) -> str:
    """A point in the words of the spec."""
    return " ".join(f"{key}={value}" for key, value in point.items()) or "the only point"


def repetition(sweep: Sweep, point: Point, spec: Experiment, number: int) -> Job:
    """The job of repetition `number` (from 1) of a point."""
    seeded = spec.model_copy(update={"seed": seed(sweep.seed, number), "reps": 1})
    name = job_id(seeded, number)
    return Job(name, point, number, seeded.model_copy(update={"name": name}))


def seed(of_sweep: int, number: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{of_sweep} {number}".encode()).digest()[:4], "big")


def job_id(spec: Experiment, number: int) -> str:
    """A readable and stable name: the same parameters and seed always give the same name."""

    flows = "-".join(re.sub(r"[^a-z0-9]", "-", group.cc) for group in spec.long)[:40] or spec.traffic
    code = hashlib.sha256(f"{spec.point} {spec.seed}".encode()).hexdigest()[:10]
    return f"{flows}-n{spec.flows}-b{spec.buffer_packets}-{code}-r{number}"


def write(directory: Path, sweep: Sweep, planned: Iterable[Job], queued: Collection[str] = ()) -> None:
    """Writes plan.json for the jobs and for readers of the directory. Jobs of an earlier plan that are still `queued`
    will read their entries, so these entries are kept.
    """
    jobs: dict[str, PlannedJob] = {}
    if queued:
        with contextlib.suppress(OSError, ValueError):
            jobs = {name: job for name, job in plan_file.read(directory).jobs.items() if name in queued}
    for job in planned:
        jobs[job.id] = PlannedJob(point=job.point, repetition=job.repetition, spec=job.spec.dump())
    of_sweep = PlannedSweep(
        name=sweep.name, about=sweep.about, keep=sweep.keep, reps=sweep.reps, seed=sweep.seed, base=sweep.base,
        points=list(sweep.points), search=sweep.search.model_dump() if sweep.search else None, file=sweep.file,
    )  # fmt: skip
    plan_file.write(directory, Plan(sweep=of_sweep, jobs=jobs))


def read_job(directory: Path, name: str) -> tuple[Job, str]:
    """The job called `name`, and the sweep's KEEP. Raises RunError."""
    if not JOB_ID.fullmatch(name):
        raise RunError(f"{name!a} is not a job: a job's name has only lower-case letters, digits and '-'")
    path = directory / PLAN
    try:
        stored = plan_file.read(directory)
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read: {one_line(error)}") from None
    entry = stored.jobs.get(name)
    if entry is None or stored.sweep.keep is None:
        raise RunError(f"{path} has no job {name}")
    return Job(name, entry.point, entry.repetition, entry.experiment), stored.sweep.keep
