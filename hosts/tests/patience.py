# SPDX-License-Identifier: MIT
"""Waits for a condition, never for a fixed time, so that tests pass on a slow machine.

Only a defect reaches these timeouts. On a busy machine a process may be off the processor for 0.5 s, and a Python
interpreter may take 2 s to start.
"""

import time
from collections.abc import Callable

SECONDS = 60.0  # timeout of any condition
LEAD_NS = 2_000_000_000  # a planned start is this far ahead, plus PATIENCE times the program's measured start-up time
PATIENCE = 5


def wait_until(condition: Callable[[], object], seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"did not happen within {seconds:.0f} s"
        time.sleep(0.02)


def planned_ns(rehearse: Callable[[], object]) -> int:
    """A start time on CLOCK_MONOTONIC for a program that the caller launches next. `rehearse` launches the program
    without effect, to measure its start-up time on this machine.
    """
    begin_ns = time.monotonic_ns()
    rehearse()
    now_ns = time.monotonic_ns()
    return now_ns + LEAD_NS + PATIENCE * (now_ns - begin_ns)
