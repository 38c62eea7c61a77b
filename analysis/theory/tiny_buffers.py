# SPDX-License-Identifier: MIT
"""Very small buffers: dozens of packets are enough for smooth traffic, whatever rate, RTT and number of flows.

Enachescu, Ganjali, Goel, McKeown, Roughgarden 2006, Routers with Very Small Buffers (Infocom);
"CCR version": the shorter version of 2005. Buffers and windows are packets. Assumes that senders pace (Poisson, or
evenly over the RTT) or that access links are much slower than the bottleneck, and one RTT for all flows. Theorem 2 of
the paper has unnamed constants, so there is no function for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import optimize

from analysis.theory import mm1b, queues
from analysis.theory.checks import check_at_least, check_load, check_positive, check_share, check_whole

# Beyond these limits the queue counts as never empty. OVERFLOWS is B ln(rho): P(empty) is below e^-300. SATURATED is
# the load, for B >= 2: departures leave the queue empty with a probability of at most e^-50.
OVERFLOWS, SATURATED = 300.0, 50.0
LOG_FACTOR = 5.0  # packets for each power of ten of the largest window
LEAST_LOSS = 1e-12  # M/D/1/B's loss is 1 minus a sum, so smaller values are rounding errors


def drop_bound(load: float, buffer: float) -> float:
    """rho^B: the drop probability of Poisson packets of equal size is at most this (Enachescu et al., section II and
    Lemma 2 of appendix I).

    75 % load and 20 packets: 0.3 %. The exact tail of M/D/1 is thinner. ValueError unless 0 < rho < 1 and B >= 0.
    """
    check_load(load)
    check_at_least("a buffer", buffer, 0)
    return load**buffer


def buffer_for_drops(load: float, drops: float) -> float:
    """ln(drops) / ln(rho): least buffer for which drop_bound (Enachescu et al., section II) is `drops`. ValueError
    unless 0 < rho, drops < 1.
    """
    check_load(load)
    check_share("a drop probability", drops)
    return math.log(drops) / math.log(load)


def log_window_buffer(largest_window: float) -> float:
    """5 log10(W): the buffer of Figure 6 for paced flows with windows of at most W packets (Enachescu et al., section
    IV-A). ValueError unless W >= 1.
    """
    check_at_least("a largest window", largest_window, 1)
    return LOG_FACTOR * math.log10(largest_window)


def peak_load(bdp: float, flows: float, largest_window: float) -> float:
    """rho = N W_max / (C RTT): the load that all flows offer with their largest windows (Enachescu et al., section II).

    ValueError unless BDP > 0, N >= 1 and W_max > 0.
    """
    check_positive("a BDP", bdp)
    check_at_least("flows", flows, 1)
    check_positive("the largest window", largest_window)
    return flows * largest_window / bdp


def poisson_buffer(load: float, largest_window: float, effective_utilization: float) -> float:
    """B = log_{1/rho}(W_max^2 / (2 (1 - theta))): suffices for an effective utilization of theta, a share of rho C
    (Enachescu et al., Theorem 1).

    Assumes an over-provisioned link, rho = N W_max / (C RTT) < 1, windows of at most W_max, and Poisson injection at
    W / RTT. A theta of 1 needs an infinite buffer and is refused. Not below 0. ValueError unless 0 < rho < 1,
    0 <= theta < 1, W_max >= 1.
    """
    check_load(load)
    check_at_least("a window", largest_window, 1)
    if not 0 <= effective_utilization < 1:
        raise ValueError(f"an effective utilization of {effective_utilization}; allowed: 0 to below 1")
    packets = 2 * math.log(largest_window) - math.log(2 * (1 - effective_utilization))
    return max(packets / -math.log(load), 0.0)


def poisson_utilization(load: float, largest_window: float, buffer: float) -> float:
    """theta = 1 - rho^B W_max^2 / 2, not below 0: Enachescu et al.'s Theorem 1, solved for theta. The link's
    utilization is rho theta. ValueError unless 0 < rho < 1, B >= 0 and W_max >= 1.
    """
    check_at_least("a window", largest_window, 1)
    return max(1 - drop_bound(load, buffer) * largest_window**2 / 2, 0.0)


def tcp_rate(loss: float, rtt_s: float) -> float:
    """R = sqrt(3 / (2 p)) / tau packets/s (Enachescu et al., equation 2). ValueError unless 0 < p <= 1 and tau > 0."""
    check_positive("an RTT", rtt_s)
    check_positive("a loss probability", loss)
    check_share("a loss probability", loss, ends=True)
    return math.sqrt(1.5 / loss) / rtt_s


def tcp_loss(window: float) -> float:
    """p = 3 / (2 (R tau)^2): Enachescu et al.'s equation 2, solved for p, with a mean window R tau. Never more than 1.
    ValueError unless the window is above 0.
    """
    check_positive("a window", window)
    return min(1.5 / window**2, 1.0)


def tcp_mm1b_load(fair_window: float, buffer: float, largest_window: float = math.inf) -> float:
    """rho where the TCP equation and M/M/1/B agree: rho = R N / C, R tau = sqrt(3 / (2 p)), p = mm1b.loss(rho, B)
    (Enachescu et al., IV-A, equations 2 and 3, solved with the exact p).

    `fair_window` is C tau / N packets: each flow's share of the pipe. A flow's window rho C tau / N is at most
    `largest_window`. The paper's scaling is C = N W_max / (2 tau) (congested; fair_window = W_max / 2) and
    C = 2 N W_max / tau (over-provisioned, where it prints "under-provisioned"; fair_window = 2 W_max). The result is
    the offered load and can be above 1; the link's utilization is rho (1 - p). ValueError unless both windows are
    above 0 and B >= 1.
    """
    return _tcp_load(mm1b.log_loss, fair_window, buffer, largest_window)


def tcp_md1b_load(fair_window: float, buffer: int, largest_window: float = math.inf) -> float:
    """rho where the TCP equation and M/D/1/B agree: as tcp_mm1b_load (Enachescu et al., IV-A, equation 2), with packets
    of one size in place of exponential ones. ValueError unless both windows are above 0 and B is whole, 1 to 4095.
    """
    check_whole("a buffer", buffer, 1)
    return _tcp_load(_md1b_log_loss, fair_window, buffer, largest_window)


def _md1b_log_loss(load: float, buffer: float) -> float:
    if buffer == 1:  # rho / (1 + rho), Erlang's formula for one server
        return -math.log1p(1 / load)
    if load > SATURATED or buffer * math.log(load) > OVERFLOWS:  # the queue is never empty: all load above 1 is lost
        return math.log1p(-1 / load)
    return math.log(max(queues.md1_loss(load, int(buffer)), LEAST_LOSS))


def _tcp_load(
    log_loss: Callable[[float, float], float], fair_window: float, buffer: float, largest_window: float
) -> float:
    check_positive("a fair window", fair_window)
    check_positive("the largest window", largest_window)
    check_at_least("a buffer", buffer, 1)

    def excess(log_load: float) -> float:  # ln of (window offered / window that the losses allow): rises with the load
        return log_load + math.log(fair_window) + (log_loss(math.exp(log_load), buffer) - math.log(1.5)) / 2

    low, high = -1.0, 1.0
    while excess(low) > 0:
        low *= 2
    while excess(high) < 0:
        high *= 2
    load = math.exp(float(optimize.brentq(excess, low, high, xtol=1e-13)))
    return min(load, largest_window / fair_window)


def tcp_mm1b_load_approximate(fair_window: float, buffer: float) -> float:
    """rho = (3 / (2 w^2))^(1 / (B + 3)), w = C tau / N: Enachescu et al.'s equations 2 and 3 with its p ~ rho^(B+1),
    not above 1.

    The paper's two conclusions follow from this approximation: B = beta log W keeps rho above any alpha < 1, B = o(log
    W) does not. ValueError unless w > 0 and B >= 1.
    """
    check_positive("a fair window", fair_window)
    check_at_least("a buffer", buffer, 1)
    return min(math.exp(math.log(1.5 / fair_window**2) / (buffer + 3)), 1.0)


def tcp_mm1b_buffer(fair_window: float, utilization: float) -> float:
    """Least B for which tcp_mm1b_load (Enachescu et al., IV-A) is `utilization`: p = mm1b.loss(u, B) = 3 / (2 (u w)^2),
    w = C tau / N.

    From p = (1 - u) u^B / (1 - u^(B+1)): u^B = p / (1 - u + u p). Not below 1, the packet in transmission. ValueError
    unless 0 < u < 1 and w > 0.
    """
    check_positive("a fair window", fair_window)
    check_share("a utilization", utilization)
    loss = tcp_loss(utilization * fair_window)
    return max(math.log(loss / (1 - utilization + utilization * loss)) / math.log(utilization), 1.0)
