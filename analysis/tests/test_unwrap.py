# SPDX-License-Identifier: MIT
"""Unwrapped 32-bit numbers and 48-bit stamps against the numbers from which they were cut."""

import numpy as np
import pytest

from analysis.unwrap import group_starts, near32, switch_time, unwrap32


@pytest.mark.parametrize("seed", range(5))
def test_unwrap32__follows_steps_either_way_over_many_wraps(seed):
    random = np.random.default_rng(seed)
    true = np.cumsum(random.integers(-(1 << 30), 1 << 31, 500)) + (1 << 40)
    wrapped = (true % (1 << 32)).astype(np.uint32)
    got = unwrap32(wrapped, np.array([0]))
    assert (got == true - true[0] + wrapped[0]).all()


def test_unwrap32__starts_again_with_each_group():
    groups = np.array([4, 4, 7, 7, 7, 9])
    values = np.array([0xFFFFFFFF, 5, 10, 0xFFFFFFF0, 3, 8], dtype=np.uint32)
    got = unwrap32(values, group_starts(groups))
    assert got.tolist() == [0xFFFFFFFF, (1 << 32) + 5, 10, -16, 3, 8]


def test_unwrap32__nothing():
    assert len(unwrap32(np.empty(0, dtype=np.uint32), group_starts(np.empty(0)))) == 0


def test_near32__is_the_nearest_congruent_number():
    assert near32(5, (7 << 32) + 0xFFFFFFF0) == (8 << 32) + 5
    assert near32(0xFFFFFFF0, 7 << 32) == (7 << 32) - 16


def test_switch_time__survives_the_wrap_and_a_stamp_that_is_a_little_early():
    rx = np.array([(3 << 48) + 100, (3 << 48) + 100, (3 << 48) - 100], dtype=np.uint64)
    true = np.array([(3 << 48) - 50, (3 << 48) + 200, (3 << 48) + 7])
    got = switch_time((true % (1 << 48)).astype(np.uint64), rx)
    assert got.tolist() == true.tolist()
