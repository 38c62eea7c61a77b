# SPDX-License-Identifier: MIT
"""Converts thresholds and rates from users' units (packets, bytes, cells, time, BDP; bit/s) to a target's units.

Amounts are fractions until the last step. A note reports every rounding and, for a conversion to cells or packets/s,
the assumption about packet lengths.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from controlplane.policy import Unit
from controlplane.switch import Capabilities
from lib.frames import ETHERNET_BYTES, WIRE_EXTRA_BYTES
from lib.units import Quantity, integer, nearest

DIMENSIONS = ("packets", "bytes", "cells", "time", "bdp")
NS_PER_S = 10**9


@dataclass(frozen=True)
class Conversion:
    """The parameters of conversions. None: not known; conversions that need the parameter are refused."""

    mtu_bytes: int | None = None
    rate_bps: int | None = None
    rtt_ns: int | None = None

    @property
    def frame_bytes(self) -> int:
        """The length of a full packet, as switches count it."""
        if self.mtu_bytes is None:
            raise ValueError("needs the size of full packets; give `mtu` as well")
        return self.mtu_bytes + ETHERNET_BYTES

    @property
    def wire_bits(self) -> int:
        return 8 * (self.frame_bytes + WIRE_EXTRA_BYTES)


@dataclass(frozen=True)
class Converted:
    """A whole number of `unit`. `note` describes rounding and assumptions of the conversion; '' if there is nothing to
    report.
    """

    value: int
    unit: str
    note: str = ""


def convert(quantity: Quantity, capabilities: Capabilities, conversion: Conversion) -> Converted:
    """The queue length `quantity` in a unit that the target compares. ValueError names the reason and the remedy."""
    units = capabilities.depth_units
    if quantity.dimension == "cells":
        if Unit.CELLS not in units:
            raise ValueError(
                f"is in cells, which {capabilities.name} does not have; allowed: p, b, kb, mb, gb, a time, bdp"
            )
        return Converted(integer(quantity), Unit.CELLS)
    if quantity.dimension == "bytes" and Unit.BYTES in units:
        return Converted(integer(quantity), Unit.BYTES)
    if quantity.dimension == "bytes":
        return _bytes_in_cells(integer(quantity), capabilities, quantity.text)
    packets = _packets(quantity, conversion)
    if Unit.PACKETS in units:
        return packets
    return _packets_in_cells(packets, capabilities, conversion, quantity.text)


def convert_rate(rate_bps: int, capabilities: Capabilities, conversion: Conversion) -> Converted:
    """The rate in the unit of the target's queues, bps or pps. ValueError as in `convert`."""
    if capabilities.rate_unit == "bps":
        return Converted(rate_bps, "bps")
    exact = Fraction(rate_bps, conversion.wire_bits)
    packets = max(1, nearest(exact))
    bits = f"{packets} packets/s, {packets * conversion.wire_bits} bit/s"
    note = f"{rate_bps} bit/s is {bits}, for full packets only ({conversion.wire_bits // 8} bytes on the wire)"
    return Converted(packets, "pps", note)


def _packets(quantity: Quantity, conversion: Conversion) -> Converted:
    if quantity.dimension == "packets":
        return Converted(integer(quantity), Unit.PACKETS)
    if conversion.rate_bps is None:
        raise ValueError("needs the rate of the port's queue; give `rate` as well")
    if quantity.dimension == "time":
        exact = quantity.amount * conversion.rate_bps / (NS_PER_S * conversion.wire_bits)
    else:
        if conversion.rtt_ns is None:
            raise ValueError("needs the base RTT; give `rtt` as well")
        exact = quantity.amount * conversion.rate_bps * conversion.rtt_ns / (NS_PER_S * conversion.wire_bits)
    packets = max(1, nearest(exact))
    note = "" if packets == exact else f"{quantity.text} is {_decimal(exact)} full packets: {packets}"
    return Converted(packets, Unit.PACKETS, note)


def _packets_in_cells(packets: Converted, capabilities: Capabilities, conversion: Conversion, text: str) -> Converted:
    cell_bytes = _cell_bytes(capabilities)
    cells_each = -(-(conversion.frame_bytes + capabilities.queued_extra_bytes) // cell_bytes)
    cells = packets.value * cells_each
    each = f"{conversion.frame_bytes} bytes"
    if capabilities.queued_extra_bytes:
        each = f"{conversion.frame_bytes} + {capabilities.queued_extra_bytes} bytes"
    note = f"{packets.value} packets of {each} are {cells} cells of {cell_bytes} bytes"
    return Converted(cells, Unit.CELLS, f"{packets.note or text}; {note}, which hold more short packets")


def _bytes_in_cells(size: int, capabilities: Capabilities, text: str) -> Converted:
    cell_bytes = _cell_bytes(capabilities)
    cells = max(1, nearest(Fraction(size, cell_bytes)))
    note = f"{text} is {cells} cells of {cell_bytes} bytes, {cells * cell_bytes} bytes"
    return Converted(cells, Unit.CELLS, f"{note}; the last cell of each packet is rarely full")


def _cell_bytes(capabilities: Capabilities) -> int:
    if capabilities.cell_bytes is None:
        raise ValueError(f"needs the cell size of {capabilities.name}, which only a connection knows")
    return capabilities.cell_bytes


def _decimal(exact: Fraction) -> str:
    return f"{float(exact):.3f}".rstrip("0").rstrip(".")
