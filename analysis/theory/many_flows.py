# SPDX-License-Identifier: MIT
"""Many long flows that share a bottleneck: buffers that shrink with the square root of their number.

Windows, buffers and BDPs are packets.
"""

from __future__ import annotations

import math


def sqrt_rule(bdp: float, flows: int) -> float:
    """BDP / sqrt(n) for n long flows that are not synchronized (second paper, section 3; first paper, Theorem 4)."""
    return bdp / math.sqrt(flows)


def almost_fair_buffer(bdp: float, flows: int, delta: float) -> float:
    """Delta BDP / sqrt(n): full utilization of n Delta-almost fair flows (first paper, Theorem 6)."""
    return delta * sqrt_rule(bdp, flows)


def almost_fair_window(bdp: float, buffer: float, flows: int, delta: float) -> float:
    """BDP + B - Delta BDP / sqrt(n): the aggregate window stays above this (first paper, Theorem 5)."""
    return bdp + buffer - almost_fair_buffer(bdp, flows, delta)


def almost_fair_utilization(flows: int, delta: float) -> float:
    """1 - Delta / sqrt(n), whatever the buffer (first paper, Theorem 7). Not below 0."""
    return max(1 - delta / math.sqrt(flows), 0.0)


def flows_seeing_loss(bdp: float, flows: int, delta: float) -> float:
    """n^2 / (Delta BDP) + sqrt(n): Theorems 5 to 7 hold if no more flows see a loss in one RTT (first paper)."""
    return flows**2 / (delta * bdp) + math.sqrt(flows)
