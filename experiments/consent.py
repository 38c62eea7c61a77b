# SPDX-License-Identifier: MIT
"""Announces the time and disk space of an experiment before it starts. Above ASK_S or ASK_BYTES the user must agree:
with YES=1, or at the terminal.
"""

from __future__ import annotations

import math
import sys

from analysis.amounts import duration, si
from experiments import cost, disk
from experiments.resolved import Resolved
from lib.errors import RunError
from lib.terminal import say

ASK_S = 600.0
ASK_BYTES = 5 * 10**9


def ask(spec: Resolved, at_once: int, yes: bool) -> None:
    """Prints the expected time and disk space. Raises RunError if the user must agree and does not."""
    seconds = cost.repetition_s(spec) * math.ceil(spec.reps / max(at_once, 1))
    size = disk.expected_bytes(spec) * spec.reps
    expected = f"about {duration(seconds)} and {si(float(size), 'B')} of disk"
    say(f"expected: {expected}")
    if yes or (seconds <= ASK_S and size <= ASK_BYTES):
        return
    if sys.stdin.isatty() and sys.stdout.isatty():
        print("Go on? [y/N] ", end="", flush=True)
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return
        raise RunError("nothing was started")
    raise RunError(
        f"this experiment is expected to take {expected}, which needs a yes (above {duration(ASK_S)} or "
        f"{si(float(ASK_BYTES), 'B')}): add YES=1, or lower DURATION, RATE or REPS"
    )
