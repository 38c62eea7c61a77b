# SPDX-License-Identifier: MIT
"""Rebuilds packet headers from postcards. Header fields that a postcard does not carry (TTL, DSCP, identification,
window, checksums) are zero; the headers have no options.
"""

from __future__ import annotations

import numpy as np

from wire import wire

CARD, REPORT, PACKET = wire.POSTCARD.const, wire.TELEMETRY_REPORT.const, wire.PACKET_HEADERS.const
TCP_PORTS_AT = PACKET["PACKET_IPV4_BYTES"] + PACKET["PACKET_IPV6_BYTES"]
IPV4_MAPPED = 0xFFFF


def packet_kinds(cards: dict[str, np.ndarray]) -> np.ndarray:
    """The headers of each packet as a sum: 1 for IPv4 or 2 for IPv6, and 4 for ports alone or 8 for TCP; 0: none."""
    flags = cards["flags"]
    kinds = np.where((flags & CARD["POSTCARD_HAS_IP"]) == 0, 0, np.where(_is_ipv4(cards), 1, 2))
    ports = np.where((flags & CARD["POSTCARD_HAS_PORTS"]) != 0, 4, 0)
    return kinds | np.where((flags & CARD["POSTCARD_HAS_TCP"]) != 0, 8, ports)


def packet_headers(kind: int, cards: dict[str, np.ndarray]) -> tuple[np.ndarray, int]:
    """Headers of packets of one kind (uint8, packets x bytes), and their TELEMETRY_REPORT_INNER_* type."""
    count, ip = len(cards["flags"]), kind & 3
    transport = PACKET["PACKET_TCP_BYTES"] if kind & 8 else PACKET["PACKET_PORTS_BYTES"] if kind & 4 else 0
    if not ip:
        return np.zeros((count, 0), dtype=np.uint8), REPORT["TELEMETRY_REPORT_INNER_NONE"]
    ip_packet = np.maximum(cards["packet_bytes"].astype(np.int64) - 14, 0)
    every = wire.PACKET_HEADERS.rows(
        count, ipv4_version_and_words=0x45, ipv4_total_bytes=ip_packet, ipv4_protocol=cards["ip_protocol"],
        ipv4_tos=_ecn(cards["flags"]),
        ipv4_src=cards["src_addr_lo"] & np.uint64(0xFFFFFFFF), ipv4_dst=cards["dst_addr_lo"] & np.uint64(0xFFFFFFFF),
        ipv6_version=6, ipv6_class_and_label=_ecn(cards["flags"]) << np.uint64(20),
        ipv6_payload_bytes=np.maximum(ip_packet - PACKET["PACKET_IPV6_BYTES"], 0),
        ipv6_next_header=cards["ip_protocol"],
        **{f"ipv6_{name}_{half}": cards[f"{name}_addr_{half}"] for name in ("src", "dst") for half in ("hi", "lo")},
        src_port=cards["src_port"], dst_port=cards["dst_port"], tcp_seq=cards["tcp_seq"], tcp_ack=cards["tcp_ack"],
        tcp_words=PACKET["PACKET_TCP_BYTES"] // 4 << 4, tcp_flags=cards["tcp_flags"],
    )  # fmt: skip
    of_ip = every[:, : PACKET["PACKET_IPV4_BYTES"]] if ip == 1 else every[:, PACKET["PACKET_IPV4_BYTES"] : TCP_PORTS_AT]
    inner = REPORT["TELEMETRY_REPORT_INNER_IPV4" if ip == 1 else "TELEMETRY_REPORT_INNER_IPV6"]
    return np.hstack([of_ip, every[:, TCP_PORTS_AT : TCP_PORTS_AT + transport]]), inner


def _ecn(flags: np.ndarray) -> np.ndarray:
    """CE if this switch marked the packet; ECT(0) if it was ECN-capable, since postcards do not carry the codepoint."""
    capable = np.where((flags & CARD["POSTCARD_ECT"]) != 0, 2, 0)
    return np.where((flags & CARD["POSTCARD_CE_MARKED"]) != 0, 3, capable).astype(np.uint64)


def _is_ipv4(cards: dict[str, np.ndarray]) -> np.ndarray:
    return (cards["src_addr_hi"] == 0) & (cards["src_addr_lo"] >> np.uint64(32) == IPV4_MAPPED)
