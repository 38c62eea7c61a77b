# SPDX-License-Identifier: MIT
"""Announces the time and disk space of an experiment before the experiment starts. Above ASK_S or ASK_BYTES the user
must agree: with YES=1, or at the terminal. ASK_S is time on the idle reference machine, so the load of this machine
does not decide whether a command asks.
"""

from __future__ import annotations

import math

from analysis.wording.formats import duration, si
from experiments.machine import machine_speed
from experiments.plan import cost
from experiments.spec import disk
from lib.errors import RunError
from lib.terminal import agreed, say
from model.experiment import Experiment

ASK_S = 600.0
ASK_BYTES = 5 * 10**9


def ask(spec: Experiment, at_once: int, yes: bool) -> float:
    """Prints the expected time and disk space. Returns how slow this machine is (machine_speed.py). Raises RunError if
    time or disk space need the user's yes and do not get it.
    """
    reps = spec.reps or 1
    slow = machine_speed.slowness(min(at_once, reps))
    rounds = math.ceil(reps / max(at_once, 1))
    alone_s, size = cost.repetition_s(spec) * rounds, disk.expected_bytes(spec) * reps
    of_disk = f"{si(float(size), 'B')} of disk"
    expected = f"about {duration(cost.repetition_s(spec, slow) * rounds)} and {of_disk}"
    say(f"expected: {expected}{machine_speed.explained(slow)}")
    if yes or (alone_s <= ASK_S and size <= ASK_BYTES) or (answer := agreed("Go on?")):
        return slow
    if answer is False:
        raise RunError("nothing was started")
    raise RunError(
        f"this experiment needs a yes, as any that takes more than {duration(ASK_S)} of an idle machine or "
        f"{si(float(ASK_BYTES), 'B')}: add YES=1, or lower DURATION, RATE or REPS"
    )
