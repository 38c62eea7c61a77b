# SPDX-License-Identifier: MIT
"""Measures the offset of a switch's clock from CLOCK_MONOTONIC: reads the switch's clock many times, each time between
two readings of CLOCK_MONOTONIC.

Switch time s was read between mono times a and b, and the switch's clock shows whole ticks: the offset mono - s lies in
[a - s - tick, b - s]. The intersection of these intervals contains the offset: its middle is the estimate, half its
length is the uncertainty. If the clocks run at different rates, or one clock is stepped, the intersection may be empty.
The estimate is then the middle of the gap between the intervals, and the uncertainty half the length of the gap.
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
