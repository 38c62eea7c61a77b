# SPDX-License-Identifier: MIT
"""Verdicts of Table 1's rows, headlines of a page, fits of Figures 5b and 7, and the names of figures."""

import math

import numpy as np
import pytest

from analysis.papers import document, paper
from analysis.papers.document import DrawnFigure
from analysis.papers.facts import Fact
from analysis.papers.spang2021 import PAPER, arrival, figure_05b, figure_07
from analysis.papers.spang2021.table_rows import RuleRow
from analysis.statistics import Interval


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


def test_headlines__are_the_facts_that_answer_a_question():
    (figure_05a,) = PAPER.choose("5a")
    fact = Fact("Reno, n = 1: least buffer", "BDP", 100.0, Interval(77, 74, 80, 3), "packets", "", headline=True)
    figure = DrawnFigure(figure_05a, [fact, fact._replace(headline=False)], [], [])
    (headline,) = document.headlines([figure])
    assert headline.what == "[Figure 5a](#figure-5a). Reno, n = 1: least buffer"


def test_figure_05b__fits_nothing_at_full_utilization():
    halves = {n: Interval(1 - 0.8 / n, None, None, 1) for n in (1, 2, 4, 8)}
    full = {16: Interval(1.0, None, None, 1), 32: Interval(1 - 1e-5, None, None, 1)}
    law = figure_05b._law(halves | full, 6e-4, None)
    assert law is not None
    assert (law.points, law.exponent) == (4, pytest.approx(-1))
    assert figure_05b._law(full, 6e-4, None) is None


def test_distance__is_zero_for_uniform_windows():
    shares = np.linspace(2 / 3, 4 / 3, 2001)
    assert figure_07._distance(shares, np.ones(2001)) == pytest.approx(0, abs=1e-3)
    assert figure_07._distance(np.array([1.0]), np.array([7])) == pytest.approx(0.5)
    assert figure_07._distance(np.array([0.1, 3.0]), np.array([1, 1])) == pytest.approx(0.5)
    assert figure_07._distance(np.array([3.0]), np.array([1])) == 1


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
