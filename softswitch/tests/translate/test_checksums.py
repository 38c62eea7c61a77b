# SPDX-License-Identifier: MIT
"""Hash algorithms against known vectors and Python, checksums verified and updated as v1model says."""

import random
import struct
import zlib

from ..differential.frames import internet_checksum
from .conftest import Switch

PROGRAM = "checksums"

HASHES = struct.Struct(">HHIHQHHB")


def csum16(data: bytes) -> int:
    """RFC 1071."""
    return internet_checksum(data + bytes(len(data) % 2))


def crc16(data: bytes) -> int:
    """CRC-16/ARC, bit by bit. The CRC of "123456789" is 0xbb3d."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
    return crc


def xor16(data: bytes) -> int:
    data += bytes(len(data) % 2)
    result = 0
    for (word,) in struct.iter_unpack(">H", data):
        result ^= word
    return result


def ipv4(rng: random.Random, protocol: int, payload: bytes, checksum: int | None = None, ihl: int = 5) -> bytes:
    tos, number, fragment = rng.randrange(256), rng.getrandbits(16), rng.getrandbits(16)
    head = struct.pack(">BBHHHBB", 0x40 | ihl, tos, 20 + len(payload), number, fragment, 64, protocol)
    addresses = rng.randbytes(8)
    if checksum is None:
        checksum = csum16(head + bytes(2) + addresses)
    return head + checksum.to_bytes(2, "big") + addresses


def udp_checksum(ip: bytes, udp: bytes) -> int:
    """The program's UDP_FIELDS and the payload: the pseudo header, with the length twice."""
    pseudo = ip[12:20] + b"\0" + ip[9:10] + udp[4:6]
    return csum16(pseudo + udp[:6] + udp[8:])


def run(switch: Switch, frame: bytes) -> tuple[tuple[int, ...], bytes]:
    out = switch.send_one(frame)
    return HASHES.unpack(out[: HASHES.size]), out[HASHES.size :]


def test_hashes__equal_the_reference(switch: Switch) -> None:
    rng = random.Random(8)
    for number in range(200):
        with_udp = number % 2 == 0
        payload = rng.randbytes(rng.randrange(60))
        ip = ipv4(rng, 17 if with_udp else 6, payload)
        udp = rng.randbytes(8) if with_udp else b""
        (csum, crc_16, crc_32, xor_16, identity, bits, bounded, _), _ = run(switch, ip + udp + payload)
        fields = ip[:10] + ip[12:]
        assert csum == csum16(fields)
        assert crc_16 == crc16(fields)
        assert crc_32 == zlib.crc32(fields)
        assert xor_16 == xor16(fields + (udp[:2] + udp[6:] if with_udp else b""))
        assert identity == int.from_bytes(ip[12:20], "big") % (2**64 - 1)
        # 4 + 3 + 13 + 3 bits, and a last bit of 0
        twenty_three = (ip[0] >> 4) << 19 | int.from_bytes(ip[6:8], "big") << 3 | 5
        assert bits == crc16((twenty_three << 1).to_bytes(3, "big"))
        assert bounded == 100 + zlib.crc32(ip[12:20]) % 10


def test_update__writes_checksums_of_the_headers_as_they_leave(switch: Switch) -> None:
    rng = random.Random(9)
    for size in (0, 1, 2, 7, 100, 1471, 8973):
        payload = rng.randbytes(size)
        ip = ipv4(rng, 17, payload)
        udp = rng.randbytes(4) + (8 + size).to_bytes(2, "big") + b"\0\0"
        _, out = run(switch, ip + udp + payload)
        aged = ip[:8] + bytes([ip[8] - 1]) + ip[9:]
        assert out[:10] == aged[:10]
        assert out[12:20] == aged[12:20]
        assert csum16(out[:20]) == 0
        assert out[20:26] == udp[:6]
        assert int.from_bytes(out[26:28], "big") == udp_checksum(aged, udp + payload)
        assert out[28:] == payload


def test_update__is_left_out_when_its_condition_is_false(switch: Switch) -> None:
    ip = ipv4(random.Random(10), 6, b"", checksum=0x1234, ihl=6)
    _, out = run(switch, ip + bytes(4))
    assert out[10:12] == b"\x12\x34"


def test_verify__sets_checksum_error(switch: Switch) -> None:
    rng = random.Random(11)
    payload = rng.randbytes(33)
    ip = ipv4(rng, 17, payload)
    udp = rng.randbytes(4) + (8 + len(payload)).to_bytes(2, "big") + b"\0\0"
    checksum = udp_checksum(ip, udp + payload)
    right = udp[:6] + checksum.to_bytes(2, "big")
    wrong = udp[:6] + (checksum ^ 0x100).to_bytes(2, "big")
    assert run(switch, ip + right + payload)[0][-1] == 0
    assert run(switch, ip + udp + payload)[0][-1] == 0  # checksum 0: not verified
    assert run(switch, ip + wrong + payload)[0][-1] == 1
    assert run(switch, ipv4(rng, 6, payload, checksum=1) + payload)[0][-1] == 1
    assert run(switch, ipv4(rng, 6, payload, checksum=1, ihl=7) + payload)[0][-1] == 0
