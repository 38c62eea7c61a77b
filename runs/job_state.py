# SPDX-License-Identifier: MIT
"""The state of a sweep's job, read from its directory alone: no second record could disagree with the directory.

runs/<job>/rep-1/summary.json     analysed; the summary has the verdict
runs/<job>/rep-1/environment.json recorded, with its raw files kept: only the analysis is missing
runs/<job>/rep-1/ABORTED          failed, or was stopped by a signal (aborted.py)
runs/<job>/rep-1                  otherwise: killed before its end
runs/<job>/attempt-<k>            earlier attempts that ended and were not valid

A stopped job runs again, and so does a job that was killed without a file ABORTED. Such a run does not count as an
attempt.
"""

from __future__ import annotations

import contextlib
import shutil
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from hosts import full_disk
from runs import results, verdict
from runs.aborted import Cause, read
from runs.names import REPETITION
from runs.thinned import kept

ATTEMPT = "attempt-"


class State(Enum):
    """The state of the current attempt."""

    TO_DO = "to do"
    RECORDED = "recorded, not analysed"
    VALID = "valid"
    NOT_VALID = "not valid"
    ABORTED = "aborted"


class JobState(NamedTuple):
    """A job's state, the number of ended attempts, and why the last attempt is not valid. The reason is '' if that
    attempt is valid, does not exist, is not analysed yet, or was killed without a file ABORTED.
    """

    state: State
    attempts: int
    reason: str = ""


def look(run: Path) -> JobState:
    """The state of the job in the directory `run`, which need not exist."""
    earlier = len(list(run.glob(f"{ATTEMPT}*")))
    repetition = run / REPETITION
    with contextlib.suppress(OSError, ValueError):  # a summary that cannot be read is made anew
        try:
            reasons = verdict.reasons(verdict.read(repetition))
        except verdict.Misplaced as problem:
            reasons = [str(problem)]
        return JobState(State.NOT_VALID if reasons else State.VALID, earlier + 1, "; ".join(reasons))
    if aborted := read(repetition):
        reason = aborted.reason or full_disk.full(repetition) or "no reason left"
        if aborted.cause is Cause.STOPPED:
            return JobState(State.TO_DO, earlier, reason)
        return JobState(State.ABORTED, earlier + 1, reason)
    recorded = results.is_recorded(repetition) and kept(repetition) == "all"  # the analysis needs raw files
    return JobState(State.RECORDED if recorded else State.TO_DO, earlier)


def make_room(run: Path) -> None:
    """Makes way for the next attempt: renames an attempt that failed or is not valid, removes any other."""
    job, repetition = look(run), run / REPETITION
    if not repetition.exists():
        return
    if job.state in (State.NOT_VALID, State.ABORTED):
        repetition.rename(run / f"{ATTEMPT}{job.attempts}")
    else:
        shutil.rmtree(repetition)
