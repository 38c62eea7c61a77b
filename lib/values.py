# SPDX-License-Identifier: MIT
"""Readers of single values. A reader takes a value as a user wrote it and returns it typed. Its ValueError continues a
sentence that begins with the value: what is wrong, and what is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

from lib import units

SIX_DECIMALS = 6
_WHOLE = re.compile(r"([+-]?[0-9]{1,20}(?:(?:\.[0-9]{1,18})?(?:[eE]\+?[0-9]{1,2}|(?=[kKmM])))?)([kKmM]?)")
_IN_WORDS = {3: "three", SIX_DECIMALS: "six"}


def quantity(
    *dimensions: str, low: str = "", high: str = "", why: str = "", positive: bool = False, exact: bool = True
) -> Callable[[object], units.Quantity]:
    """Quantities of `dimensions`. `low` and `high` bound the quantities of the first dimension; `why` is the reason for
    the bounds. `positive` refuses zero. `exact` refuses fractions of a base unit, except of bdp and rtt.
    """

    def read(value: object) -> units.Quantity:
        parsed = units.parse(value, dimensions)
        if low and parsed.dimension == dimensions[0]:
            least, most = (units.parse(bound, dimensions).amount for bound in (low, high))
            if not least <= parsed.amount <= most:
                raise ValueError(_out_of_bounds(low, high, why))
        if positive and not parsed.amount:
            raise ValueError(f"is zero; allowed: above zero, in {units.allowed(dimensions)}")
        if exact and parsed.dimension not in ("bdp", "rtt"):
            units.integer(parsed)
        return parsed

    return read


def whole_number(low: int, high: int, why: str = "") -> Callable[[object], int]:
    """Whole numbers from `low` to `high`, also as in 20k and 1.5e6."""

    def read(value: object) -> int:
        match = _WHOLE.fullmatch(str(value).strip())
        amount = Fraction(match[1]) * units.PREFIXES.get(match[2].lower(), 1) if match else Fraction(1, 2)
        if isinstance(value, bool) or amount.denominator != 1:
            raise ValueError(f"is not a whole number; allowed: {low} to {high}{why and f' ({why})'}")
        if not low <= amount <= high:
            raise ValueError(_out_of_bounds(low, high, why))
        return int(amount)

    return read


def number(
    low: str, high: str, percent: bool = False, open_ends: bool = False, decimals: int = 18
) -> Callable[[object], Fraction]:
    """Decimal numbers, kept exact, from `low` to `high`, with at most `decimals` decimals. `open_ends` excludes the
    bounds, `percent` also allows 99%.
    """
    least, most = Fraction(low), Fraction(high)
    within = f"above {low} to below {high}" if open_ends else f"{low} to {high}"
    form = f"allowed: {within}" + (", or percent as in 99%" if percent else "")
    kind = f"number of at most {_IN_WORDS[decimals]} decimals" if decimals in _IN_WORDS else "decimal number"
    pattern = re.compile(rf"([+-]?[0-9]{{1,18}}(?:\.[0-9]{{1,18}})?(?:[eE][+-]?[0-9]{{1,2}})?)({'%?' * percent})")

    def read(value: object) -> Fraction:
        match = pattern.fullmatch(str(value).strip())
        if isinstance(value, bool) or not match or (Fraction(match[1]) * 10**decimals).denominator != 1:
            raise ValueError(f"is not a {kind}; {form}")
        amount = Fraction(match[1]) / (100 if match[2] else 1)
        if not least <= amount <= most or (open_ends and amount in (least, most)):
            raise ValueError(f"is out of bounds; {form}")
        if open_ends and float(amount) in (least, most):  # float() rounded it to the bound
            raise ValueError(f"cannot be distinguished from {float(amount):g}; {form}")
        return amount

    return read


def choice(*choices: str, problem: str = "is not known") -> Callable[[object], str]:
    """One of `choices`, case-insensitive."""

    def read(value: object) -> str:
        text = str(value).strip().lower()
        if text not in choices:
            raise ValueError(f"{problem}; allowed: {', '.join(choices)}")
        return text

    return read


def _out_of_bounds(low: object, high: object, why: str) -> str:
    return f"is out of bounds; allowed: {low} to {high}{why and f' ({why})'}"
