# SPDX-License-Identifier: MIT
"""What a sweep does at a time, what that costs, and how often a job is tried."""

from __future__ import annotations

from typing import NamedTuple

from experiments.sweep.plan import Job
from runs.job_state import JobState, State

ATTEMPTS = 3


class Round(NamedTuple):
    """All jobs known by now, and about how many more are expected to follow from what they measure, at what cost."""

    jobs: list[Job]
    more: int
    more_cost_s: float


class Attempts(NamedTuple):
    """How often a job is tried: as asked for, else ATTEMPTS times; in virtual time only what was aborted, because the
    same spec gives the same bytes again.
    """

    asked: int | None
    virtual: bool

    def left(self, job_state: JobState) -> bool:
        """Whether there is something left to do for a job."""
        if job_state.state in (State.TO_DO, State.RECORDED):
            return True
        once = self.virtual and job_state.state is State.NOT_VALID
        return job_state.state is not State.VALID and job_state.attempts < (self.asked or (1 if once else ATTEMPTS))
