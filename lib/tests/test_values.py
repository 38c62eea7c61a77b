# SPDX-License-Identifier: MIT
"""Readers of values: the values that readers accept, and the errors for all other values."""

from fractions import Fraction
from typing import Any

import pytest

from lib.values import choice, number, quantity, whole_number

SHARE = number("0", "1", open_ends=True)


def test_readers__give_the_typed_value() -> None:
    for read, value, expected in (
        (whole_number(0, 9), " 7 ", 7),
        (whole_number(0, 9), 7, 7),
        (whole_number(-9, 9), "-7", -7),
        (number("0", "1"), "0.1", Fraction(1, 10)),
        (number("0", "1", decimals=3), "1e-3", Fraction(1, 1000)),
        (number("0", "1", percent=True), "99%", Fraction(99, 100)),
        (choice("reno", "cubic"), "Reno", "reno"),
    ):
        reader: Any = read
        assert reader(value) == expected
    rtts = quantity("time", "rtt", low="1ms", high="1s")
    assert (rtts("1s").amount, rtts("5000rtt").amount) == (10**9, 5000)
    assert quantity("rate", exact=False)("0.5bit").amount == Fraction(1, 2)


def test_readers__name_the_problem_and_the_allowed_values() -> None:
    for read, value, problem in (
        (whole_number(1, 9), "0", "is out of bounds; allowed: 1 to 9"),
        (whole_number(1, 9, "digits"), "10", r"is out of bounds; allowed: 1 to 9 \(digits\)"),
        (whole_number(1, 9), "1.0", "is not a whole number; allowed: 1 to 9"),
        (whole_number(1, 9), True, "is not a whole number"),
        (whole_number(1, 9), [1], "is not a whole number"),
        (number("0", "1"), "50%", "is not a decimal number; allowed: 0 to 1$"),
        (number("0", "1", decimals=6), "0.1234567", "is not a number of at most six decimals"),
        (number("0", "1", decimals=6), "1e-7", "is not a number of at most six decimals"),
        (number("0", "1", percent=True), "101%", "is out of bounds; allowed: 0 to 1, or percent as in 99%"),
        (SHARE, "1", "is out of bounds; allowed: above 0 to below 1"),
        (SHARE, "0." + "9" * 18, "cannot be distinguished from 1; allowed: above 0 to below 1"),
        (choice("reno", "cubic"), ["reno"], "is not known; allowed: reno, cubic"),
        (choice("reno", problem="has no rule"), "bbr", "has no rule; allowed: reno"),
        (quantity("time", low="1ms", high="1s", why="slow"), "2s", r"is out of bounds; allowed: 1ms to 1s \(slow\)"),
        (quantity("packets", positive=True), "0p", "is zero; allowed: above zero, in p as in 166p"),
        (quantity("packets"), "0.5p", "is not a whole number of p"),
    ):
        reader: Any = read
        with pytest.raises(ValueError, match=f"^{problem}"):
            reader(value)
