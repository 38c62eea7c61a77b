# SPDX-License-Identifier: MIT
"""Headers of Ethernet frames as the columns that match.py compares."""

from __future__ import annotations

import numpy as np

from analysis.matching.match import KEY
from analysis.read.columns import Columns
from analysis.read.flows import PROTOCOL_NUMBERS
from lib.frames import ETHERNET_BYTES, IPV6_BYTES, TCP_BYTES, UDP_BYTES

IPV4, IPV6 = 0x0800, 0x86DD
MOST_OPTIONS_BYTES = 40  # of a TCP header
DIGESTED_BYTES = 16  # of the payload of other packets: equal datagrams may have equal IP ids
FRAGMENT = 0x1FFF  # offset
_IPV4_MAPPED = np.uint64(0xFFFF << 32)


def columns(time_ns: np.ndarray, frame_bytes: np.ndarray, rows: np.ndarray) -> Columns:
    """`rows` (uint8): the first bytes of each frame, padded with zeros, at least 128. Options of IP do not count: a
    router may change them. Behind extension headers of IPv6, and in later fragments, no ports are read.
    """
    count = np.arange(len(rows))

    def number(where: np.ndarray | int, size: int) -> np.ndarray:
        value = np.zeros(len(rows), dtype=np.uint64)
        for byte in range(size):
            value = value << np.uint64(8) | rows[count, where + byte]
        return value

    kind = number(12, 2)
    is_v4, is_v6 = kind == IPV4, kind == IPV6
    is_ip = is_v4 | is_v6
    protocol = np.where(is_v4, rows[:, 23], rows[:, 20])
    ip_bytes = np.where(is_v4, (rows[:, 14] & 15).astype(np.int64) * 4, IPV6_BYTES)
    length = np.where(is_v4, number(16, 2), number(18, 2) + np.uint64(IPV6_BYTES)).astype(np.int64)
    whole = is_ip & ~(is_v4 & (number(20, 2) & np.uint64(FRAGMENT) != 0))
    is_tcp, is_udp = (whole & (protocol == PROTOCOL_NUMBERS[name]) for name in ("tcp", "udp"))
    at = ETHERNET_BYTES + np.where(is_ip, ip_bytes, 0)
    tcp_bytes = (rows[count, at + 12] >> 4).astype(np.int64) * 4
    behind = np.where(is_tcp, tcp_bytes, np.where(is_udp, UDP_BYTES, 0))
    tos = np.where(is_v4, rows[:, 15], rows[:, 15] >> 4)
    found = {
        "src_addr_hi": np.where(is_v6, number(22, 8), 0),
        "src_addr_lo": np.where(is_v6, number(30, 8), np.where(is_v4, number(26, 4) | _IPV4_MAPPED, 0)),
        "dst_addr_hi": np.where(is_v6, number(38, 8), 0),
        "dst_addr_lo": np.where(is_v6, number(46, 8), np.where(is_v4, number(30, 4) | _IPV4_MAPPED, 0)),
        "src_port": np.where(is_tcp | is_udp, number(at, 2), 0),
        "dst_port": np.where(is_tcp | is_udp, number(at + 2, 2), 0),
        "ip_protocol": np.where(is_ip, protocol, 0),
        "ip_id": np.where(is_v4, number(18, 2), 0),
        "tcp_seq": np.where(is_tcp, number(at + 4, 4), 0),
        "tcp_ack": np.where(is_tcp, number(at + 8, 4), 0),
        "tcp_flags": np.where(is_tcp, rows[count, at + 13], 0),
        "payload_bytes": np.where(is_ip, length - ip_bytes - behind, frame_bytes),
    }
    first = at + np.where(is_tcp, TCP_BYTES, behind)
    last = at + np.where(is_tcp, tcp_bytes, behind + DIGESTED_BYTES)
    digest = np.zeros(len(rows), dtype=np.uint32)
    for byte in range(MOST_OPTIONS_BYTES):  # FNV-1a
        place = first + byte
        value = (digest ^ rows[count, np.minimum(place, rows.shape[1] - 1)]) * np.uint32(0x01000193)
        digest = np.where(place < last, value, digest)
    assert set(KEY) == {*found, "options_digest"}
    return {
        "time_ns": time_ns,
        "frame_bytes": frame_bytes,
        "ecn": np.where(is_ip, tos & 3, 0),
        **found,
        "options_digest": digest,
    }
