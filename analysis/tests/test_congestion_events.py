# SPDX-License-Identifier: MIT
"""Congestion events: a drop at most 2 RTTs after the flow's previous drop belongs to the same event."""

import numpy as np

from analysis.measure.congestion_events import count

MS = 1_000_000
RTTS = np.array([10, 50, 10, 10]) * MS


def _counts(*drops: tuple[int, int]) -> list[int]:
    """The events of each flow, from drops given as (flow, time in ms)."""
    flow, at_ms = (np.array(column, dtype=np.int64) for column in zip(*drops, strict=True))
    return count(flow, at_ms * MS, RTTS).tolist()


def test_events__begin_with_a_drop_more_than_two_rtts_after_the_one_before() -> None:
    assert _counts((0, 100), (0, 120)) == [1, 0, 0, 0]
    assert _counts((0, 100), (0, 121)) == [2, 0, 0, 0]
    assert _counts((1, 100), (1, 121)) == [0, 1, 0, 0]  # the RTT of flow 1 is 50 ms
    # Not from the first drop of the event, and of each flow alone.
    assert _counts((0, 100), (0, 115), (0, 130), (0, 145)) == [1, 0, 0, 0]
    assert _counts((2, 7), (0, 5), (2, 5), (0, 50), (3, 6), (2, 90)) == [2, 0, 2, 1]
    none = np.zeros(0, dtype=np.int64)
    assert count(none, none, RTTS).tolist() == [0, 0, 0, 0]
