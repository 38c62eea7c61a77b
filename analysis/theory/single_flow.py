# SPDX-License-Identifier: MIT
"""One long flow at a bottleneck: what buffer it needs, and how much of the link it uses with less.

Windows, buffers and BDPs are packets.
"""

from __future__ import annotations

# Window after a loss over window before it. Reno: RFC 5681, 3.1. Cubic: beta_cubic as Linux has it
# (net/ipv4/tcp_cubic.c). Scalable: net/ipv4/tcp_scalable.c. All as in the first paper, 3.5.
DECREASE = {"reno": 1 / 2, "cubic": 717 / 1024, "scalable": 7 / 8}
BBR_DRAIN = 3 / 4  # pacing gain of BBR v1 in the RTT after a loss while probing (first paper, 3.5)
ALGORITHMS = (*DECREASE, "bbr")


def bdp_packets(rate_bps: int, rtt_ns: int, wire_bytes: int) -> float:
    """C x RTT in full packets of `wire_bytes` each, frame, FCS, preamble and gap included (first paper, 3.3)."""
    return rate_bps * rtt_ns / (8e9 * wire_bytes)


def queue_length(in_flight: float, bdp: float, buffer: float) -> float:
    """Q = W - BDP, within 0 and B (first paper, Assumption 1)."""
    return min(max(in_flight - bdp, 0.0), buffer)


def utilization_of_window(in_flight: float, bdp: float) -> float:
    """min(W / BDP, 1) (first paper, Lemma 2)."""
    return min(in_flight / bdp, 1.0)


def min_utilization(cc: str, buffer: float, bdp: float) -> float | None:
    """Least utilization after a loss of a single flow: min(beta (1 + B/BDP), 1); BBR v1: min(3/4 + B/BDP, 1).

    First paper, 3.5. None for an algorithm that it has no rule for.
    """
    if cc == "bbr":
        return min(BBR_DRAIN + buffer / bdp, 1.0)
    if cc not in DECREASE:
        return None
    return utilization_of_window(DECREASE[cc] * (bdp + buffer), bdp)


def drained_packets(cc: str, buffer: float, bdp: float) -> float | None:
    """By how much the queue of a single flow falls from B: (1 - beta) (BDP + B) after a loss; BBR v1: BDP / 4 in the
    round trip in which it sends less. Never more than B.

    First paper, 3.5 with Assumptions 1 and 3 (at a loss W = BDP + B); its 3.6 measures about all of B = BDP for Reno,
    60-70 % for Cubic, 11-25 % for Scalable, 25 % for BBR. None for an algorithm that it has no rule for.
    """
    if cc == "bbr":
        return min((1 - BBR_DRAIN) * bdp, buffer)
    if cc not in DECREASE:
        return None
    return buffer - queue_length(DECREASE[cc] * (bdp + buffer), bdp, buffer)


def single_flow_buffer(cc: str, bdp: float, utilization: float = 1.0) -> float | None:
    """Least buffer for a utilization of a single flow: (u/beta - 1) BDP; BBR v1: (u - 3/4) BDP. Never below 0.

    First paper, 3.5 and Table 1: BDP for Reno, 3/7 BDP for Cubic (beta rounded to 7/10), 1/7 BDP for Scalable, 1/4 BDP
    for BBR. None for an algorithm that it has no rule for.
    """
    if cc == "bbr":
        return max(utilization - BBR_DRAIN, 0.0) * bdp
    if cc not in DECREASE:
        return None
    return max(utilization / DECREASE[cc] - 1, 0.0) * bdp
