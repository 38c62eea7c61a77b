# SPDX-License-Identifier: MIT
"""The least sufficient buffer, from runs with several buffers."""

import math

from analysis.least_buffer import bounds, by_buffer, contradiction, verdict


def test_verdict__is_open_where_the_interval_of_repetitions_is_on_both_sides() -> None:
    assert verdict([0.995, 0.9951], 0.99) is True
    assert verdict([0.995, 0.999], 0.99) is None  # two runs: the interval is 0.997 +- 0.025
    assert verdict([0.995, 0.997, 0.999], 0.99) is True
    assert verdict([0.96, 0.955], 0.99) is False
    assert verdict([0.98, 0.999], 0.99) is None
    assert verdict([0.99], 0.99) is True
    assert verdict([None], 0.99) is None


def test_bounds__lie_between_the_largest_that_fails_and_the_smallest_that_does_not() -> None:
    assert bounds({3: [0.5], 100: [0.999], 20: [0.9], 30: [0.995]}, 0.99, x=4) == (4, 20, 30)


def test_bounds__are_wide_where_buffers_contradict_each_other() -> None:
    assert bounds({10: [0.9], 20: [0.995], 30: [0.98], 40: [0.999]}, 0.99)[1:] == (10, 40)
    assert bounds({10: [0.9], 20: [0.9, 0.999], 40: [0.999]}, 0.99)[1:] == (10, 40)


def test_bounds__are_open_without_a_failing_or_a_sufficient_buffer() -> None:
    assert bounds({10: [0.995], 20: [0.999]}, 0.99)[1:] == (0, 10)
    assert bounds({10: [0.5], 20: [0.9]}, 0.99)[1:] == (20, math.inf)
    assert bounds({}, 0.99)[1:] == (0, math.inf)


def test_contradiction__is_a_larger_buffer_that_fails_where_a_smaller_does_not() -> None:
    assert contradiction({10: [0.2], 133: [1.0], 166: [1.0], 249: [0.24]}, 0.99) == (133, 249)
    assert contradiction({10: [0.2], 133: [1.0], 249: [1.0]}, 0.99) is None
    assert contradiction({10: [0.2], 20: [0.98, 1.0], 15: [1.0]}, 0.99) is None  # 20 is open
    assert contradiction({10: [0.2]}, 0.99) is None


def test_by_buffer__collects_repetitions() -> None:
    rows: list[dict[str, object]] = [
        {"buffer_packets": 20, "queue_nonempty_fraction": 0.9},
        {"buffer_packets": 10, "queue_nonempty_fraction": None},
        {"buffer_packets": 20, "queue_nonempty_fraction": 0.8},
    ]
    assert by_buffer(rows, "queue_nonempty_fraction") == {20: [0.9, 0.8], 10: [None]}
