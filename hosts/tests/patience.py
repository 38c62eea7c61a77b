# SPDX-License-Identifier: MIT
"""Waiting for what must come about, on a machine however slow: for a condition, never for a time.

What the tests bound is so long that only something broken reaches it. A process may be off the processor for half a
second here, and an interpreter may take two to start.
"""

import time
from collections.abc import Callable

SECONDS = 60.0  # for anything that must happen at all
LEAD_NS = 3_000_000_000  # from planning a start to it: for interpreters and programs to get there


def wait_until(condition: Callable[[], object], seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"did not come about within {seconds:.0f} s"
        time.sleep(0.02)


def planned_ns() -> int:
    """A time for a start, on CLOCK_MONOTONIC, that everybody is ready for."""
    return time.monotonic_ns() + LEAD_NS
