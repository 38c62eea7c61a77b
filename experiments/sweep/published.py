# SPDX-License-Identifier: MIT
"""Published runs of sweeps: a job counts as done if its run is published and its directory does not exist."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path

import polars

from experiments.sweep.plan import Job
from runs import run_table
from runs.job_state import JobState, State, look
from runs.names import REPETITION


class Published:
    """`table` has the rows of valid published runs; None: there are none."""

    def __init__(self, table: polars.DataFrame | None = None) -> None:
        self.table = None if table is None else table.filter("valid")

    def beside(self, own: polars.DataFrame) -> polars.DataFrame:
        """The rows of `own`, the run table of a results directory, and of all other published runs."""
        return own if self.table is None else run_table.with_more(own, self.table)

    def state(self, run: Path, job: Job) -> JobState:
        """The state of the job in the directory `run` of its sweep."""
        if self._keys and not os.path.lexists(run / REPETITION) and self._key(run, job) in self._keys:
            return JobState(State.VALID, 1)
        return look(run)

    @cached_property
    def _keys(self) -> set[tuple[object, ...]]:
        return set() if self.table is None else set(self.table.select(run_table.KEY).iter_rows())

    @staticmethod
    def _key(run: Path, job: Job) -> tuple[object, ...]:
        return run.parent.parent.name, job.spec.point, job.spec.seed, job.repetition


NONE = Published()
