# SPDX-License-Identifier: MIT
"""Intervals and fits against scipy's t-tests and least squares, and against the laws that points were drawn from.
Verdicts on measured numbers, and the names of figures.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from analysis.arithmetic.statistics import Bounds, Interval, difference_interval, mean_interval, power_law
from analysis.papers import clocks, paper
from analysis.papers.facts import Fact
from analysis.papers.least_buffer import bounds, by_buffer, contradiction, verdict
from analysis.papers.spang2021 import PAPER, arrival
from analysis.papers.spang2021.table_rows import RuleRow


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


# Verdicts on measured numbers -----------------------------------------------------------------------------------------


def test_verdict__is_of_the_whole_interval():
    for kind, predicted, measured, says in (
        ("number", 100.0, Interval(110, 105, 115, 1), "within 20% (+10%)"),
        ("number", 100.0, Interval(70, 65, 75, 1), "not within 20% (−30%)"),
        ("number", 100.0, Interval(77, 74, 80, 1), "open (−26% to −20%)"),
        ("number", 100.0, Interval(120, 115, 121, 1), "open (+15% to +21%)"),
        ("most", 100.0, Interval(90, 80, 95, 1), "enough"),
        ("most", 100.0, Interval(110, 105, 120, 1), "not enough"),
        ("most", 100.0, Interval(82, 27, 249, 1), "open"),
        ("least", 0.9, Interval(0.95, None, None, 1), "kept"),
        ("least", 0.9, Interval(0.8, 0.7, 0.85, 1), "broken"),
        ("least", 0.0, Interval(0.95, None, None, 1), "says nothing"),
        ("distance", 0.0, Interval(0.1, None, None, 1), "within 20%"),
        ("distance", 0.0, Interval(0.3, None, None, 1), "not within 20%"),
        ("distance", 0.0, Interval(0.226, 0.198, 0.253, 1), "open"),
        ("number", 100.0, Interval(249, 249, math.inf, 1), "not within 20%"),
        ("number", 100.0, Interval(110, 110, math.inf, 1), "open"),
        ("number", 100.0, Interval(249, 0, 249, 1), "open (−100% to +149%)"),
        ("number", None, Interval(1, None, None, 1), "not measured"),
    ):
        assert RuleRow("", "", "", [], predicted, measured, kind).verdict == says


def test_pair__is_apart_if_its_intervals_do_not_meet():
    def apart(ends: tuple[float, float], single: bool) -> bool | None:
        other = Interval(sum(ends) / 2, None, None, 1) if single else Interval(sum(ends) / 2, *ends, 3)
        return arrival.Pair("Figure 4", "depth", "packets", Interval(10, 9, 11, 3), other).is_apart

    ends = ((7, 8.9), (7, 9), (11, 12), (11.1, 12))
    assert [apart(pair, False) for pair in ends] == [True, False, False, True]
    assert [apart(pair, True) for pair in ends] == [None] * 4


def test_choose__knows_figures_as_people_write_them():
    assert PAPER.choose(None) == PAPER.figures
    for texts, names in (
        (("5a",), ["figure_05a"]),
        (("5",), ["figure_05a", "figure_05b"]),
        (("figure_04", "Figure 4"), ["figure_04"]),
        (("table1", "Table-1"), ["table_1"]),
        (("8,3", " figure 3, 8,3"), ["figure_03", "figure_08"]),  # in the order of the page, each once
    ):
        assert all([figure.name for figure in PAPER.choose(text)] == names for text in texts)
    assert paper.sweeps(PAPER.choose("11")) == ("reno-depth", "fairness-flows", "published", "fairness-buffers")
    for text in ("12", "3,12", "3,", "3;8"):
        with pytest.raises(ValueError, match="is not known; allowed: 1, 2"):
            PAPER.choose(text)


def test_verdict__is_the_ratio_unless_the_interval_has_the_prediction():
    said = [
        Fact("u", "", predicted, measured, "").verdict
        for predicted, measured in (
            (100.0, Interval(97, 94, 101, 3)), (100.0, Interval(77, 74, 80, 3)), (1.0, Interval(1, None, None, 1)),
            (0.0, Interval(2, None, None, 1)), (41.0, Interval(249, 249, math.inf, 1)), (None, Interval(1, 1, 1, 3)),
            (1.0, None), (0.0, Interval(2, 1, 3, 3)),
        )
    ]  # fmt: skip
    assert said == [
        "as predicted", "0.77 times the prediction", "as predicted", "", "not as predicted", "", "", "not as predicted"
    ]  # fmt: skip


def test_intervals__meet_if_they_have_something_in_common():
    point, alone = Interval(1, 0.5, 2, 3), Interval(1, None, None, 1)
    for first, other, resolution, said in (
        (point, Interval(3, 2, 4, 3), 0.0, True),
        (point, Interval(3, 2.1, 4, 3), 0.0, False),
        (Interval(3, 2.1, 4, 3), point, 0.0, False),
        (alone, Interval(1, 0, 2, 3), 0.0, True),
        (Interval(0, 0, 0.9, 3), alone, 0.0, False),
        (alone, alone, 0.0, None),
        (Interval(0.5, 0.5, 0.5, 3), Interval(0.506, None, None, 1), 0.006, True),
        (Interval(0.5, 0.5, 0.5, 3), Interval(0.507, None, None, 1), 0.006, False),
    ):
        assert clocks.ClockComparison(first, other, resolution).meet is said, (first, other)
