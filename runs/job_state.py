# SPDX-License-Identifier: MIT
"""How far a job is, told by its directory alone: nothing else could disagree with what lies there.

runs/<job>/rep-1/summary.json     analysed; says itself whether it is valid
runs/<job>/rep-1/environment.json recorded and its raw files kept: only the analysis is missing
runs/<job>/rep-1/ABORTED          failed by itself, with the reason; or was stopped by a signal, see below
runs/<job>/rep-1                  otherwise: was stopped or killed, and is done again, which is no attempt more
runs/<job>/attempt-<k>            earlier ones that came to an end and were not valid
"""

from __future__ import annotations

import contextlib
import shutil
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from hosts import room
from runs import results, verdict
from runs.aborted import Cause, read
from runs.names import REPETITION
from runs.thinned import kept

ATTEMPT = "attempt-"


class State(Enum):
    """What came of the attempt that lies in its place."""

    TO_DO = "to do"
    RECORDED = "recorded, not analysed"
    VALID = "valid"
    NOT_VALID = "not valid"
    ABORTED = "aborted"


class JobState(NamedTuple):
    """A job's state, how many attempts came to an end, and why the last one is not valid ('' where it is)."""

    state: State
    attempts: int
    reason: str = ""


def look(run: Path) -> JobState:
    """The state of the job in the directory `run`, which need not exist."""
    earlier = len(list(run.glob(f"{ATTEMPT}*")))
    repetition = run / REPETITION
    with contextlib.suppress(OSError, ValueError):  # one that cannot be read is none: it is made anew
        summary = verdict.read(repetition)
        if problem := verdict.misplaced(repetition, summary):
            return JobState(State.NOT_VALID, earlier + 1, problem)
        reasons = verdict.reasons(summary)
        return JobState(State.NOT_VALID if reasons else State.VALID, earlier + 1, "; ".join(reasons))
    if aborted := read(repetition):
        reason = aborted.reason or room.full(repetition) or "no reason left"
        if aborted.cause is Cause.STOPPED:
            return JobState(State.TO_DO, earlier, reason)
        return JobState(State.ABORTED, earlier + 1, reason)
    recorded = results.is_recorded(repetition) and kept(repetition) == "all"  # else there is nothing to analyse again
    return JobState(State.RECORDED if recorded else State.TO_DO, earlier)


def make_room(run: Path) -> None:
    """Moves an attempt that came to an end away, and removes one that did not: then the next may begin."""
    job, repetition = look(run), run / REPETITION
    if not repetition.exists():
        return
    if job.state in (State.NOT_VALID, State.ABORTED):
        repetition.rename(run / f"{ATTEMPT}{job.attempts}")
    else:
        shutil.rmtree(repetition)
