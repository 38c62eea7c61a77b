# SPDX-License-Identifier: MIT
"""M/M/1/B: Poisson arrivals, exponential services, at most B packets, the one in transmission included.

Enachescu et al. (equation 3) and Prasad et al. (section 5) use this model. `load` (rho) is the mean number of packets
that arrive in a mean service time; it may be 1 or more. ValueError unless load > 0 and B >= 1. B need not be whole,
because other modules solve these formulas for B.
"""

from __future__ import annotations

import math

from analysis.theory.checks import check_at_least, check_positive


def loss(load: float, buffer: float) -> float:
    """p = (1 - rho) rho^B / (1 - rho^(B+1)): the share of packets that find B packets (Enachescu et al., equation 3;
    Prasad et al., section 5); 1 / (B + 1) at rho = 1.

    The CCR version of Enachescu et al. prints a different second factor, which is wrong for M/M/1/B.
    ValueError unless rho > 0 and B >= 1, here and below.
    """
    return math.exp(log_loss(load, buffer))


def log_loss(load: float, buffer: float) -> float:
    """ln(p) of loss() (Enachescu et al., equation 3), also if p underflows. ValueError as for loss()."""
    check_positive("a load", load)
    check_at_least("a buffer", buffer, 1)
    log = math.log(load)
    if abs(log) * (buffer + 1) < 1e-9:
        return -math.log(buffer + 1)
    # For rho > 1, rho^B is divided out to avoid overflow.
    shift = buffer * log if log < 0 else 0.0
    return shift + math.log(math.expm1(-abs(log)) / math.expm1(-abs(log) * (buffer + 1)))


def heavy_load_loss(buffer: float) -> float:
    """p = 1 / B: the limit for rho -> 1 in Prasad et al. (section 5); the exact limit is 1 / (B + 1).
    ValueError unless B >= 1.
    """
    check_at_least("a buffer", buffer, 1)
    return 1 / buffer


def mean_depth(load: float, buffer: int) -> float:
    """Mean packets in the queue over time, the one in transmission included: sum n rho^n / sum rho^n, n = 0 .. B. At
    rho = 1 this is B / 2; hence d = B / (2 C) in Prasad et al., section 5. ValueError unless rho > 0 and B >= 1.
    """
    check_positive("a load", load)
    check_at_least("a buffer", buffer, 1)
    log = math.log(load)
    if abs(log) * (buffer + 1) < 1e-4:  # first order in log(load); the error is below 1e-9 of B
        return buffer / 2 + log * buffer * (buffer + 2) / 12
    if log > 0:  # free places form the queue of load 1 / rho
        return buffer - mean_depth(1 / load, buffer)
    empty = -math.expm1((buffer + 1) * log)
    return load / -math.expm1(log) - (buffer + 1) * math.exp((buffer + 1) * log) / empty


def utilization(load: float, buffer: float) -> float:
    """rho (1 - p): share of the time in which the link sends, with p of Enachescu et al.'s equation 3. ValueError as
    for loss().
    """
    return load * (1 - loss(load, buffer))
