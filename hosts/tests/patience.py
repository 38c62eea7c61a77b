# SPDX-License-Identifier: MIT
"""Waiting for what must come about, on a machine however slow: for a condition, never for a time.

What the tests bound is so long that only something broken reaches it. A process may be off the processor for half a
second here, and an interpreter may take two to start.
"""

import time
from collections.abc import Callable

SECONDS = 60.0  # for anything that must happen at all
LEAD_NS = 2_000_000_000  # from planning a start to it, and PATIENCE times what an interpreter takes here to get there
PATIENCE = 5


def wait_until(condition: Callable[[], object], seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"did not come about within {seconds:.0f} s"
        time.sleep(0.02)


def planned_ns(get_there: Callable[[], object]) -> int:
    """A time for a start, on CLOCK_MONOTONIC, that a program is ready for which is started now; `get_there` starts it
    to no purpose, which shows how long that takes on this machine.
    """
    begin_ns = time.monotonic_ns()
    get_there()
    now_ns = time.monotonic_ns()
    return now_ns + LEAD_NS + PATIENCE * (now_ns - begin_ns)
