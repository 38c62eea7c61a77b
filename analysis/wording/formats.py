# SPDX-License-Identifier: MIT
"""Amounts as text for people: in figures, pages and terminals. None, a quantity not measured, is a dash."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from runs.quantities import BY_NAME, Unit

_PREFIXES = (
    (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"),
)  # fmt: skip


def si(value: float | None, unit: str) -> str:
    """Four digits and an SI prefix: 200 Mb/s, 10 ms. Only seconds get prefixes below 1: half a byte is 0.5 B."""
    if value is None:
        return "–"
    for factor, prefix in _PREFIXES:
        if abs(value) >= factor * 0.9995 and (factor >= 1 or unit == "s"):
            return f"{value / factor:.4g} {prefix}{unit}"
    return f"{value:.4g} {unit}"


def number(value: float | int | None, digits: int = 4) -> str:
    """A whole number in full with thin spaces, any other number to `digits` significant digits."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) or (float(value).is_integer() and abs(value) < 1e15):
        return f"{int(value):,}".replace(",", "\u2009")
    return f"{value:.{digits}g}"


def count(value: float | None, noun: str) -> str:
    """A number of things: "1 packet", "2 packets"."""
    return f"{number(value)} {noun}{'' if value == 1 else 's'}"


def percent(value: float | None, digits: int = 2) -> str:
    """A share in percent."""
    return "–" if value is None else f"{value * 100:.{digits}f} %"


def text(unit: Unit, value: float | None, digits: int | None = None) -> str:
    """A measured value on a page. A value with a base unit gets four digits and a prefix."""
    if unit.base:
        return si(None if value is None else value / unit.base_over, unit.base)
    return percent(value, digits or 2) if unit.symbol == " %" else number(value, digits or 4)


def of(summary: Mapping[str, Any], name: str) -> str:
    """A quantity of a summary on a page."""
    quantity = BY_NAME[name]
    return text(quantity.unit, quantity.of(summary), quantity.digits)


def round_up(packets: float) -> int:
    """Whole packets, rounded up: a buffer smaller than a packet holds none. A rounding error adds no packet."""
    return math.ceil(packets - min(packets * 1e-9, 1e-3))


def duration(seconds: float) -> str:
    """For people: 45 s, 12 min, 3 h 05 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"
