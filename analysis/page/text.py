# SPDX-License-Identifier: MIT
"""Numbers as pages show them. What could not be measured, None, is a dash."""

from __future__ import annotations

from analysis.figures import common
from analysis.figures.common import count

__all__ = ["count", "number", "percent", "si"]


def number(value: float | int | None, digits: int = 4) -> str:
    """A number for reading: whole ones in full with thin spaces, others to `digits` significant digits."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) or (float(value).is_integer() and abs(value) < 1e15):
        return f"{int(value):,}".replace(",", "\u2009")
    return f"{value:.{digits}g}"


def percent(value: float | None, digits: int = 2) -> str:
    """A share in percent."""
    return "–" if value is None else f"{value * 100:.{digits}f} %"


def si(value: float | None, unit: str) -> str:
    """A number with an SI prefix and its unit."""
    return "–" if value is None else common.si(value, unit)
