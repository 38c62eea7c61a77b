# SPDX-License-Identifier: MIT
"""The sawtooth of a single long flow at a bottleneck: growth of window and queue, and the period.

Appenzeller et al., appendix B: a fluid model of congestion avoidance that adds one packet per RTT, where RTT = (BDP +
Q) / C grows with the queue. Capacity C is packets/s, bdp is 2 T_p C in packets, times are s from the start of a period.
Linux's Reno counts acknowledged packets instead of ACKs, so delayed ACKs do not slow its growth.
"""

from __future__ import annotations

import math

from analysis.theory.checks import check_at_least, check_positive, check_share


def window(time_s: float, capacity: float, bdp: float, first: float | None = None) -> float:
    """W(t) = sqrt(2 C t + W(0)^2) packets while the link is busy (Appenzeller et al., equation 9).

    Solves dW/dt = C / W (equation 8). The paper's line before equation 9 prints W(0) where W(0)^2 is meant.

    `first` is W(0), by default the BDP: the queue is just empty when the period begins. Below the BDP the RTT is
    BDP / C, and W(t) = W(0) + C t / BDP until it reaches the BDP. ValueError unless t >= 0, C > 0, BDP > 0, W(0) >= 0.
    """
    check_at_least("a time", time_s, 0)
    check_positive("a capacity", capacity)
    check_positive("a BDP", bdp)
    start = bdp if first is None else first
    check_at_least("a first window", start, 0)
    until_busy_s = max(bdp - start, 0.0) * bdp / capacity
    if time_s < until_busy_s:
        return start + time_s * capacity / bdp
    return math.sqrt(2 * capacity * (time_s - until_busy_s) + max(start, bdp) ** 2)


def queue(time_s: float, capacity: float, bdp: float, first: float | None = None) -> float:
    """Q(t) = W(t) - 2 T_p C packets, never below 0 (Appenzeller et al., equation 10). ValueError as for window()."""
    return max(window(time_s, capacity, bdp, first) - bdp, 0.0)


def period(capacity: float, bdp: float, buffer: float, decrease: float = 0.5) -> float:
    """T in s: the time in which the window grows from decrease x (BDP + B) until the queue holds `buffer` packets.

    Appenzeller et al., appendix B: T = B^2 / (2 C) + 2 T_p B if the period begins with an empty queue, so
    decrease x (BDP + B) = BDP; with B = BDP and a decrease of 1/2 this is 1.5 B^2 / C. From any other window W(0):
    (W_max^2 - W(0)^2) / (2 C) while the link is busy, and (BDP - W(0)) BDP / C before. ValueError unless C > 0,
    BDP > 0, B >= 0, 0 < decrease < 1.
    """
    check_positive("a capacity", capacity)
    lowest, highest = extremes(bdp, buffer, decrease)
    busy_from = max(lowest, bdp)
    return (max(bdp - lowest, 0.0) * bdp + (highest**2 - busy_from**2) / 2) / capacity


def extremes(bdp: float, buffer: float, decrease: float = 0.5) -> tuple[float, float]:
    """(minimum, maximum) of the window: decrease x (BDP + B), and BDP + B, at which a packet is lost (Appenzeller et
    al., section 2).

    The queue is the window minus the BDP, and not below 0. ValueError unless BDP > 0, B >= 0, 0 < decrease < 1.
    """
    check_share("the decrease", decrease)
    check_positive("a BDP", bdp)
    check_at_least("a buffer", buffer, 0)
    return decrease * (bdp + buffer), bdp + buffer


def mean_utilization(bdp: float, buffer: float, decrease: float = 0.5) -> float:
    """(W_max^2 - W_min^2) / (2 C T): packets sent in a period over the link's capacity in T, with T of period().

    Derived from the same model: one window leaves each RTT, and each RTT adds one packet to the window, so a period
    sends the integral of W dW. 1 if the queue never empties, 3/4 for Reno without a buffer (whose minimum is 1/2 in
    Spang et al., 3.5). Appenzeller et al., appendix B. ValueError unless BDP > 0, B >= 0, 0 < decrease < 1.
    """
    lowest, highest = extremes(bdp, buffer, decrease)
    return (highest**2 - lowest**2) / 2 / period(1.0, bdp, buffer, decrease)
