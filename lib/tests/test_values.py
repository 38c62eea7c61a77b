# SPDX-License-Identifier: MIT
"""Readers of values: the values that readers accept, and the errors for all other values."""

from collections.abc import Callable
from fractions import Fraction

import pytest

from lib.values import choice, number, optional, quantity, unknown_key, whole_number


@pytest.mark.parametrize(
    ("read", "value", "expected"),
    [
        (whole_number(0, 9), " 7 ", 7),
        (whole_number(0, 9), 7, 7),
        (whole_number(-9, 9), "-7", -7),
        (number("0", "1"), "0.1", Fraction(1, 10)),
        (number("0", "1", percent=True), "99%", Fraction(99, 100)),
        (choice("reno", "cubic"), "Reno", "reno"),
        (optional(choice("reno")), None, None),
        (lambda text: quantity("time", "rtt", low="1ms", high="1s")(text).amount, "1s", 10**9),
        (lambda text: quantity("time", "rtt", low="1ms", high="1s")(text).amount, "5000rtt", 5000),
        (lambda text: quantity("rate", exact=False)(text).amount, "0.5bit", Fraction(1, 2)),
    ],
)
def test_readers__give_the_typed_value(read: Callable[[object], object], value: object, expected: object) -> None:
    assert read(value) == expected


@pytest.mark.parametrize(
    ("read", "value", "problem"),
    [
        (whole_number(1, 9), "0", "is out of bounds; allowed: 1 to 9"),
        (whole_number(1, 9, "digits"), "10", r"is out of bounds; allowed: 1 to 9 \(digits\)"),
        (whole_number(1, 9), "1.0", "is not a whole number; allowed: 1 to 9"),
        (whole_number(1, 9), True, "is not a whole number"),
        (whole_number(1, 9), [1], "is not a whole number"),
        (number("0", "1"), "50%", "is not a decimal number; allowed: 0 to 1$"),
        (number("0", "1", decimals=6), "0.1234567", "is not a number of at most six decimals; allowed: 0 to 1"),
        (number("0", "1", percent=True), "101%", "is out of bounds; allowed: 0 to 1, or percent as in 99%"),
        (number("0", "1", open_ends=True), "1", "is out of bounds; allowed: above 0 to below 1"),
        (
            number("0", "1", open_ends=True),
            "0." + "9" * 18,
            "cannot be distinguished from 1; allowed: above 0 to below 1",
        ),
        (choice("reno", "cubic"), ["reno"], "is not known; allowed: reno, cubic"),
        (choice("reno", problem="has no rule"), "bbr", "has no rule; allowed: reno"),
        (quantity("time", low="1ms", high="1s", why="slow"), "2s", r"is out of bounds; allowed: 1ms to 1s \(slow\)"),
        (quantity("packets", positive=True), "0p", "is zero; allowed: above zero, in p as in 166p"),
        (quantity("packets"), "0.5p", "is not a whole number of p"),
    ],
)
def test_readers__name_the_problem_and_the_allowed_values(
    read: Callable[[object], object], value: object, problem: str
) -> None:
    with pytest.raises(ValueError, match=f"^{problem}"):
        read(value)


def test_unknown_key__names_the_nearest_else_all() -> None:
    assert unknown_key("RAET", ("rate", "rtt")) == "is not a parameter; did you mean RATE?"
    assert unknown_key("colour", ("rate", "rtt")) == "is not a parameter; allowed: RATE, RTT"
