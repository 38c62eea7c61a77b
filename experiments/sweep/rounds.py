# SPDX-License-Identifier: MIT
"""The rounds of a sweep, and how often a job is tried."""

from __future__ import annotations

from typing import NamedTuple

from experiments.sweep.plan import Job
from runs.job_state import JobState, State

ATTEMPTS = 3


class Round(NamedTuple):
    """All jobs known now. `more` and `more_cost_s` estimate number and cost of the jobs that results will add.
    At most `more_at_once` of the added jobs run at the same time: a search bisects one step after the other.
    """

    jobs: list[Job]
    more: int
    more_cost_s: float
    more_at_once: int = 1


class Attempts(NamedTuple):
    """How often a job is tried: `asked` times, by default ATTEMPTS times. In virtual time a run that is not valid is
    not tried again by default: the same spec gives the same bytes.
    """

    asked: int | None
    virtual: bool

    def left(self, job_state: JobState) -> bool:
        """Whether a job still has to run, or be analysed."""
        if job_state.state in (State.TO_DO, State.RECORDED):
            return True
        once = self.virtual and job_state.state is State.NOT_VALID
        return job_state.state is not State.VALID and job_state.attempts < (self.asked or (1 if once else ATTEMPTS))
