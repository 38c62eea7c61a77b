# SPDX-License-Identifier: MIT
"""Parsing and deparsing to the byte, parser errors, and frames that are cut or random."""

import random

from .conftest import Switch

PROGRAM = "parser"

OK, TOO_SHORT, ODD_TAG, BAD_ARGUMENT = range(4)
ETHERNET, TAG, BITS, WIDE = 1, 2, 4, 8
BITS_BYTES, WIDE_BYTES = 16, 72


def ethernet(ether_type: int) -> bytes:
    return bytes(range(12)) + ether_type.to_bytes(2, "big")


def report(switch: Switch, frame: bytes) -> tuple[int, int, int, bytes]:
    """(parser error, valid headers, result of lookahead, output frame)."""
    out = switch.send_one(frame)
    return int.from_bytes(out[:4], "big"), out[4], out[5], out[6:]


def test_all_headers__leave_as_they_came(switch: Switch) -> None:
    rng = random.Random(5)
    for _ in range(50):
        bits, wide, payload = rng.randbytes(BITS_BYTES), rng.randbytes(WIDE_BYTES), rng.randbytes(rng.randrange(40))
        for head, valid in ((ethernet(0x10FE) + bits, ETHERNET | BITS), (ethernet(0x2345) + wide, ETHERNET | WIDE)):
            assert report(switch, head + payload) == (OK, valid, 0, head + payload)
        tag = (3 << 13 | 0x123).to_bytes(2, "big") + b"\x99\x99"
        frame = ethernet(0x8100) + tag + bits + payload
        assert report(switch, frame) == (OK, ETHERNET | TAG | BITS, 0, frame)


def test_select__masks_and_several_fields(switch: Switch) -> None:
    rest = bytes(80)
    for pcp, vid, ether_type, valid in (
        (1, 0x1AB, 0x1000, BITS),
        (1, 0x2AB, 0x1000, 0),
        (1, 0x1AB, 0x1001, 0),
        (6, 5, 0x2000, WIDE),
        (6, 6, 0x2000, 0),
        (3, 0x777, 0x4242, BITS),
        (1, 5, 0x2000, WIDE),
    ):
        tag = (pcp << 13 | vid).to_bytes(2, "big") + ether_type.to_bytes(2, "big")
        frame = ethernet(0x8100) + tag + rest
        assert report(switch, frame) == (OK, ETHERNET | TAG | valid, 0, frame)


def test_select__128_bit_and_33_bit_fields(switch: Switch) -> None:
    wide = bytes.fromhex("20010db8") + bytes(WIDE_BYTES - 4)
    bits = bytes(BITS_BYTES)
    assert report(switch, ethernet(0x2000) + wide + bits + b"x")[1] == ETHERNET | WIDE | BITS
    # The field `many` of all ones leads on to the wide header; headers leave in the deparser's order.
    many = (0x1FFFFFFFF << 64).to_bytes(BITS_BYTES, "big")
    assert report(switch, ethernet(0x1000) + many + bytes(WIDE_BYTES))[1] == ETHERNET | BITS | WIDE


def test_too_short__keeps_parsed_headers_and_the_rest_as_payload(switch: Switch) -> None:
    for head, size, valid in ((ethernet(0x1000), BITS_BYTES, BITS), (ethernet(0x2000), WIDE_BYTES, WIDE)):
        whole = head + bytes(range(1, size + 1))
        for cut in range(1, len(whole) + 1):
            error = OK if cut == len(whole) else TOO_SHORT
            headers = 0 if cut < 14 else ETHERNET | (valid if cut == len(whole) else 0)
            assert report(switch, whole[:cut]) == (error, headers, 0, whole[:cut])


def test_verify__raises_the_programs_own_error(switch: Switch) -> None:
    frame = ethernet(0x8100) + b"\x0f\xff\x10\x00" + bytes(40)
    assert report(switch, frame) == (ODD_TAG, ETHERNET | TAG, 0, frame)


def test_lookahead__reads_without_extracting(switch: Switch) -> None:
    frame = ethernet(0x3000) + b"\x01\x02" + bytes(14)
    assert report(switch, frame) == (OK, ETHERNET | BITS, 1, frame)
    frame = ethernet(0x3000) + b"\x07\x02" + bytes(14)
    assert report(switch, frame) == (OK, ETHERNET, 7, frame)
    assert report(switch, ethernet(0x3000)) == (TOO_SHORT, ETHERNET, 0, ethernet(0x3000))
    assert report(switch, ethernet(0x3000) + b"\x09")[:3] == (TOO_SHORT, ETHERNET, 9)


def test_advance__drops_the_skipped_bytes(switch: Switch) -> None:
    bits = bytes(range(BITS_BYTES))
    assert report(switch, ethernet(0x4000) + b"skip" + bits) == (OK, ETHERNET | BITS, 0, ethernet(0x4000) + bits)
    assert report(switch, ethernet(0x4000) + b"ski") == (TOO_SHORT, ETHERNET, 0, ethernet(0x4000) + b"ski")
    for length in (0, 8, 16):
        skipped = bytes([length]) + bytes(range(BITS_BYTES + 4))
        frame = ethernet(0x5000) + skipped
        assert report(switch, frame) == (OK, ETHERNET | BITS, 0, ethernet(0x5000) + skipped[length // 8 :])
    assert report(switch, ethernet(0x5000) + b"\x09" + bits)[0] == BAD_ARGUMENT
    assert report(switch, ethernet(0x5000) + b"\xf8" + bits)[0] == TOO_SHORT


def test_garbage__passes_through_with_its_length(switch: Switch) -> None:
    rng = random.Random(6)
    kinds = [0x8100, 0x1000, 0x2000, 0x3000, 0x1234]
    for _ in range(1500):
        frame = bytearray(rng.randbytes(rng.choice([1, 13, 14, 15, rng.randrange(1, 200)])))
        if len(frame) >= 14 and rng.random() < 0.9:
            frame[12:14] = rng.choice(kinds).to_bytes(2, "big")
        error, valid, _, out = report(switch, bytes(frame))
        assert error <= BAD_ARGUMENT
        # The deparser writes bits before wide, whatever the order they came in.
        assert len(out) == len(frame)
        assert out == frame or valid & (BITS | WIDE) == BITS | WIDE
