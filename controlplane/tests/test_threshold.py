# SPDX-License-Identifier: MIT
"""Thresholds in every unit, on switches that compare packets and bytes, and on one that compares cells."""

from dataclasses import replace

import pytest

from controlplane.policy import Unit
from controlplane.switch import Capabilities
from controlplane.targets import TARGETS
from controlplane.threshold import DIMENSIONS, Conversion, Converted, convert, convert_rate
from lib import units

SOFT = TARGETS["soft"].capabilities
IN_CELLS = replace(SOFT, name="cells", depth_units=(Unit.CELLS,), cell_bytes=80)
LAB = Conversion(mtu_bytes=1500, rate_bps=200_000_000, rtt_ns=10_000_000)


def of(text: str, capabilities: Capabilities, conversion: Conversion = LAB) -> Converted:
    return convert(units.parse(text, DIMENSIONS), capabilities, conversion)


def test_convert__gives_the_nearest_packets_or_exact_bytes_and_notes_rounding() -> None:
    for text, value, unit, note in (
        ("163p", 163, Unit.PACKETS, ""),
        ("300kB", 300_000, Unit.BYTES, ""),
        ("1bdp", 163, Unit.PACKETS, "1bdp is 162.549 full packets: 163"),
        ("0.5bdp", 81, Unit.PACKETS, "0.5bdp is 81.274 full packets: 81"),
        ("0.001bdp", 1, Unit.PACKETS, "0.001bdp is 0.163 full packets: 1"),
        ("61520ns", 1, Unit.PACKETS, ""),  # 1538 bytes at 200 Mbit/s
        ("250us", 4, Unit.PACKETS, "250us is 4.064 full packets: 4"),
    ):
        assert of(text, SOFT) == Converted(value, unit, note)


def test_convert__into_cells_notes_its_assumption() -> None:
    for text, value, note in (
        ("30000c", 30_000, ""),
        ("163p", 163 * 19, "163p; 163 packets of 1514 bytes are 3097 cells of 80 bytes"),
        ("1bdp", 163 * 19, "1bdp is 162.549 full packets: 163; 163 packets of 1514 bytes are 3097 cells of 80 bytes"),
        ("300kB", 3750, "300kB is 3750 cells of 80 bytes, 300000 bytes"),
        ("1b", 1, "1b is 1 cells of 80 bytes, 80 bytes"),
    ):
        converted = of(text, IN_CELLS)
        assert (converted.value, converted.unit) == (value, Unit.CELLS)
        assert converted.note.startswith(note)
        assert bool(converted.note) == bool(note)


def test_convert__names_missing_parameters() -> None:
    for text, capabilities, conversion, says in (
        ("30000c", SOFT, LAB, "is in cells"),
        ("1bdp", SOFT, Conversion(1500, 10**9), "give `rtt`"),
        ("1bdp", SOFT, Conversion(1500, None, 1), "give `rate`"),
        ("1ms", SOFT, Conversion(None, 10**9), "give `mtu`"),
        ("5p", IN_CELLS, Conversion(), "give `mtu`"),
        ("5p", replace(IN_CELLS, cell_bytes=None), LAB, "needs the cell size"),
        ("0.5p", SOFT, LAB, "is not a whole number of p"),
    ):
        with pytest.raises(ValueError, match=says):
            of(text, capabilities, conversion)


def test_convert_rate__is_of_full_packets_where_packets_are_served() -> None:
    assert convert_rate(50_000_000, SOFT, Conversion()) == Converted(50_000_000, "bps")
    converted = convert_rate(50_000_000, TARGETS["bmv2"].capabilities, LAB)
    assert (converted.value, converted.unit) == (4064, "pps")
    assert converted.note.startswith("50000000 bit/s is 4064 packets/s, 50003456 bit/s")
