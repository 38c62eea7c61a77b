# SPDX-License-Identifier: MIT
"""Units spelled as in tc(8), exact to the last digit."""

from fractions import Fraction

import pytest

from lib import units


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("200mbit", 200_000_000), ("200Mbit", 200_000_000), ("1.5gbit", 1_500_000_000), ("64kbit", 64_000),
        ("1bps", 8), ("25mbps", 200_000_000), ("0.1gbit", 100_000_000), ("1000000bit", 1_000_000),
    ],
)  # fmt: skip
def test_parse__rates_are_decimal_and_bps_is_bytes(text: str, amount: int) -> None:
    assert units.whole(units.parse(text, ("rate",))) == amount


def test_notes__say_that_bps_are_bytes() -> None:
    given = {"rate": "10gbps", "rtt": "10ms", "access": "5mbit", "cc": "reno", "flows": 3}
    assert units.notes(given) == ["note: RATE=10gbps is 80gbit: as in tc, bps are bytes per second"]


@pytest.mark.parametrize(
    ("text", "amount"),
    [("10ms", 10**7), ("250us", 250_000), ("1s", 10**9), ("0.3ms", 300_000), ("17ns", 17), ("2secs", 2 * 10**9)],
)
def test_parse__times_are_exact(text: str, amount: int) -> None:
    assert units.whole(units.parse(text, ("time",))) == amount


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("300kB", 300_000),
        ("2.236MB", 2_236_000),
        ("9000b", 9000),
        ("0.5kb", 500),
        ("300KiB", 307_200),
        ("1mib", 1 << 20),
    ],
)
def test_parse__sizes_are_decimal_and_kib_is_1024(text: str, amount: int) -> None:
    assert units.whole(units.parse(text, ("bytes",))) == amount


def test_parse__a_fraction_is_kept_whole() -> None:
    assert units.parse("0.1bdp", ("bdp",)).amount == Fraction(1, 10)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("10", "without a unit"), (10, "without a unit"), ("", "not a number with a unit"),
        ("ms", "not a number with a unit"),
        ("10 ms", "not a number with a unit"), ("1e3ms", "not a number"), ("10parsec", "unknown unit 'parsec'"),
        ("10mbit", "unit of rate"), ("-1ms", "negative"), (True, "not a quantity"), (None, "not a quantity"),
        (["10ms"], "not a quantity"), ("9" * 99 + "ms", "not a number"), ("１０ms", "not a number"),
        ("nan", "not a number"),
    ],
)  # fmt: skip
def test_parse__refuses_values_that_are_no_time(value: object, says: str) -> None:
    with pytest.raises(ValueError, match=says) as error:
        units.parse(value, ("time",))
    assert "allowed: ns, us, ms, s as in 10ms" in str(error.value)


def test_whole__never_rounds() -> None:
    with pytest.raises(ValueError, match="not a whole number of ns"):
        units.whole(units.parse("0.5ns", ("time",)))


@pytest.mark.parametrize(("amount", "whole"), [("162.5", 163), ("162.49", 162), ("0.5", 1), ("0", 0), ("163", 163)])
def test_nearest__halves_go_up(amount: str, whole: int) -> None:
    assert units.nearest(Fraction(amount)) == whole


@pytest.mark.parametrize(
    ("amount", "dimension", "text"),
    [(200_000_000, "rate", "200mbit"), (10**10, "time", "10s"), (1_500_000, "time", "1.5ms"), (0, "time", "0ns"),
     (1_000_001, "rate", "1000.001kbit")],
)  # fmt: skip
def test_show__is_exact(amount: int, dimension: str, text: str) -> None:
    assert units.show(amount, dimension) == text
    assert units.whole(units.parse(text, (dimension,))) == amount
