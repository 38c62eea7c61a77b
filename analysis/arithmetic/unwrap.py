# SPDX-License-Identifier: MIT
"""Unwraps numbers that wrap around on the wire: TCP sequence numbers, postcard numbers, switch time.

Input rows are grouped by flow: `starts` holds the first row of each group. Each row is unwrapped relative to the row
before it: the step between the two is shorter than half the range, forwards or backwards. A retransmitted or reordered
packet therefore keeps its place. A single corrupt value shifts the rows after it only if it is almost half the range
away from its neighbours.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

SWITCH_TIME_BITS = 48
Numbers = TypeVar("Numbers", int, np.ndarray)


def group_starts(groups: np.ndarray) -> np.ndarray:
    """First row of each stretch of equal values of `groups`."""
    if not len(groups):
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(np.concatenate(([True], groups[1:] != groups[:-1])))


def unwrap32(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Grouped uint32 values, unwrapped to int64. The first of each group keeps its value (RFC 9293, 3.4)."""
    result = np.empty(len(values), dtype=np.int64)
    if not len(values):
        return result
    result[0] = values[0]
    result[1:] = np.diff(values).view(np.int32)
    result[starts] = values[starts]
    np.cumsum(result, out=result)  # over all groups; the sums of earlier groups are subtracted below
    ends = np.append(starts[1:], len(values))
    result -= np.repeat(result[starts] - values[starts], ends - starts)
    return result


def switch_steps(switch_ns: np.ndarray) -> np.ndarray:
    """The steps (int64) between neighbours of 48-bit switch times, each shorter than 39 h forwards or backwards."""
    shift = np.uint64(64 - SWITCH_TIME_BITS)
    times = switch_ns.astype(np.uint64)
    return ((times[1:] - times[:-1]) << shift).view(np.int64) >> np.int64(shift)


def near32(value: Numbers, reference: Numbers) -> Numbers:
    """The number congruent to `value` modulo 2^32 that is nearest to `reference`."""
    return reference + ((value - reference + (1 << 31)) % (1 << 32)) - (1 << 31)


def switch_time(switch_ns: np.ndarray, rx_mono_ns: np.ndarray, offset_ns: int = 0) -> np.ndarray:
    """48-bit switch times as int64 ns on CLOCK_MONOTONIC. `offset_ns` is CLOCK_MONOTONIC minus the switch's clock.

    Each result is the time t nearest to the receive stamp for which (t - `offset_ns`) mod 2^48 is the switch time. The
    result is right if the true time is less than 39 hours from the receive stamp.
    """
    shift = np.uint64(64 - SWITCH_TIME_BITS)
    ahead = np.uint64(offset_ns % (1 << 64))
    behind = (rx_mono_ns.astype(np.uint64) - switch_ns.astype(np.uint64) - ahead) << shift
    return rx_mono_ns.astype(np.int64) - (behind.view(np.int64) >> np.int64(shift))
