# SPDX-License-Identifier: MIT
"""Short flows, which never leave slow start: their bursts arrive as a Poisson process and form a queue.

Appenzeller et al., section 4 and appendix C. Queues and bursts are packets. Assumes infinitely fast access links (a
burst arrives whole), independent bursts, and no limit of the queue. Rate, RTT and the number of flows do not matter,
only the load and the sizes. `bursts` lists burst sizes; `weights` are their relative frequencies (default: all equal).
ValueError unless 0 < load < 1, and for sizes below 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from analysis.arithmetic.reproducible_sums import dot
from analysis.theory.checks import Numbers, check_at_least, check_load, check_share, check_whole

FIRST_BURST = 2  # packets of the first burst: W is set to two initially (Appenzeller et al., appendix A)


def slow_start_bursts(flow_packets: int, first: int = FIRST_BURST) -> tuple[int, ...]:
    """{2, 4, ..., 2^(n-1), R}: the bursts of a flow; the last burst has the remaining packets (Appenzeller et al.,
    section 4).

    14 packets are 2, 4, 8. The paper prints R = l mod (2^n - 1), and for 16 packets {2, 4, 8, 4}; neither makes the sum
    l. R = l - (2^n - 2) does: 2, 4, 8, 2. `first` is another initial window (10: RFC 6928). ValueError unless
    both are whole and 1 or more.
    """
    check_whole("a flow's packets", flow_packets, 1)
    check_whole("the first burst", first, 1)
    bursts, left, size = [], flow_packets, first
    while left > 0:
        bursts.append(min(size, left))
        left -= bursts[-1]
        size *= 2
    return tuple(bursts)


def mixed_bursts(flows: Mapping[int, float], first: int = FIRST_BURST) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """(bursts, weights) of flows of several sizes: `flows` maps the packets of a flow to the relative number of such
    flows.

    Each flow brings all its bursts, so a long flow brings more bursts (Appenzeller et al., section 4). ValueError as
    for slow_start_bursts, for a share below 0, and if all shares are 0.
    """
    counts: dict[int, float] = {}
    for packets, weight in flows.items():
        check_at_least("a share of flows", weight, 0)
        for burst in slow_start_bursts(packets, first):
            counts[burst] = counts.get(burst, 0) + weight
    if not sum(counts.values()) > 0:
        raise ValueError("a mix without flows; allowed: at least one size with a weight above 0")
    return tuple(counts), tuple(counts.values())


def mean_queue(load: float, bursts: Numbers, weights: Numbers | None = None) -> float:
    """E[Q] = rho E[X^2] / (2 (1 - rho) E[X]) - rho E[X] / 2, as printed (Appenzeller et al., section 4).

    For single packets this is the number waiting in M/D/1, without the packet in transmission. For larger bursts it is
    too low, see mean_depth. (The paper's E[N], printed just before, should be this first term. As printed, E[N] lacks
    the factor 1 / E[X]; and the term is unfinished work, not a number of jobs.) ValueError as in the module's head,
    here and below.
    """
    check_load(load)
    first, second, _ = _moments(bursts, weights)
    return load / (2 * (1 - load)) * second / first - load * first / 2


def mean_depth(load: float, bursts: Numbers, weights: Numbers | None = None) -> float:
    """E[D] = rho E[X^2] / (2 (1 - rho) E[X]) + rho / 2: packets in the queue over time, the one in transmission
    included.

    Derived from Appenzeller et al.'s section 4, to compare with measurements. The first term is the mean unfinished
    work of M/G/1 in packets. It counts only the remaining packets of each burst, so the paper's correction for bursts
    that leave packet by packet, rho E[X] / 2, is not needed. While the link is busy, on average half of the packet in
    transmission has left: + rho / 2. Without the packet in transmission the term is - rho / 2.
    """
    check_load(load)
    first, second, _ = _moments(bursts, weights)
    return load / (2 * (1 - load)) * second / first + load / 2


def decay(load: float, bursts: Numbers, weights: Numbers | None = None, order: int | None = None) -> float:
    """kappa in 1/packets: the tail falls as exp(-kappa b). kappa solves alpha(kappa) = C, where alpha is the effective
    bandwidth (Appenzeller et al., appendix C, equations 11, 12).

    alpha(s) = lambda E[e^(sX) - 1] / (s E[X]). `order` 2 and 3 are the paper's approximations, with that many terms of
    the exponential: kappa_2 = 2 (1 - rho) / rho E[X] / E[X^2], and kappa_3, the root of a quadratic equation. `order`
    None solves equation 12 itself. Terms left out are positive, so kappa < kappa_3 < kappa_2: the approximations
    promise too thin a tail. ValueError for other orders.
    """
    from scipy import optimize  # here, because this import takes half of the time that an analysis takes to start

    check_load(load)
    first, second, third = _moments(bursts, weights)
    spare = (1 - load) / load
    if order == 2:
        return 2 * spare * first / second
    # -p + sqrt(p^2 + q) as q / (p + sqrt(p^2 + q)): nothing cancels where the load is near 1
    half, constant = 1.5 * second / third, 6 * spare * first / third
    cubic = constant / (half + math.sqrt(half**2 + constant))
    if order == 3:
        return cubic
    if order is not None:
        raise ValueError(f"order {order}; allowed: 2, 3, or None for the exact decay")
    sizes, probabilities = _normalized(bursts, weights)

    def off(kappa: float) -> float:
        # (alpha(kappa) - lambda) / lambda = (C - lambda) / lambda: nothing cancels where the load is near 1
        return float(np.dot(probabilities, _beyond_linear(kappa * sizes)) / (kappa * first) - spare)

    low = cubic / 2
    while off(low) > 0:
        low /= 2
    return float(optimize.brentq(off, low, cubic, xtol=1e-300, rtol=1e-14)) if off(cubic) > 0 else cubic


def tail(load: float, bursts: Numbers, buffer: float, weights: Numbers | None = None, order: int | None = 2) -> float:
    """P(Q >= b) = (C - alpha(0)) / (kappa alpha'(kappa)) exp(-kappa b): Cramer's estimate (Appenzeller et al., appendix
    C, equation 13).

    An estimate for large b, not a bound. `order` as in decay. The default is the second order, which section 4 uses:
    there the factor is 1, so this is exp(-b 2 (1 - rho) / rho E[X] / E[X^2]). ValueError unless b >= 0.
    """
    check_at_least("a buffer", buffer, 0)
    kappa = decay(load, bursts, weights, order)
    return min(_factor(load, kappa, bursts, weights, order) * math.exp(-kappa * buffer), 1.0)


def buffer_for_tail(
    load: float, bursts: Numbers, risk: float, weights: Numbers | None = None, order: int | None = 2
) -> float:
    """Least b with P(Q >= b) <= risk: ln(factor / risk) / kappa, not below 0 (Appenzeller et al., section 4: "choose a
    buffer size B such that P(Q >= B) is small"; 5.1.2 takes 0.025, which delays flows by 12.5 % at most). ValueError
    unless 0 < risk < 1.
    """
    check_share("a risk", risk)
    kappa = decay(load, bursts, weights, order)
    return max(math.log(_factor(load, kappa, bursts, weights, order) / risk) / kappa, 0.0)


def _factor(load: float, kappa: float, bursts: Numbers, weights: Numbers | None, order: int | None) -> float:
    first, second, third = _moments(bursts, weights)
    if order == 2:
        return 1.0
    if order == 3:
        return (1 - load) / load * first / (kappa / 2 * second + kappa**2 / 3 * third)
    sizes, probabilities = _normalized(bursts, weights)
    # (C - lambda) / (lambda E[X e^(kappa X)] / E[X] - C), from alpha'(kappa) with alpha(kappa) = C
    spare = (1 - load) / load
    return spare / (float(np.dot(probabilities, sizes * np.expm1(kappa * sizes))) / first - spare)


def _beyond_linear(x: np.ndarray) -> np.ndarray:
    """e^x - 1 - x for x >= 0, exact to the last digits and limited to e^700."""
    series = x**2 / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5 * (1 + x / 6))))
    return np.where(x < 0.01, series, np.expm1(np.minimum(x, 700.0)) - x)


def _normalized(bursts: Numbers, weights: Numbers | None) -> tuple[np.ndarray, np.ndarray]:
    sizes = np.asarray(bursts, dtype=np.float64)
    shares = np.ones(len(sizes)) if weights is None else np.asarray(weights, dtype=np.float64)
    if not len(sizes) or len(shares) != len(sizes) or not (sizes >= 1).all() or not (shares >= 0).all():
        raise ValueError(
            "bursts and weights; allowed: sizes of 1 packet or more, each with a weight that is not negative"
        )
    if not shares.sum() > 0:
        raise ValueError("all bursts have a weight of 0; allowed: at least one weight above 0")
    return sizes, shares / shares.sum()


def _moments(bursts: Numbers, weights: Numbers | None) -> tuple[float, float, float]:
    """E[X], E[X^2], E[X^3]."""
    sizes, probabilities = _normalized(bursts, weights)
    return dot(probabilities, sizes), dot(probabilities, sizes**2), dot(probabilities, sizes**3)
