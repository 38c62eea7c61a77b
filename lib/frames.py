# SPDX-License-Identifier: MIT
"""Lengths of headers and frames, and the bytes that a frame occupies on an Ethernet link (IEEE 802.3). The switch's
frame lengths exclude the FCS. lib/frames.h is the same for C.
"""

from __future__ import annotations

from typing import Any

ETHERNET_BYTES, IPV4_BYTES, IPV6_BYTES, TCP_BYTES, UDP_BYTES = 14, 20, 40, 20, 8
TIMESTAMP_OPTION_BYTES = 12  # RFC 7323, padded as Linux does
LONGEST_TCP_BYTES = 60
LEAST_FRAME_BYTES = 60  # without the FCS
FCS_BYTES = 4
IFG_BYTES = 20  # preamble 7, start delimiter 1, shortest gap 12
WIRE_EXTRA_BYTES = FCS_BYTES + IFG_BYTES  # occupy the link, but do not count in the frame's length
LEAST_IP_BYTES, MOST_IP_BYTES = LEAST_FRAME_BYTES - ETHERNET_BYTES, 65535


def wire_bytes_of_ip(ip_bytes: Any) -> Any:
    """Bytes that an IP packet of at least LEAST_IP_BYTES occupies on the link. Takes a number or an array."""
    return ip_bytes + ETHERNET_BYTES + WIRE_EXTRA_BYTES
