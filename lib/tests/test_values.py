# SPDX-License-Identifier: MIT
"""Readers of values: the values that readers accept, and the errors for all other values. Units as in tc(8), exact
to the last digit; text and errors for a terminal.
"""

import os
from fractions import Fraction
from typing import Any

import pytest

from lib import units, values
from lib.errors import MOST_CHARACTERS, BadValue
from lib.terminal import located, one_line, printable
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


# Units ----------------------------------------------------------------------------------------------------------------


AMOUNTS = {
    "rate": {
        "200mbit": 200_000_000, "200Mbit": 200_000_000, "1.5gbit": 1_500_000_000, "64kbit": 64_000,
        "0.1gbit": 100_000_000, "1000000bit": 1_000_000, "100G": 10**11, "1.5e6bit": 1_500_000, "2Mbit/s": 2_000_000,
        "1e-3gbit": 1_000_000,
    },
    "time": {"10ms": 10**7, "250us": 250_000, "1s": 10**9, "0.3ms": 300_000, "17ns": 17, "2secs": 2 * 10**9},
    "bytes": {
        "300kB": 300_000, "2.236MB": 2_236_000, "9000b": 9000, "0.5kb": 500, "300KiB": 307_200, "1mib": 1 << 20,
    },
}  # fmt: skip


def test_parse__is_decimal_and_exact() -> None:
    for dimension, amounts in AMOUNTS.items():
        for text, amount in amounts.items():
            assert units.integer(units.parse(text, (dimension,))) == amount, text
    assert units.parse("0.1bdp", ("bdp",)).amount == Fraction(1, 10)
    with pytest.raises(ValueError, match="not a whole number of ns"):
        units.integer(units.parse("0.5ns", ("time",)))


def test_parse__refuses_values_that_are_no_time() -> None:
    refused: list[tuple[object, str]] = [
        ("10", "without a unit"), (10, "without a unit"), ("", "not a number with a unit"),
        ("ms", "not a number with a unit"), ("10 ms", "not a number with a unit"),
        ("10parsec", "unknown unit 'parsec'"), ("10mbit", "unit of rate"), ("-1ms", "negative"),
        (True, "not a quantity"), (None, "not a quantity"), (["10ms"], "not a quantity"),
        ("9" * 99 + "ms", "not a number"), ("１０ms", "not a number"), ("nan", "not a number"),
    ]  # fmt: skip
    for value, says in refused:
        with pytest.raises(ValueError, match=says) as error:
            units.parse(value, ("time",))
        assert "allowed: ns, us, ms, s as in 10ms" in str(error.value)


def test_parse__refuses_letters_that_mean_bits_or_bytes() -> None:
    """The two spellings that it offers are read, and are a factor of 8 apart."""
    for text in ("100gbps", "100Gbps", "100GB/s", "2.5mbps", "100Mb", "2.5MB"):
        with pytest.raises(ValueError, match="bits to some and bytes to others") as error:
            units.parse(text, ("rate",))
        bits, of_bytes = (word for word in str(error.value).replace(",", "").split() if word.endswith("bit"))
        assert units.parse(of_bytes, ("rate",)).amount == 8 * units.parse(bits, ("rate",)).amount
    for text in ("20Mb", "0.5Gb"):
        with pytest.raises(ValueError, match="bits to some and bytes to others") as error:
            units.parse(text, ("bdp", "bytes"))
        of_bits, in_bytes = (word for word in str(error.value).replace(",", "").split() if word.endswith("B"))
        assert units.parse(in_bytes, ("bytes",)).amount == 8 * units.parse(of_bits, ("bytes",)).amount
    with pytest.raises(ValueError, match="unknown unit 'k'"):  # 1000 or 1024 bytes, or packets
        units.parse("20k", ("bytes", "packets"))


def test_whole_number__reads_what_has_one_meaning() -> None:
    read = values.whole_number(1, 10**7)
    assert [read(text) for text in ("20k", "1.5e6", "2M", 7)] == [20_000, 1_500_000, 2_000_000, 7]
    for text in ("1.5", "20kk", "1e-3", "k", True):
        with pytest.raises(ValueError, match="not a whole number"):
            read(text)


def test_nearest_and_show__round_halves_up_and_are_exact() -> None:
    for amount, whole in (("162.5", 163), ("162.49", 162), ("0.5", 1), ("0", 0), ("163", 163)):
        assert units.nearest(Fraction(amount)) == whole
    for shown, dimension, text in (
        (200_000_000, "rate", "200mbit"), (10**10, "time", "10s"), (1_500_000, "time", "1.5ms"), (0, "time", "0ns"),
        (1_000_001, "rate", "1000.001kbit"),
    ):  # fmt: skip
        assert units.show(shown, dimension) == text


def test_printable__escapes_what_controls_a_terminal() -> None:
    assert printable("a buffer of 5\u2009816 packets, \u00b5s") == "a buffer of 5 816 packets, \u00b5s"
    assert printable("red\x1b[31m\n") == "red\\x1b[31m\\n"


def test_error__has_a_place_and_a_reason() -> None:
    for error, line in (
        (OSError(28, os.strerror(28)), "x: No space left on device"),
        (OSError(28, os.strerror(28), "y"), "y: No space left on device"),
        (OSError("of a\nlibrary"), "x: of a library"),
        (OSError(), "x: OSError"),
    ):
        assert located(error, "x") == line
    assert one_line(ValueError()) == "ValueError"


def test_error__about_a_long_word_keeps_what_is_allowed() -> None:
    text = str(BadValue("TABLES", "t.txt", f"has no table {'x' * 10**6}; allowed: forward"))
    assert len(text) < MOST_CHARACTERS + 10
    assert text.startswith("TABLES=t.txt has no table")
    assert text.endswith("; allowed: forward")
