# SPDX-License-Identifier: MIT
"""M/D/1 and M/G/1 as an arriving packet sees them.

Depth is the switch's depth: the packets that an arrival finds, including the packet in transmission, excluding itself.
Poisson arrivals see time averages (Wolff 1982), so depth is the number in the system, not the number waiting. A packet
that finds `buffer` packets or more is dropped (tail drop), and counts as an arrival.

A service is a packet's transmission time in units of the mean service. `services` and `probabilities` are its
distribution: (1.0,) and (1.0,) for equal packets. Load is arrival rate x mean service.
"""

from __future__ import annotations

import numpy as np

from analysis.arithmetic.reproducible_sums import dot
from analysis.theory.checks import Numbers, check_at_least, check_load, check_share, check_whole

# More states cost seconds. In M/D/1 deeper states have a probability of 2e-36 at a load of 0.99, of 3e-4 at 0.999.
MOST_STATES = 4096


def second_moment(services: Numbers, probabilities: Numbers) -> float:
    """E[S^2] / E[S]^2 of a discrete service: 1 for equal packets, 2 for exponential ones. The Pollaczek-Khinchine
    formula below takes this value.

    Never below 1. Probabilities may have any scale. ValueError if a service is not above 0, if a probability is
    negative, or if all probabilities are 0.
    """
    values, weights = _service(services, probabilities)
    return max(dot(weights, values**2) * float(weights.sum()) / dot(weights, values) ** 2, 1.0)


def mg1_mean_depth(load: float, service_second_moment: float) -> float:
    """E[N] = rho + rho^2 E[S^2] / (2 (1 - rho) E[S]^2) (Pollaczek-Khinchine; Appenzeller et al., section 4, for jobs).

    M/G/1, FIFO, no limit of the queue. `service_second_moment` is E[S^2] / E[S]^2. The result is in packets.
    ValueError unless 0 < load < 1 and the moment is 1 or more, as every distribution's is.
    """
    check_load(load)
    check_at_least("E[S^2] / E[S]^2", service_second_moment, 1)
    return load + load**2 * service_second_moment / (2 * (1 - load))


def md1_mean_depth(load: float) -> float:
    """E[N] = rho + rho^2 / (2 (1 - rho)): M/G/1 with equal packets (Appenzeller et al., section 4: M/D/1 with Xi = 1).
    ValueError unless 0 < load < 1.
    """
    return mg1_mean_depth(load, 1.0)


def mg1_mean_wait(load: float, service_second_moment: float) -> float:
    """E[W] = rho E[S^2] / (2 (1 - rho) E[S]^2), in mean services: from the arrival until transmission begins.

    M/G/1, FIFO, no limit (Pollaczek-Khinchine). With E[N] above it obeys Little's law: E[N] = rho (E[W] + 1).
    ValueError unless 0 < load < 1 and the moment is 1 or more.
    """
    check_load(load)
    check_at_least("E[S^2] / E[S]^2", service_second_moment, 1)
    return load * service_second_moment / (2 * (1 - load))


def mg1_depth_distribution(load: float, services: Numbers, probabilities: Numbers, states: int) -> np.ndarray:
    """P(depth = 0 .. states - 1) of M/G/1 without limit. ValueError unless 0 < load < 1 and `states` is a whole
    number of 1 or more, and for services and probabilities as in second_moment.

    p_0 = 1 - rho; p_i = (p_0 A_i + sum_{j=1}^{i-1} p_j A_{i+1-j}) / (1 - A_1), A_i = P(i arrivals or more in one
    service) (Ramaswami 1988, A stable recursion for the steady state vector in Markov chains of M/G/1 type: no term is
    negative, so nothing cancels).
    """
    check_load(load)
    check_whole("states", states, 1)
    return (1 - load) * _relative(load, services, probabilities, states)


def md1_depth_distribution(load: float, states: int) -> np.ndarray:
    """P(depth = 0 .. states - 1) of M/D/1: p_0 = 1 - rho, p_1 = (1 - rho)(e^rho - 1), ... (Ramaswami 1988).
    ValueError as for mg1_depth_distribution.
    """
    return mg1_depth_distribution(load, (1.0,), (1.0,), states)


def mg1k_depth_distribution(load: float, services: Numbers, probabilities: Numbers, buffer: int) -> np.ndarray:
    """P(depth = 0 .. buffer) at arrivals if an arrival at depth `buffer` is dropped. The last probability is the
    loss.

    M/G/1/K with K = `buffer`, the packet in transmission counted. Departures leave j < K packets behind with
    probabilities whose ratios q_j are those without a limit. So p_j = q_j / (q_0 + rho Q), Q = sum q_j, and
    p_K = 1 - Q / (q_0 + rho Q) (Cooper 1981, Introduction to Queueing Theory, 5.9). Any load above 0. ValueError unless
    K is whole, 1 to MOST_STATES - 1.
    """
    check_load(load, below=np.inf)
    check_whole("a buffer", buffer, 1)
    if buffer >= MOST_STATES:
        raise ValueError(f"a buffer of {buffer} packets; allowed: 1 to {MOST_STATES - 1}")
    relative = _relative(load, services, probabilities, buffer)
    total = relative.sum()
    below_buffer = relative / (relative[0] + load * total)
    return np.append(below_buffer, max(0.0, 1 - below_buffer.sum()))


def md1_loss(load: float, buffer: int) -> float:
    """p_K of M/D/1/K with K = `buffer` (Cooper 1981, as above). ValueError as for mg1k_depth_distribution."""
    return float(mg1k_depth_distribution(load, (1.0,), (1.0,), buffer)[-1])


def md1_buffer(load: float, loss: float) -> int | None:
    """Least K for which M/D/1/K (Cooper 1981, as above) loses at most the share `loss`; None if K reaches MOST_STATES.

    K includes the packet in transmission. ValueError unless 0 < load < 1 and 0 < loss < 1.
    """
    check_load(load)
    check_share("a loss", loss)
    low, high = 0, 1
    while md1_loss(load, high) > loss:
        if high == MOST_STATES - 1:
            return None
        low, high = high, min(2 * high, MOST_STATES - 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if md1_loss(load, middle) <= loss else (middle, high)
    return high


def _relative(load: float, services: Numbers, probabilities: Numbers, states: int) -> np.ndarray:
    none, at_least = _arrivals(load, services, probabilities, states + 1)
    return _relative_states(none, at_least, states)


def _relative_states(none: float, at_least: np.ndarray, states: int) -> np.ndarray:
    """Probabilities of the states relative to the empty state, by Ramaswami's recursion (mg1_depth_distribution). Far
    above a load of 1 they are relative to a later state. `none` and `at_least` are P(no arrival) and P(k arrivals or
    more) in one service; arrivals must not depend on the state.
    """
    result = np.zeros(states)
    result[:1] = 1.0
    for i in range(1, states):
        # sum_{j=1}^{i-1} p_j A_{i+1-j}
        result[i] = (at_least[i] + dot(result[1:i], at_least[i:1:-1])) / none
        if result[i] > 1e200:  # avoid overflow: far above a load of 1 only the last states matter
            result[: i + 1] /= result[i]
    return result


def _service(services: Numbers, probabilities: Numbers) -> tuple[np.ndarray, np.ndarray]:
    values, weights = np.asarray(services, dtype=np.float64), np.asarray(probabilities, dtype=np.float64)
    if not len(values) or len(weights) != len(values) or not ((values > 0) & (values < np.inf)).all():
        raise ValueError("services and their probabilities; allowed: as many of each, services above 0 and finite")
    if not ((weights >= 0) & (weights < np.inf)).all() or not weights.sum() > 0:
        raise ValueError("probabilities of services; allowed: 0 or more and finite, not all 0")
    return values, weights


def _arrivals(load: float, services: Numbers, probabilities: Numbers, count: int) -> tuple[float, np.ndarray]:
    """P(no Poisson arrival in one service), and P(at least k), k = 0 .. count - 1. Sums from the tail avoid the
    cancellation of 1 - P.
    """
    values, weights = _service(services, probabilities)
    weights = weights / weights.sum()
    means = load * values / dot(weights, values)
    far = count + int(means.max() + 12 * np.sqrt(means.max()) + 60)  # e^-m m^k / k! is negligible beyond
    exactly = np.zeros(far)
    term = weights * np.exp(-means)
    for k in range(far):
        exactly[k] = term.sum()
        term = term * means / (k + 1)
    return float(exactly[0]), np.cumsum(exactly[::-1])[::-1][:count]
