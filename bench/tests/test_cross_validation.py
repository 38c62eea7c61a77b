# SPDX-License-Identifier: MIT
"""The comparison of two groups of runs, tested on known distributions."""

import numpy as np
import pytest

from bench.cross_validation import distance, period_s, share_as_far


def _uniform(first, last):
    depth = np.zeros(last + 1)
    depth[first:] = 1 / (last + 1 - first)
    return depth


def test_distance__is_the_largest_between_averages_of_runs():
    assert distance([_uniform(0, 9)], [_uniform(0, 9)] * 3) == pytest.approx(0)
    assert distance([_uniform(0, 9)], [_uniform(10, 19)]) == pytest.approx(1)
    assert distance([_uniform(0, 9)], [_uniform(5, 14)]) == pytest.approx(0.5)
    assert distance([_uniform(0, 9), _uniform(10, 19)], [_uniform(0, 19)]) == pytest.approx(0)


def test_share_as_far__is_small_only_for_groups_that_lie_apart():
    near = [_uniform(0, 9 + i) for i in range(4)]
    far = [_uniform(30, 39 + i) for i in range(4)]
    assert share_as_far(near, far) == pytest.approx(2 / 70)
    assert share_as_far([near[0], near[3]], [near[1], near[2]]) > 0.5
    assert share_as_far(near[:1], near[:1]) == 1


@pytest.mark.parametrize(
    ("starts", "expected"), [([], None), ([1.0], None), ([1.0, 1.02, 2.0, 3.0, 3.02, 3.04, 4.5], 1.0)]
)
def test_period__counts_losses_of_one_tooth_once(starts, expected):
    loss = {"longest_rtt_ns": 20_000_000, "list": [{"since_traffic_start_s": at} for at in starts]}
    assert period_s({"loss": loss}) == (expected and pytest.approx(expected))
