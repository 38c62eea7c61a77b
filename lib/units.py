# SPDX-License-Identifier: MIT
"""Quantities with units, spelled as in tc(8), read exactly.

A quantity is a decimal number and a unit, with no space between: `200mbit`, `10ms`, `300kb`, `166p`, `0.5bdp`. Units
are case-insensitive. Amounts are fractions, so the text becomes an integer without a rounding error. What has one
meaning only is read (`100G` of a rate, `1.5e6`), what means bits to some and bytes to others is refused (`100gbps`,
`Mb`). Sizes in lower case (`300kb`) are bytes, as to tc.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

# Dimension -> unit -> size in the dimension's base unit. The base unit comes first. Messages list these units; ALIASES
# has the other spellings of tc. k, m and g are powers of 1000 everywhere; ki, mi and gi are powers of 1024
# (IEC 80000-13). tc differs for sizes: its k, m and g are powers of 1024.
DIMENSIONS: dict[str, dict[str, int]] = {
    "rate": {
        "bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9, "tbit": 10**12,
    },
    "time": {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9},
    "bytes": {
        "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30,
    },
    "packets": {"p": 1},
    "cells": {"c": 1},
    "bdp": {"bdp": 1},
    "rtt": {"rtt": 1},
}  # fmt: skip
ALIASES = {
    "nsec": "ns", "nsecs": "ns", "usec": "us", "usecs": "us", "msec": "ms", "msecs": "ms", "sec": "s", "secs": "s",
    "bits": "bit", "pkt": "p", "pkts": "p", **{f"{prefix}bit/s": f"{prefix}bit" for prefix in ("", *"kmgt")},
}  # fmt: skip
EXAMPLES = {
    "rate": "200mbit", "time": "10ms", "bytes": "300kB", "packets": "166p", "cells": "30000c", "bdp": "0.5bdp",
    "rtt": "1000rtt",
}  # fmt: skip

PREFIXES = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}  # alone: of a rate or a count
# bps: bytes per second to tc, bits per second to the industry.
_EITHER = re.compile(r"([kmgt]?)b(ps|/s)?")
_SIZE_OF_EITHER = re.compile("([KMG])b")

_QUANTITY = re.compile(r"([+-]?)([0-9]{1,18}(?:\.[0-9]{1,18})?(?:[eE][+-]?[0-9]{1,2})?)([A-Za-z][A-Za-z/]{0,7})?")
_UNIT_OF = {unit: (dimension, factor) for dimension, units in DIMENSIONS.items() for unit, factor in units.items()}


class Quantity(NamedTuple):
    """`amount` in the base unit of `dimension`: bit/s, ns, bytes, packets, cells, BDPs, RTTs. `text` is as given."""

    amount: Fraction
    dimension: str
    text: str


def allowed(dimensions: Iterable[str]) -> str:
    """The allowed values, for an error message: the units of each dimension with an example."""
    return "; ".join(f"{', '.join(DIMENSIONS[name])} as in {EXAMPLES[name]}" for name in dimensions)


def parse(value: object, dimensions: tuple[str, ...]) -> Quantity:
    """Parses a quantity of one of `dimensions`. Raises ValueError: what is wrong and what is allowed."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError(f"is not a quantity; allowed: {allowed(dimensions)}")
    text = str(value).strip()
    match = _QUANTITY.fullmatch(text)
    if not match:
        raise ValueError(f"is not a number with a unit; allowed: {allowed(dimensions)}")
    sign, number, spelled = match[1], match[2], match[3] or ""
    unit = ALIASES.get(spelled.lower(), spelled.lower())
    if dimensions == ("rate",) and unit in PREFIXES:
        unit += "bit"
    if (either := _EITHER.fullmatch(unit)) and (either[2] or dimensions == ("rate",)):
        bits = f"{either[1]}bit"
        as_bytes = show(int(8 * Fraction(number) * _UNIT_OF[bits][1]), "rate")
        raise ValueError(f"means bits to some and bytes to others; write {number}{bits} for bits, {as_bytes} for bytes")
    if "bytes" in dimensions and (either := _SIZE_OF_EITHER.fullmatch(spelled)):
        of_bits, as_bytes = (f"{text}{either[1]}B" for text in (f"{float(Fraction(number) / 8):.12g}", number))
        raise ValueError(f"means bits to some and bytes to others; write {of_bits} for bits, {as_bytes} for bytes")
    if not unit:
        raise ValueError(f"is a number without a unit; allowed: {allowed(dimensions)}")
    dimension, factor = _UNIT_OF.get(unit, (None, 0))
    if dimension is None:
        raise ValueError(f"has the unknown unit {spelled!r}; allowed: {allowed(dimensions)}")
    if dimension not in dimensions:
        raise ValueError(f"has a unit of {dimension} ({spelled}); allowed: {allowed(dimensions)}")
    if sign == "-":
        raise ValueError(f"is negative; allowed: {allowed(dimensions)}")
    return Quantity(Fraction(number) * factor, dimension, text)


def integer(quantity: Quantity) -> int:
    """The amount in base units. Raises ValueError if that is not a whole number: nothing is rounded silently."""
    if quantity.amount.denominator != 1:
        base = next(iter(DIMENSIONS[quantity.dimension]))
        raise ValueError(f"is not a whole number of {base}; allowed: multiples of 1{base}")
    return int(quantity.amount)


def nearest(amount: Fraction) -> int:
    """The nearest whole number, halves up."""
    return (2 * amount.numerator + amount.denominator) // (2 * amount.denominator)


def show(amount: int, dimension: str) -> str:
    """An exact text of a rate or time for people, in the largest unit that leaves at most three decimals."""
    for unit, factor in reversed(DIMENSIONS[dimension].items()):
        if amount >= factor and (amount * 1000) % factor == 0:
            return f"{float(Fraction(amount, factor)):.3f}".rstrip("0").rstrip(".") + unit
    return f"{amount}{next(iter(DIMENSIONS[dimension]))}"
