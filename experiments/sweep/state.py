# SPDX-License-Identifier: MIT
"""How far a job is, told by its directory alone: nothing else could disagree with what lies there.

runs/<job>/rep-1/summary.json     analysed; says itself whether it is valid
runs/<job>/rep-1/environment.json recorded, only the analysis is missing
runs/<job>/rep-1/ABORTED          failed by itself, with the reason
runs/<job>/rep-1                  otherwise: was killed, and is done again
runs/<job>/attempt-<k>            earlier ones that came to an end and were not valid
"""

from __future__ import annotations

import json
import shutil
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from experiments import results

RUNS = "runs"
REPETITION = "rep-1"
ATTEMPT = "attempt-"


class State(Enum):
    """What came of the attempt that lies in its place."""

    TO_DO = "to do"
    RECORDED = "recorded, not analysed"
    VALID = "valid"
    NOT_VALID = "not valid"
    ABORTED = "aborted"


class Seen(NamedTuple):
    """A job's state, how many attempts came to an end, and why the last one was not valid ('' where it is)."""

    state: State
    attempts: int
    reason: str = ""


def look(run: Path) -> Seen:
    """The state of the job in the directory `run`, which need not exist."""
    earlier = len(list(run.glob(f"{ATTEMPT}*")))
    repetition = run / REPETITION
    summary = _json(repetition / results.SUMMARY)
    if summary:
        reasons = [str(reason) for reason in summary.get("reasons") or ["its summary gives no reason"]]
        valid = summary.get("valid") is True
        return Seen(State.VALID, earlier + 1) if valid else Seen(State.NOT_VALID, earlier + 1, "; ".join(reasons))
    mark = repetition / results.ABORTED
    if mark.exists():
        return Seen(State.ABORTED, earlier + 1, " ".join(mark.read_text(errors="replace").split()) or "no reason left")
    return Seen(State.RECORDED if results.is_recorded(repetition) else State.TO_DO, earlier)


def make_room(run: Path) -> None:
    """Moves an attempt that came to an end away, and removes one that did not: then the next may begin."""
    seen, repetition = look(run), run / REPETITION
    if not repetition.exists():
        return
    if seen.state in (State.NOT_VALID, State.ABORTED):
        repetition.rename(run / f"{ATTEMPT}{seen.attempts}")
    else:
        shutil.rmtree(repetition)


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
