# SPDX-License-Identifier: MIT
"""Intervals and fits against scipy's t-tests and least squares, and against the laws that points were drawn from."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from analysis.arithmetic.statistics import Bounds, Interval, difference_interval, mean_interval, power_law
from analysis.papers.least_buffer import bounds, by_buffer, contradiction, verdict


def test_mean_interval__is_that_of_the_textbook_t_test() -> None:
    for values in ([3.0, 1.0], [0.0, 0.0, 3.0], [98.4, 98.5, 98.1, 99.0], list(range(40))):
        expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
        interval = mean_interval(values)
        assert interval is not None, values
        assert interval[1:3] == pytest.approx((expected.low, expected.high), rel=1e-12), values
        assert (interval.value, interval.runs) == (pytest.approx(np.mean(values)), len(values)), values


def test_mean_interval__one_run_has_no_interval_and_no_run_has_no_value() -> None:
    assert mean_interval([0.5]) == (0.5, None, None, 1)
    assert mean_interval([None, math.nan]) is None
    assert mean_interval([None, 2.0, 2.0]) == (2.0, 2.0, 2.0, 2)
    assert mean_interval([0.1] * 3) == (0.1, 0.1, 0.1, 3)


def test_power_law__of_numbers_is_least_squares_with_its_t_interval() -> None:
    x = np.array([1.0, 2, 4, 8, 16, 32])
    y = 160 * x**-0.5 * np.exp(np.random.default_rng(3).normal(0, 0.1, len(x)))
    line = stats.linregress(np.log(x), np.log(y))
    half = stats.t.ppf(0.975, 4) * line.stderr
    fit = power_law([Bounds(a, b, b) for a, b in zip(x, y, strict=True)])
    assert fit is not None
    assert fit.exponent.value == pytest.approx(line.slope, abs=1e-4)
    assert fit.factor.value == pytest.approx(math.exp(line.intercept), rel=1e-4)
    assert fit.exponent.low == pytest.approx(line.slope - half, abs=1e-3)
    assert fit.exponent.high == pytest.approx(line.slope + half, abs=1e-3)
    assert (fit.points, fit.censored) == (6, 0)
    assert fit.at(4) == pytest.approx(fit.factor.value * 4**fit.exponent.value)
    narrow = power_law([Bounds(a, b * 0.999, b * 1.001) for a, b in zip(x, y, strict=True)])
    assert narrow is not None
    assert narrow.exponent.value == pytest.approx(fit.exponent.value, abs=1e-3)
    assert narrow.exponent.low == pytest.approx(fit.exponent.low, abs=5e-3)


def test_power_law__censored_points_pull_only_from_their_side() -> None:
    known = [Bounds(n, 0.95 * 160 / math.sqrt(n), 1.05 * 160 / math.sqrt(n)) for n in (1, 2, 4, 8)]
    alone, agrees, contradicts = (
        power_law([*known, *more])
        for more in ((), [Bounds(16, 0, 100)], [Bounds(16, 240, math.inf)])  # the law says 40
    )
    assert alone is not None
    assert agrees is not None
    assert contradicts is not None
    assert alone.exponent.value == pytest.approx(-0.5, abs=0.02)
    assert agrees.exponent.value == pytest.approx(alone.exponent.value, abs=0.02)
    assert agrees.censored == 1
    assert contradicts.exponent.value > alone.exponent.value + 0.1


def test_power_law__of_too_few_points_is_none_and_invalid_points_are_refused() -> None:
    too_few: tuple[tuple[list[Bounds], float | None], ...] = (
        ([Bounds(1, 2, 2)], None),
        ([Bounds(1, 2, 2), Bounds(1, 3, 3)], None),
        ([Bounds(1, 0, 2), Bounds(2, 0, 2)], None),
        ([Bounds(1, 0, 2)], -0.5),
        ([Bounds(1, 0, math.inf), Bounds(2, 1, 2)], None),
    )
    assert [power_law(points, exponent) for points, exponent in too_few] == [None] * len(too_few)
    for wrong in (Bounds(0, 1, 2), Bounds(1, 3, 2)):
        with pytest.raises(ValueError, match="fitted"):
            power_law([wrong, Bounds(2, 1, 2)])


def test_difference__has_welchs_interval_and_none_from_single_runs() -> None:
    before, after = [1.0, 2.0, 3.0], [4.0, 8.0]
    found = difference_interval(before, after)
    assert found is not None
    expected = stats.ttest_ind(after, before, equal_var=False).confidence_interval(0.95)
    assert found.value == pytest.approx(4.0)
    assert (found.low, found.high) == (pytest.approx(expected.low), pytest.approx(expected.high))
    assert difference_interval([1.0], [2.0, 3.0]) == Interval(1.5, None, None, 1)
    assert difference_interval([1.0, 1.0], [2.0, 2.0]) == Interval(1.0, 1.0, 1.0, 2)
    assert difference_interval([], [1.0]) is None
    assert difference_interval([1.0], [None]) is None


# The least sufficient buffer ----------------------------------------------------------------------------------------


def test_verdict__is_open_where_the_interval_of_repetitions_is_on_both_sides() -> None:
    for values, expected in (
        ([0.995, 0.9951], True),
        ([0.995, 0.999], None),  # two runs: the interval is 0.997 +- 0.025
        ([0.995, 0.997, 0.999], True),
        ([0.96, 0.955], False),
        ([0.98, 0.999], None),
        ([0.99], True),
        ([None], None),
    ):
        assert verdict(values, 0.99) is expected, values


def test_bounds__lie_between_the_largest_that_fails_and_the_smallest_that_does_not() -> None:
    cases: tuple[tuple[dict[int, list[float | None]], tuple[float, float]], ...] = (
        ({3: [0.5], 100: [0.999], 20: [0.9], 30: [0.995]}, (20, 30)),
        ({10: [0.9], 20: [0.995], 30: [0.98], 40: [0.999]}, (10, 40)),  # buffers contradict each other
        ({10: [0.9], 20: [0.9, 0.999], 40: [0.999]}, (10, 40)),
        ({10: [0.995], 20: [0.999]}, (0, 10)),
        ({10: [0.5], 20: [0.9]}, (20, math.inf)),
        ({}, (0, math.inf)),
    )
    for measured, expected in cases:
        assert bounds(measured, 0.99, x=4) == (4, *expected), measured


def test_contradiction__is_a_larger_buffer_that_fails_where_a_smaller_does_not() -> None:
    assert contradiction({10: [0.2], 133: [1.0], 166: [1.0], 249: [0.24]}, 0.99) == (133, 249)
    assert contradiction({10: [0.2], 133: [1.0], 249: [1.0]}, 0.99) is None
    assert contradiction({10: [0.2], 20: [0.98, 1.0], 15: [1.0]}, 0.99) is None  # 20 is open
    rows = [{"buffer_packets": b, "x": value} for b, value in ((20, 0.9), (10, None), (20, 0.8))]
    assert by_buffer(rows, "x") == {20: [0.9, 0.8], 10: [None]}
