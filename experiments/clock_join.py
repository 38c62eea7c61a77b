# SPDX-License-Identifier: MIT
"""Joins the clock of a switch to CLOCK_MONOTONIC: reads it many times, each reading between two of our own.

Switch time s was read somewhere between mono times a and b, and the clock shows whole ticks: the offset mono - s lies
in [a - s - tick, b - s]. The readings' intervals overlap in a shorter one; its middle is the offset, half its length
the uncertainty. Two clocks that run at the same rate leave an interval; if they do not, or one is stepped, it may be
empty, and then the two ends say by how much.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

READINGS = 50


@dataclass(frozen=True)
class Offset:
    """CLOCK_MONOTONIC minus the switch's clock, at `at_mono_ns`."""

    offset_ns: int
    uncertainty_ns: int
    at_mono_ns: int


def measure(read_ns: Callable[[], int], tick_ns: int, now_ns: Callable[[], int] = time.monotonic_ns) -> Offset:
    """`read_ns` asks the switch for its clock, in ns, rounded down to whole ticks of `tick_ns`."""
    low, high = -(1 << 63), 1 << 63
    for _ in range(READINGS):
        before_ns = now_ns()
        switch_ns = read_ns()
        after_ns = now_ns()
        low, high = max(low, before_ns - switch_ns - tick_ns), min(high, after_ns - switch_ns)
    return Offset((low + high) // 2, -(-abs(high - low) // 2), now_ns())
