# SPDX-License-Identifier: MIT
"""Numbers that wrap on the wire, as numbers that do not: TCP sequence numbers, postcard numbers, switch time.

Rows of one flow stand together ("grouped"): `starts` holds the first row of each group, and each row is compared with
the one before it. A step of less than half the range, forwards or backwards, is taken as it is, so retransmissions and
reordering stay where they belong and one wild value does no lasting harm.
"""

from __future__ import annotations

import numpy as np

SWITCH_TIME_BITS = 48


def group_starts(groups: np.ndarray) -> np.ndarray:
    """First row of each run of equal values of `groups`."""
    if not len(groups):
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(np.concatenate(([True], groups[1:] != groups[:-1])))


def spans(starts: np.ndarray, rows: int) -> list[tuple[int, int]]:
    """(first row, row after the last) of each group."""
    return list(zip(starts.tolist(), np.append(starts[1:], rows)[: len(starts)].tolist(), strict=True))


def unwrap32(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """uint32 values, grouped, as int64. The first of each group keeps its value (RFC 9293, 3.4: modulo 2^32)."""
    result = np.empty(len(values), dtype=np.int64)
    if not len(values):
        return result
    result[0] = values[0]
    result[1:] = np.diff(values).view(np.int32)
    result[starts] = values[starts]
    for start, end in spans(starts, len(values)):
        np.cumsum(result[start:end], out=result[start:end])
    return result


def near32(value: int, reference: int) -> int:
    """The number congruent to `value` modulo 2^32 that is nearest to `reference`."""
    return reference + ((value - reference + (1 << 31)) % (1 << 32)) - (1 << 31)


def switch_time(switch_ns: np.ndarray, rx_mono_ns: np.ndarray, offset_ns: int = 0) -> np.ndarray:
    """48-bit switch times as int64 on the receiver's CLOCK_MONOTONIC, which is `offset_ns` ahead of the switch's clock
    (0: they are the same).

    Each is the time with these 48 bits that is nearest to its receive stamp: right as long as a postcard takes less
    than 39 hours, either way.
    """
    shift = np.uint64(64 - SWITCH_TIME_BITS)
    ahead = np.uint64(offset_ns % (1 << 64))
    behind = (rx_mono_ns.astype(np.uint64) - switch_ns.astype(np.uint64) - ahead) << shift
    return rx_mono_ns.astype(np.int64) - (behind.view(np.int64) >> np.int64(shift))
