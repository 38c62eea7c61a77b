# SPDX-License-Identifier: MIT
"""Amounts as text for people: SI prefixes, powers of 1000."""

from __future__ import annotations

import math

_PREFIXES = (
    (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"),
)  # fmt: skip


def si(value: float, unit: str) -> str:
    """12.5 MB, 1 ms: four digits; bytes and bits are never fewer than 1."""
    for factor, prefix in _PREFIXES:
        if value >= factor * 0.9995 or factor == (1e-9 if unit == "s" else 1.0):
            return f"{value / factor:.4g} {prefix}{unit}"
    raise AssertionError(value)


def whole(packets: float) -> int:
    """Whole packets, rounded up: a buffer of a part of a packet holds none. Rounding errors are not a packet."""
    return math.ceil(packets - min(packets * 1e-9, 1e-3))
