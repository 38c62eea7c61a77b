# SPDX-License-Identifier: MIT
"""The length of a queue that a user gives in packets, bytes, time or BDPs, in packets."""

from __future__ import annotations

from fractions import Fraction

from lib import units
from lib.frames import ETHERNET_BYTES
from lib.units import Quantity


def threshold(quantity: Quantity, bdp: Fraction, rate_bps: int, wire_bytes: int, mtu: int) -> tuple[int, int | None]:
    """A queue length in packets, and in bytes if `quantity` is in bytes. Bytes, BDPs and times are rounded to the
    nearest packet, at least 1.
    """
    if quantity.dimension == "bytes":
        size = units.whole(quantity)
        return max(1, units.nearest(Fraction(size, mtu + ETHERNET_BYTES))), size
    if quantity.dimension == "packets":
        return units.whole(quantity), None
    if quantity.dimension == "bdp":
        return max(1, units.nearest(quantity.amount * bdp)), None
    return max(1, units.nearest(quantity.amount * rate_bps / (8 * 10**9 * wire_bytes))), None
