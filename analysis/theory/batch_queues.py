# SPDX-License-Identifier: MIT
"""M[X]/D/1: equal packets that arrive in bursts of X at Poisson times, all packets of a burst at once.

Depth is defined as in the switch: packets admitted and not yet departed, including the one in transmission. Time
averages differ from the depths at packet arrivals, because a packet also meets the earlier packets of its burst. When
the queue is full (K = `buffer` packets, including the one in transmission), the rest of a burst is dropped. A service
is one unit of time; load is the burst rate x E[X]. `bursts` are whole sizes, `weights` their relative frequencies
(default: all equal). ValueError for a load not above 0, for sizes that are not whole numbers of 1 or more, for weights
that are negative or all 0, and unless K is whole, 1 to MOST_STATES - 1. Appenzeller et al., section 4, has the means
(theory/short_flows.py).
"""

from __future__ import annotations

import numpy as np

from analysis.theory.checks import Numbers, check_at_least, check_load, check_whole
from analysis.theory.queues import MOST_STATES, _relative_states


def depth_distribution(load: float, bursts: Numbers, states: int, weights: Numbers | None = None) -> np.ndarray:
    """P(depth = 0 .. states - 1) over time, without limit of the queue (Appenzeller et al., section 4). Load below 1.

    Crommelin's argument: in one service time the packet in transmission leaves, and no packet that arrives meanwhile
    leaves. So N(t + 1) = max(N(t) - 1, 0) + A. A, the number of packets that arrive in one service, is compound
    Poisson. The recursion of Ramaswami 1988 (theory/queues.py) holds with these A. ValueError as in the module's head,
    and unless `states` is a whole number of 1 or more.
    """
    check_load(load)
    check_whole("states", states, 1)
    return (1 - load) * _relative(load, bursts, states, weights)


def limited_depth_distribution(load: float, bursts: Numbers, buffer: int, weights: Numbers | None = None) -> np.ndarray:
    """P(depth = 0 .. K) over time with at most K packets. Any load above 0.

    Below K, the depths after departures have the same proportions as in an unlimited queue. Level crossing: the rate of
    departures that leave j behind equals the rate of bursts that raise the depth from at most j to more than j, burst
    rate x sum_{i <= j} p_i P(X > j - i). So p_j, j < K, have the same proportions, too. Their scale follows from 1 -
    p_0 = load / E[X] x sum over j of these sums. For single packets this is Cooper 1981 (theory/queues.py). ValueError
    as in the module's head.
    """
    check_load(load, below=np.inf)
    check_whole("a buffer", buffer, 1)
    if buffer >= MOST_STATES:
        raise ValueError(f"a buffer of {buffer} packets; allowed: 1 to {MOST_STATES - 1}")
    relative = _relative(load, bursts, buffer, weights)
    crossings = _convolved(relative, _longer_than(bursts, weights))[:buffer]  # sum_{i <= j} p_i P(X > j - i), unscaled
    below_buffer = relative / (relative[0] + load / _mean(bursts, weights) * crossings.sum())
    return np.append(below_buffer, max(0.0, 1 - below_buffer.sum()))


def at_arrivals(depth: Numbers, bursts: Numbers, weights: Numbers | None = None) -> np.ndarray:
    """The distribution of depth at packet arrivals, from the distribution over time. Poisson bursts see time averages
    (Wolff 1982). A packet also meets the k earlier packets of its burst: P(k) = P(X > k) / E[X] (Appenzeller et al.,
    section 4).

    The result is longer than `depth` by the longest burst - 1. With at most K packets all depths from K on are a full
    queue, and their sum is the share of packets that are dropped. ValueError as in the module's head, and unless all of
    `depth` is 0 or more.
    """
    over_time = np.asarray(depth, dtype=np.float64)
    if not len(over_time) or not (over_time >= 0).all():
        raise ValueError("probabilities of depths; allowed: at least one, each 0 or more")
    return _convolved(over_time, _longer_than(bursts, weights) / _mean(bursts, weights))


def _convolved(values: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The sum of shares[k] x `values` shifted by k; unlike np.convolve, the same digits on every processor."""
    result = np.zeros(len(values) + len(shares) - 1)
    for shift, share in enumerate(shares.tolist()):
        result[shift : shift + len(values)] += share * values
    return result


def _relative(load: float, bursts: Numbers, states: int, weights: Numbers | None) -> np.ndarray:
    none, at_least = _arrivals(load, bursts, states + 1, weights)
    return _relative_states(none, at_least, states)


def _arrivals(load: float, bursts: Numbers, count: int, weights: Numbers | None) -> tuple[float, np.ndarray]:
    """P(no arrival in one service), and P(at least k packets), k = 0 .. count - 1: compound Poisson by Panjer's
    recursion, a_n = rate / n x sum_j j P(X = j) a_{n-j}, which has no negative term. Sums from the tail avoid the
    cancellation of 1 - P.
    """
    probabilities = _probabilities(bursts, weights)
    sizes = np.arange(len(probabilities))
    rate = load / _mean(bursts, weights)
    longest = len(probabilities) - 1
    far = count + int(longest * (rate + 12 * np.sqrt(rate) + 60))
    exactly = np.zeros(far)
    exactly[0] = np.exp(-rate)
    terms = (rate * sizes * probabilities)[1:]
    occurring = np.flatnonzero(terms)
    with np.errstate(under="ignore"):  # far beyond `count` the probabilities are 0
        for number in range(1, far):
            shorter = occurring[occurring < number]
            exactly[number] = (terms[shorter] * exactly[number - 1 - shorter]).sum() / number
    return float(exactly[0]), np.cumsum(exactly[::-1])[::-1][:count]


def _probabilities(bursts: Numbers, weights: Numbers | None) -> np.ndarray:
    """P(X = 0, 1, ...)."""
    for size in bursts:
        check_whole("a burst", size, 1)
    sizes = [int(size) for size in bursts]
    shares = np.ones(len(sizes)) if weights is None else np.asarray(weights, dtype=np.float64)
    if not sizes or len(shares) != len(sizes):
        raise ValueError("bursts and weights; allowed: at least one burst, each with a weight")
    for share in shares:
        check_at_least("a weight", share, 0)
    if not shares.sum() > 0:
        raise ValueError("all bursts have a weight of 0; allowed: at least one weight above 0")
    return np.bincount(sizes, weights=shares / shares.sum())


def _longer_than(bursts: Numbers, weights: Numbers | None) -> np.ndarray:
    """P(X > 0, 1, ...) up to the longest burst."""
    return np.cumsum(_probabilities(bursts, weights)[::-1])[::-1][1:]


def _mean(bursts: Numbers, weights: Numbers | None) -> float:
    return float(_longer_than(bursts, weights).sum())
