# SPDX-License-Identifier: MIT
"""What a sweep does at a time, what that costs, and how often a job is tried."""

from __future__ import annotations

from typing import NamedTuple

from experiments import cost
from experiments.lab.real import EXPECTED_OVERHEAD_S
from experiments.resolve import Resolved
from experiments.sweep.plan import Job
from runs.job_state import Seen, State

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

    def left(self, seen: Seen) -> bool:
        """Whether there is something left to do for a job."""
        if seen.state in (State.TO_DO, State.RECORDED):
            return True
        once = self.virtual and seen.state is State.NOT_VALID
        return seen.state is not State.VALID and seen.attempts < (self.asked or (1 if once else ATTEMPTS))


def cost_s(spec: Resolved) -> float:
    """What a job takes by the clock on the wall, about."""
    if spec.clock == "virtual":
        return cost.repetition_s(spec)
    return (spec.connect_ns + spec.traffic_ns) / 1e9 + EXPECTED_OVERHEAD_S + cost.analysis_s(spec)
