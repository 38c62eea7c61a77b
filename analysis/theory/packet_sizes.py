# SPDX-License-Identifier: MIT
"""Exact distributions of the packet sizes of open-loop traffic (hosts/traffic/schedule.h)."""

from __future__ import annotations

import numpy as np

from analysis.theory.checks import check_positive, check_whole
from hosts.traffic.open_loop import BURSTS_FORM, MOST_FLOW_PACKETS, SIZES, flow_packets
from lib.frames import LEAST_IP_BYTES, MOST_IP_BYTES, wire_bytes_of_ip


def packet_sizes(sizes: str, mtu_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    """(IP bytes, probabilities) of SIZES=fixed, bimodal, exponential or bursts:<n>p, such as bursts:14p
    (hosts/traffic/schedule.h).

    fixed, bursts: the MTU. bimodal: 46 or the MTU, 1/2 each. exponential: 46 + k with P(k) proportional to
    exp(-4 k / MTU), k = 0 .. MTU - 46: an exponential of mean MTU / 4, cut to whole bytes and truncated so that no
    packet is longer than the MTU. MTU 1500: mean 389.8 bytes, standard deviation 308.3. ValueError for other names,
    and unless the MTU is whole, 46 to 65535.
    """
    check_whole("an MTU", mtu_bytes, LEAST_IP_BYTES)
    if mtu_bytes > MOST_IP_BYTES:
        raise ValueError(f"an MTU of {mtu_bytes}; allowed: {LEAST_IP_BYTES} to {MOST_IP_BYTES}")
    if sizes == "fixed" or flow_packets(sizes) is not None:
        return np.array([mtu_bytes]), np.ones(1)
    if sizes == "bimodal":
        return np.array([LEAST_IP_BYTES, mtu_bytes]), np.full(2, 0.5)
    if sizes == "exponential":
        more = np.arange(mtu_bytes - LEAST_IP_BYTES + 1)
        weights = np.exp(-4 * more / mtu_bytes)
        return LEAST_IP_BYTES + more, weights / weights.sum()
    bursts = f"bursts:<n>p with n from 1 to {MOST_FLOW_PACKETS}, such as {BURSTS_FORM}"
    raise ValueError(f"sizes {sizes!r}; allowed: {', '.join(SIZES)}, {bursts}")


def service_times(sizes: str, mtu_bytes: int, rate_bps: int) -> tuple[np.ndarray, np.ndarray]:
    """(s on the link, probabilities): IP packet, Ethernet header, FCS, preamble and gap at `rate_bps`
    (hosts/traffic/schedule.h). ValueError as for packet_sizes, and unless the rate is above 0.
    """
    check_positive("a rate", rate_bps)
    ip_bytes, probabilities = packet_sizes(sizes, mtu_bytes)
    return wire_bytes_of_ip(ip_bytes) * 8 / rate_bps, probabilities
