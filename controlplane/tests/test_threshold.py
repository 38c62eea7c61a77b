# SPDX-License-Identifier: MIT
"""Thresholds in every unit, on switches that compare packets and bytes, and on one that compares cells."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controlplane.policy import Unit
from controlplane.targets import TARGETS
from controlplane.threshold import DIMENSIONS, Conversion, Converted, convert, convert_rate
from lib import units

SOFT = TARGETS["soft"].capabilities
IN_CELLS = replace(SOFT, name="cells", depth_units=(Unit.CELLS,), cell_bytes=80)
LAB = Conversion(mtu_bytes=1500, rate_bps=200_000_000, rtt_ns=10_000_000)


def parse(text: str) -> units.Quantity:
    return units.parse(text, DIMENSIONS)


@pytest.mark.parametrize(
    ("text", "value", "unit"), [("163p", 163, Unit.PACKETS), ("300kB", 300_000, Unit.BYTES), ("1p", 1, Unit.PACKETS)]
)
def test_convert__into_a_unit_of_the_target_is_exact(text: str, value: int, unit: Unit) -> None:
    assert convert(parse(text), SOFT, Conversion()) == Converted(value, unit)


@pytest.mark.parametrize(
    ("text", "value", "note"),
    [
        ("1bdp", 163, "1bdp is 162.549 full packets: 163"),
        ("0.5bdp", 81, "0.5bdp is 81.274 full packets: 81"),
        ("0.001bdp", 1, "0.001bdp is 0.163 full packets: 1"),
        ("61520ns", 1, ""),  # 1538 bytes at 200 Mbit/s
        ("250us", 4, "250us is 4.064 full packets: 4"),
    ],
)
def test_convert__times_and_bdps_are_the_nearest_packets(text: str, value: int, note: str) -> None:
    assert convert(parse(text), SOFT, LAB) == Converted(value, Unit.PACKETS, note)


@pytest.mark.parametrize(
    ("text", "value", "note"),
    [
        ("30000c", 30_000, ""),
        (
            "163p",
            163 * 19,
            "163p; 163 packets of 1514 bytes are 3097 cells of 80 bytes, which hold more short packets",
        ),
        ("1bdp", 163 * 19, "1bdp is 162.549 full packets: 163; 163 packets of 1514 bytes are 3097 cells of 80 bytes"),
        ("300kB", 3750, "300kB is 3750 cells of 80 bytes, 300000 bytes; the last cell of each packet is rarely full"),
        ("1b", 1, "1b is 1 cells of 80 bytes, 80 bytes"),
    ],
)
def test_convert__reports_rounding_to_cells(text: str, value: int, note: str) -> None:
    converted = convert(parse(text), IN_CELLS, LAB)
    assert (converted.value, converted.unit) == (value, Unit.CELLS)
    assert converted.note.startswith(note)
    assert bool(converted.note) == bool(note)


@pytest.mark.parametrize(
    ("text", "capabilities", "conversion", "says"),
    [
        ("30000c", SOFT, LAB, "is in cells, which soft does not have; allowed: p, b, kb, mb, gb, a time, bdp"),
        ("1bdp", SOFT, Conversion(1500, 10**9), "needs the base RTT; give `rtt`"),
        ("1bdp", SOFT, Conversion(1500, None, 1), "needs the rate"),
        ("1ms", SOFT, Conversion(None, 10**9), "needs the size of full packets"),
        ("5p", IN_CELLS, Conversion(), "needs the size of full packets"),
        ("5p", replace(IN_CELLS, cell_bytes=None), LAB, "needs the cell size of cells"),
        ("0.5p", SOFT, LAB, "is not a whole number of p"),
    ],
)
def test_convert__names_missing_parameters(text: str, capabilities, conversion: Conversion, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        convert(parse(text), capabilities, conversion)


def test_convert_rate__is_of_full_packets_where_packets_are_served() -> None:
    assert convert_rate(50_000_000, SOFT, Conversion()) == Converted(50_000_000, "bps")
    converted = convert_rate(50_000_000, TARGETS["bmv2"].capabilities, LAB)
    assert (converted.value, converted.unit) == (4064, "pps")
    assert converted.note == (
        "50000000 bit/s is 4064 packets/s, 50003456 bit/s, for full packets only (1538 bytes on the wire)"
    )
