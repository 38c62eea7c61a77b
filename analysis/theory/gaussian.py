# SPDX-License-Identifier: MIT
"""The sum of many independent sawtooths is Gaussian: the utilization with a buffer, and the buffer for a utilization.

Appenzeller et al., section 3.2; Spang et al., Theorem 4. Windows, buffers and BDPs are packets. Assumes n long Reno
flows whose windows are independent, each uniform between 2/3 and 4/3 of its mean. In-phase synchronization is common
below 100 flows and very rare above 500 (Appenzeller et al., 3.2); the mean window must be above two packets (5.1.1).
Lost utilization is computed directly, not as 1 - u, because it can be as small as 1e-300.
"""

from __future__ import annotations

import math

from scipy import special

from analysis.theory.checks import check_at_least, check_positive, check_share

# 1 / sqrt(12) (4/3 - 2/3): standard deviation of one window divided by its mean (Appenzeller et al., 3.2)
_SPREAD = 1 / (3 * math.sqrt(3))
_FACTOR = 1 / (2 * math.sqrt(2) * _SPREAD)  # 3 sqrt(3) / (2 sqrt(2)) of equation 6


def queue_deviation(bdp: float, mean_queue: float, flows: float) -> float:
    """(BDP + Q) / (3 sqrt(3) sqrt(n)) packets: standard deviation of the aggregate window and of the queue.

    Appenzeller et al., 3.2. With Q = B it is an upper bound. ValueError unless n >= 1, BDP > 0 and Q >= 0.
    """
    check_at_least("flows", flows, 1)
    check_positive("a BDP", bdp)
    check_at_least("a mean queue", mean_queue, 0)
    return _SPREAD * (bdp + mean_queue) / math.sqrt(flows)


def lost_utilization(bdp: float, buffer: float, flows: float, mean_queue: float | None = None) -> float:
    """erfc(3 sqrt(3) / (2 sqrt(2)) B sqrt(n) / (BDP + Q)): at most this share of the link is lost (Appenzeller et al.,
    equation 6).

    The result is the probability that the queue is outside 0 .. B if its mean is B / 2. `mean_queue` Q only scales the
    windows; the default is B, the paper's bound. The Model column of the paper's Figure 15 follows from Q = 0, with the
    64 kB FIFO of the line card (5.2.2) added to B. The paper's example of B = 1.5 BDP / sqrt(n), n = 10,000, has a
    misprint: 99.99988 % should be 99.988 %. ValueError unless n >= 1, BDP > 0, B >= 0 and Q >= 0.
    """
    check_at_least("flows", flows, 1)
    check_positive("a BDP", bdp)
    check_at_least("a buffer", buffer, 0)
    queue = buffer if mean_queue is None else mean_queue
    check_at_least("a mean queue", queue, 0)
    scale = bdp + queue
    return float(special.erfc(_FACTOR * buffer * math.sqrt(flows) / scale))


def utilization(bdp: float, buffer: float, flows: float, mean_queue: float | None = None) -> float:
    """erf(...) = 1 - lost_utilization: a lower bound on the utilization (Appenzeller et al., equation 6). ValueError as
    in lost_utilization.
    """
    return 1 - lost_utilization(bdp, buffer, flows, mean_queue)


def buffer_for_loss_of(lost: float, bdp: float, flows: float) -> float:
    """Least buffer for which Appenzeller et al.'s equation 6 loses no more than the share `lost`: B = x BDP / (1 - x),
    x = erfcinv(lost) 2 sqrt(2) / (3 sqrt(3) sqrt(n)).

    math.inf where x >= 1: with so few flows no buffer reaches the bound. ValueError unless 0 < lost <= 1, n >= 1 and
    BDP > 0.
    """
    check_at_least("flows", flows, 1)
    check_positive("a BDP", bdp)
    check_positive("lost utilization", lost)
    check_share("lost utilization", lost, ends=True)
    x = float(special.erfcinv(lost)) / (_FACTOR * math.sqrt(flows))
    return x * bdp / (1 - x) if x < 1 else math.inf


def required_buffer(wanted: float, bdp: float, flows: float) -> float:
    """buffer_for_loss_of(1 - wanted): Appenzeller et al., Figure 11, "Minimum required buffer to achieve 98, 99.5 and
    99.9 percent utilization". math.inf for `wanted` 1, because a Gaussian is unbounded. ValueError unless 0 <= wanted
    <= 1, n >= 1, BDP > 0.
    """
    check_at_least("flows", flows, 1)
    check_positive("a BDP", bdp)
    check_share("a utilization", wanted, ends=True)
    return math.inf if wanted == 1 else buffer_for_loss_of(1 - wanted, bdp, flows)


def empty_probability(bdp: float, buffer: float, flows: float) -> float:
    """P(W < BDP), where W is the sum of n independent windows, uniform in (1 +- 1/3) (BDP + B) / n (Spang et al.,
    Theorem 4), as a Gaussian: Phi(-B / sigma), sigma = (BDP + B) / (3 sqrt(3 n)).

    The mean of W is BDP + B here (a full queue) and BDP + B / 2 in equation 6. For B >= BDP / sqrt(n) and large n the
    theorem's bound is 0.02, and this function returns at most 1.0e-7. ValueError unless n >= 1, BDP > 0 and B >= 0.
    """
    check_at_least("a buffer", buffer, 0)
    return float(special.ndtr(-buffer / queue_deviation(bdp, buffer, flows)))


def loss_of_window(window: float) -> float:
    """l = 0.76 / w^2: loss rate of a Reno flow with a mean window of w packets (Appenzeller et al., 5.1.1, after
    Morris).

    Half the window means four times the loss rate. The result is at most 1. ValueError unless w > 0.
    """
    check_positive("a window", window)
    return min(0.76 / window**2, 1.0)
