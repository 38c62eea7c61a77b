# SPDX-License-Identifier: MIT
"""CRCs with parameters of the user's, against the check values of Ross Williams' and Greg Cook's catalogue."""

from pathlib import Path

import pytest

from .conftest import Switch
from .fragments import assign, do, extract, field, named, number, program, state, std

DIGITS = b"123456789"
CHECKS = {  # of DIGITS
    16: {
        "0x8005 0 0 1 1": 0xBB3D,  # ARC, as at the start
        "0x1021 0xffff 0 0 0": 0x29B1,  # CCITT-FALSE
        "0x1021 0 0 0 0": 0x31C3,  # XMODEM
        "0x1021 0xffff 0xffff 1 1": 0x906E,
    },
    32: {
        "0x04c11db7 0xffffffff 0xffffffff 1 1": 0xCBF43926,  # ISO-HDLC, as at the start
        "0x04c11db7 0xffffffff 0xffffffff 0 0": 0xFC891918,  # BZIP2
        "0x1edc6f41 0xffffffff 0xffffffff 1 1": 0xE3069283,  # ISCSI
    },
}


def write() -> Path:
    def hashed(to: str, calculation: str):
        parameters = number(0), named("calculation", calculation), number(1 << 32)
        return do("modify_field_with_hash_based_offset", field("head", to), *parameters)

    return program(
        "crc",
        {"head_h": [("digits", 72), ("short", 32), ("long", 32)]},
        {"head": "head_h"},
        [state("start", [extract("head")])],
        [assign(std("egress_spec"), number(2)), hashed("short", "sum16"), hashed("long", "sum32")],
        calculations=[
            {"name": f"sum{bits}", "id": bits, "algo": f"crc{bits}_custom", "input": [field("head", "digits")]}
            for bits in CHECKS
        ],
    )


@pytest.mark.parametrize("bits", CHECKS)
def test_custom_crc__has_the_parameters_of_the_last_request(switch: Switch, bits: int) -> None:
    for at, (parameters, check) in enumerate(CHECKS[bits].items()):
        if at:
            switch.set(f"crc set sum{bits} {parameters}")
        out = switch.send_one(DIGITS + bytes(8))
        assert int.from_bytes(out[9:13] if bits == 16 else out[13:17], "big") == check, parameters


def test_requests__about_crcs_name_the_mistake(switch: Switch) -> None:
    for text, named_ in {
        "crc": "set NAME POLYNOMIAL",
        "crc set sum 1 1 1 1 1": "is unknown or ambiguous: the program has sum16, sum32",
        "crc set sum16 0x10000 0 0 0 0": "polynomial",
        "crc set sum16 1 0 0 2 0": "reflect_data",
    }.items():
        assert named_ in switch.refused(text), text
