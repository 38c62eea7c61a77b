# SPDX-License-Identifier: MIT
"""Verdicts on measured numbers, intervals that meet or not, and the names of figures."""

import math

import pytest

from analysis.arithmetic.statistics import Interval
from analysis.papers import clocks, paper
from analysis.papers.facts import Fact
from analysis.papers.spang2021 import PAPER, arrival
from analysis.papers.spang2021.table_rows import RuleRow


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
