# SPDX-License-Identifier: MIT
"""The searches of a sweep, one for each point. They advance together, so that the processors stay busy.

A search stores no state: its jobs follow from the stored runs, so it continues where it was stopped, and
least_buffer.parquet can be made from the run table at any time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import polars

from experiments.machine.host import Host
from experiments.plan import cost
from experiments.sweep import plan
from experiments.sweep.plan import Job
from experiments.sweep.rounds import Round
from experiments.sweep.search import TriedBuffer, least_buffer, next_steps, steps_at_most
from experiments.sweep.spec import Point, Search, Sweep
from lib import files
from lib.errors import BadValue, SpecError
from model.experiment import Experiment
from runs.quantities import CRITERIA
from runs.run_table import KEY, mix
from runs.stored_sweep import SEARCHED, SEARCHED_SCHEMA

Values = dict[tuple[object, ...], float | None]  # by KEY


@dataclass
class PointSearch:
    """The search of one point between two buffers, in packets. `spec` is the experiment with the smaller buffer."""

    point: Point
    spec: Experiment
    low: int
    high: int
    jobs: dict[tuple[int, int], Job] = field(default_factory=dict)  # (packets, repetition) -> the job


class Searches:
    """The jobs of a sweep's searches, with the interface of Jobs (run.py). Results of a round decide the next jobs."""

    def __init__(self, sweep: Sweep, probe: Callable[[str], Host]) -> None:
        assert sweep.search
        self.sweep, self.probe, self.search = sweep, cache(probe), sweep.search
        self.point_searches = _point_searches(sweep, sweep.search, self.probe)
        self.first = [self._job(point_search, point_search.low, 1) for point_search in self.point_searches]
        self.largest = [self._job(point_search, point_search.high, 1) for point_search in self.point_searches]

    def next(self, table: polars.DataFrame, given_up: set[str]) -> Round:
        """All jobs so far, those of earlier rounds included."""
        values = self._values(table)
        jobs: list[Job] = []
        more, more_cost_s = 0, 0.0
        for point_search in self.point_searches:
            asked, steps, _ = self._replay(point_search, values, given_up)
            jobs += asked
            if steps:
                expected = self._expected(point_search) - len(asked)
                more += max(expected, 1)
                more_cost_s += max(expected, 1) * cost.repetition_s(point_search.spec, keep=self.sweep.keep)
        rounds = sorted({job.repetition for job in jobs})
        ordered = [
            job
            for number in rounds
            for job in self._shuffled([job for job in jobs if job.repetition == number], number)
        ]
        return Round(ordered, more, more_cost_s, len(self.point_searches) * self.sweep.reps)

    def write_tables(self, directory: Path, table: polars.DataFrame, given_up: set[str]) -> None:
        """Writes least_buffer.parquet, in one step."""
        values = self._values(table)
        rows = [self._row(point_search, values, given_up) for point_search in self.point_searches]
        with files.replacing(directory / SEARCHED) as file:
            polars.DataFrame(rows, schema=SEARCHED_SCHEMA).write_parquet(file)

    def lines(self, directory: Path) -> list[str]:
        """The results, one line per point."""
        rows = polars.read_parquet(directory / SEARCHED).iter_rows(named=True)
        return [
            f"  {row['point']}: {_interval(row)} (BDP: {row['bdp_packets']} packets), {row['runs']} runs"
            + (f" ({row['note']})" if row["note"] else "")
            for row in rows
        ]

    def _values(self, table: polars.DataFrame) -> Values:
        """The criterion's number of each valid run of the sweep."""
        valid = table.filter(polars.col("valid"), sweep=self.sweep.name)
        return dict(zip(valid.select(KEY).iter_rows(), valid[CRITERIA[self.search.criterion]], strict=True))

    def _shuffled(self, jobs: list[Job], number: int) -> list[Job]:
        return plan.shuffled(jobs, f"order {self.sweep.seed} {number}")

    def _replay(
        self, point_search: PointSearch, values: Values, given_up: set[str]
    ) -> tuple[list[Job], list[TriedBuffer], dict[int, list[float | None]]]:
        """Replays the search: its jobs, the measurements that wait for runs, and the measured numbers."""
        measured: dict[int, list[float | None]] = {}
        jobs: list[Job] = []
        while steps := next_steps(measured, point_search.low, point_search.high, self.sweep.reps, self.search):
            missing = False
            for step in steps:
                known = measured.setdefault(step.packets, [])
                for number in range(len(known) + 1, step.repetitions + 1):
                    job = self._job(point_search, step.packets, number)
                    jobs.append(job)
                    key = (self.sweep.name, job.spec.point, job.spec.seed, number)
                    if key in values:
                        known.append(values[key])
                    elif job.id in given_up:
                        known.append(None)
                    else:
                        missing = True
            if missing:
                return jobs, steps, measured
        return jobs, [], measured

    def _job(self, point_search: PointSearch, packets: int, number: int) -> Job:
        key = (packets, number)
        if key not in point_search.jobs:
            (point, spec), *_ = plan.check(self.sweep, [point_search.point], self.probe, {"buf": f"{packets}p"})
            point_search.jobs[key] = plan.repetition(self.sweep, {**point, "buf": f"{packets}p"}, spec, number)
        return point_search.jobs[key]

    def _expected(self, point_search: PointSearch) -> int:
        """The most runs of a search without noise (steps_at_most)."""
        of_edges = 2 * max(self.search.edge_reps - self.sweep.reps, 0)
        return steps_at_most(point_search.low, point_search.high, self.search.width) * self.sweep.reps + of_edges

    def _row(self, point_search: PointSearch, values: Values, given_up: set[str]) -> dict[str, Any]:
        *_, measured = self._replay(point_search, values, given_up)
        result = least_buffer(measured, point_search.low, point_search.high, self.sweep.reps, self.search)
        spec = point_search.spec
        return {
            "point": plan.describe(point_search.point), "cc": mix(spec.long),
            "flows": spec.flows, "mode": spec.mode, "rate_bps": spec.rate_bps, "rtt_ns": spec.rtt_ns,
            "mtu_bytes": spec.mtu_bytes, "bdp_packets": spec.bdp_packets, "criterion": self.search.criterion,
            "least": self.search.least, "width": self.search.width, "low_packets": result.low,
            "high_packets": result.high, "runs": result.runs, "note": result.note,
        }  # fmt: skip


def _point_searches(sweep: Sweep, search: Search, probe: Callable[[str], Host]) -> list[PointSearch]:
    """The search of each point, with both ends of its range checked. Raises SpecError."""
    low = plan.check(sweep, sweep.points, probe, {"buf": search.low})
    high = plan.check(sweep, sweep.points, probe, {"buf": search.high})
    point_searches = [
        PointSearch(point, least, least.buffer_packets, most.buffer_packets)
        for (point, least), (_, most) in zip(low, high, strict=True)
    ]
    for point_search in point_searches:
        if point_search.low > point_search.high:
            where = f"{sweep.file}, {plan.describe(point_search.point)}"
            most = f"high={search.high}, {point_search.high} packets"
            problem = f"is {point_search.low} packets, more than {most}; allowed: at most high"
            raise SpecError([BadValue("search.low", search.low, problem, where)])
    return point_searches


def _interval(row: dict[str, Any]) -> str:
    low, high = row["low_packets"], row["high_packets"]
    if high is None:
        return "no bound" if low is None else f"more than {low} packets"
    return f"at most {high} packets" if low is None else f"more than {low}, at most {high} packets"
