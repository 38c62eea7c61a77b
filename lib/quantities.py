# SPDX-License-Identifier: MIT
"""Quantities as types of keys. `Rate("200mbit")` reads itself, prints itself as given, and converts itself. Raises
ValueError, whose text continues a sentence that begins with the value.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import ClassVar, NamedTuple, TypeVar

from lib import units, values
from lib.frames import ETHERNET_BYTES

Type = TypeVar("Type", bound="_Quantity")


class _Quantity(units.Quantity):
    dimensions: ClassVar[tuple[str, ...]]
    is_positive: ClassVar[bool] = False  # zero is refused

    def __new__(cls: type[Type], value: object) -> Type:
        return super().__new__(cls, *values.quantity(*cls.dimensions, positive=cls.is_positive)(value))

    def __getnewargs__(self) -> tuple[str]:
        return (self.text,)  # a copy reads the text

    def __str__(self) -> str:
        return self.text

    @classmethod
    def within(cls: type[Type], low: str, high: str, why: str = "") -> Callable[[object], Type]:
        """A reader with bounds of the first dimension, as in 64kbit; `why` is the reason for the bounds."""
        read = values.quantity(*cls.dimensions, low=low, high=high, why=why, positive=cls.is_positive)
        return lambda value: cls(read(value).text)

    @property
    def base_units(self) -> int:
        """The amount in base units."""
        return units.integer(self)


class Rate(_Quantity):
    dimensions = ("rate",)

    @property
    def bps(self) -> int:
        return self.base_units


class Time(_Quantity):
    dimensions = ("time",)

    @property
    def ns(self) -> int:
        return self.base_units


class TimeOrRtts(_Quantity):
    dimensions = ("time", "rtt")

    def ns(self, rtt_ns: int) -> int:
        return units.nearest(self.amount * rtt_ns) if self.dimension == "rtt" else self.base_units


class Duration(TimeOrRtts):
    is_positive = True


class Packets(_Quantity):
    dimensions = ("packets",)


class Size(_Quantity):
    dimensions = ("bytes",)


class Window(_Quantity):
    dimensions = ("bytes", "packets")
    is_positive = True

    def in_bytes(self, mtu_bytes: int) -> int:
        return self.base_units * (mtu_bytes if self.dimension == "packets" else 1)


class Buffer(_Quantity):
    """The length of a queue."""

    dimensions = ("bdp", "packets", "bytes", "time")
    is_positive = True

    def threshold(self, bdp: Fraction, rate_bps: int, wire_bytes: int, mtu: int) -> tuple[int, int | None]:
        """In packets, and in bytes if it was given in bytes. Bytes, BDPs and times are rounded to the nearest packet,
        at least 1.
        """
        if self.dimension == "packets":
            return self.base_units, None
        packets = {
            "bytes": self.amount / (mtu + ETHERNET_BYTES),
            "bdp": self.amount * bdp,
            "time": self.amount * rate_bps / (8 * 10**9 * wire_bytes),
        }[self.dimension]
        return max(1, units.nearest(packets)), self.base_units if self.dimension == "bytes" else None


class Buffers(NamedTuple):
    """Lengths of a queue from `low` to `high`, as in 10p..1bdp."""

    low: Buffer
    high: Buffer

    def __str__(self) -> str:
        return f"{self.low}..{self.high}"
