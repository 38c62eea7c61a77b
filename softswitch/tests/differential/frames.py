# SPDX-License-Identifier: MIT
"""Frames that a parser or a deparser may get wrong. A random generator and a frame's number determine the frame.

This module assembles the bytes itself, because a packet library would correct intended errors.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

MIN_BYTES = 14  # shortest frame that a veth accepts
MIN_TAGGED_BYTES = 20  # skb_vlan_untag() drops a tagged frame without 2 bytes behind the inner EtherType
MAX_BYTES = 9200
TCP, UDP = 6, 17
EXTENSION_HEADERS = (0, 43, 44, 51, 60, 135)
TAGS = (b"\x81\x00", b"\x88\xa8")
EDGE_CHECKSUMS = (0x0000, 0xFFFF, 0xFFFE, 0xFFFD, 0xFFFC, 0x0001, 0x0002, 0x0003)


def internet_checksum(data: bytes) -> int:
    """RFC 1071, of an even number of bytes."""
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def tcp_header(chance: random.Random) -> bytes:
    """Any data offset, wrong ones included; reserved bits, flags and options at random."""
    offset = chance.choice((5, 5, 5, 8, 15, 0, 4, chance.randrange(16)))
    head = chance.randbytes(12) + bytes([offset << 4 | chance.randrange(16), chance.randrange(256)])
    return head + chance.randbytes(6 + 4 * max(offset - 5, 0))


def udp_header(chance: random.Random) -> bytes:
    """Its length and checksum are often wrong; sometimes it is sent to the collectors' port."""
    ports = struct.pack(">HH", 5577, 5577) if chance.random() < 0.2 else chance.randbytes(4)
    return ports + struct.pack(">H", chance.choice((0, 8, 7, 0xFFFF, chance.randrange(65536)))) + chance.randbytes(2)


def transport(chance: random.Random, protocol: int) -> bytes:
    match protocol:
        case 6:
            return tcp_header(chance)
        case 17:
            return udp_header(chance)
    return chance.randbytes(chance.randrange(40))


def payload(chance: random.Random) -> bytes:
    length = chance.choice((0, 1, chance.randrange(64), chance.randrange(1500)))
    return chance.randbytes(length)


def ipv4(chance: random.Random) -> bytes:
    """Fragments, options, wrong versions, header and total lengths, every ECN codepoint, checksums right and wrong."""
    version = 4 if chance.random() < 0.9 else chance.randrange(16)
    words = chance.choice((5, 5, 5, 5, 6, 15, chance.randrange(5), chance.randrange(16)))
    fragment = chance.choice((0, 0x4000, 0x4000, 0x2000, 0x2001, 0x1FFF, 1, 0x8000, chance.randrange(65536)))
    protocol = chance.choice((TCP, TCP, TCP, UDP, UDP, 1, chance.randrange(256)))
    options = chance.randbytes(4 * max(words - 5, 0))
    body = transport(chance, protocol) + payload(chance)
    total = chance.choice((20 + len(options) + len(body), 0, 20, 0xFFFF, chance.randrange(65536))) & 0xFFFF
    head = struct.pack(
        ">BBHHHBBH",
        version << 4 | words,
        chance.randrange(64) << 2 | chance.randrange(4),
        total,
        chance.randrange(65536),
        fragment,
        chance.choice((0, 1, 64, 255)),
        protocol,
        0,
    ) + chance.randbytes(8)
    checksum = chance.choice((internet_checksum(head + options),) * 3 + (chance.choice(EDGE_CHECKSUMS),))
    return b"\x08\x00" + head[:10] + struct.pack(">H", checksum) + head[12:] + options + body


def ipv6(chance: random.Random) -> bytes:
    """Wrong versions and lengths, chains of extension headers, and chains without a transport header."""
    version = 6 if chance.random() < 0.9 else chance.randrange(16)
    first = version << 28 | chance.randrange(64) << 22 | chance.randrange(4) << 20 | chance.randrange(1 << 20)
    chain = chance.choices(EXTENSION_HEADERS, k=chance.choice((0, 0, 0, 1, 2, 3)))
    last = chance.choice((TCP, TCP, TCP, UDP, UDP, 58, 59, chance.randrange(256)))
    body = b""
    for following in [*chain[1:], last] if chain else []:
        length = chance.choice((0, 0, 1, 2))
        body += bytes([following, length]) + chance.randbytes(6 + 8 * length)
    body += transport(chance, last) + payload(chance)
    size = chance.choice((len(body), 0, 0xFFFF)) & 0xFFFF
    head = struct.pack(">IHBB", first, size, [*chain, last][0], chance.choice((0, 64, 255)))
    return b"\x86\xdd" + head + chance.randbytes(32) + body


def arp(chance: random.Random) -> bytes:
    return b"\x08\x06\x00\x01\x08\x00\x06\x04" + chance.randbytes(22)


def garbage(chance: random.Random) -> bytes:
    return chance.choice((b"\x08\x00", b"\x86\xdd", chance.randbytes(2))) + payload(chance)


def tagged(chance: random.Random) -> bytes:
    """One or two VLAN tags, priority tags included, before a packet that the parser would recognise without tags."""
    tags = b"".join(
        chance.choice(TAGS) + struct.pack(">H", chance.choice((0, 5, 0xFFFF, chance.randrange(65536))))
        for _ in range(chance.choice((1, 1, 2)))
    )
    return tags + chance.choice((ipv4, ipv6, arp))(chance)


def flipped(chance: random.Random) -> bytes:
    """An IP packet after 1 to 8 bit flips in its first 62 bytes, counted from the EtherType."""
    data = bytearray(chance.choice((ipv4, ipv6))(chance))
    for _ in range(chance.randrange(1, 9)):
        data[chance.randrange(min(len(data), 62))] ^= 1 << chance.randrange(8)
    return bytes(data)


KINDS: tuple[Callable[[random.Random], bytes], ...] = (
    ipv4, ipv4, ipv4, ipv4, ipv6, ipv6, ipv6, arp, garbage, tagged, flipped,
)  # fmt: skip

# Frames cut short at every length up to the end of the deepest header: (kind of frame, bytes left).
CUTS = [(kind, length) for kind in (ipv4, ipv6, tagged) for length in range(MIN_BYTES, 14 + 8 + 40 + 20 + 8)]


def frame(chance: random.Random, dst: bytes, number: int) -> bytes:
    """A frame to `dst`. The first len(CUTS) are cut short, one length after the other; the others are random."""
    if number < len(CUTS):
        kind, length = CUTS[number]
        data = dst + chance.randbytes(6) + kind(chance)
        return data[: least(data, length)]
    data = dst + chance.randbytes(6) + chance.choice(KINDS)(chance)
    shape = chance.random()
    if shape < 0.15:
        data = data[: least(data, chance.randrange(MIN_BYTES, len(data) + 1))]
    elif shape < 0.35:
        data = data[:60].ljust(60, b"\0")
    elif shape < 0.38:
        data += bytes(chance.randrange(MAX_BYTES - len(data)))
    return data[:MAX_BYTES]


def least(data: bytes, length: int) -> int:
    """`length`, or the shortest length that the kernel forwards, if that is more."""
    return max(length, MIN_TAGGED_BYTES) if data[12:14] in TAGS else length
