# SPDX-License-Identifier: MIT
"""Many long flows that share a bottleneck: buffers shrink with the square root of the number of flows.

Windows, buffers and BDPs are packets. All results assume Spang et al.'s Assumptions 1 and 3 (see single_flow.py),
one RTT for all flows, and Delta-almost fairness: every window stays between BDP / (Delta n) and Delta BDP / n.
ValueError unless n >= 1, Delta >= 1 and BDP > 0, and as in each docstring. gaussian.py has Appenzeller et al.'s
Gaussian model.
"""

from __future__ import annotations

import math

from analysis.theory.checks import check_at_least, check_positive, check_share

# Delta of almost fairness by congestion control, as Spang et al. measured it (5.6)
MEASURED_DELTA = {"reno": 4.0, "cubic": 4.0, "scalable": 4.0, "bbr": 10.0}


def sqrt_rule(bdp: float, flows: float) -> float:
    """BDP / sqrt(n) for n long flows that are not synchronized (Appenzeller et al., section 3; Spang et al., Theorem
    4).

    `flows` counts the flows in congestion avoidance at one time (Appenzeller et al., 5.1.3) and need not be whole.
    ValueError unless n >= 1 and BDP > 0.
    """
    check_at_least("flows", flows, 1)
    check_positive("a BDP", bdp)
    return bdp / math.sqrt(flows)


def almost_fair_buffer(bdp: float, flows: float, delta: float) -> float:
    """Delta BDP / sqrt(n): full utilization of n Delta-almost fair flows (Spang et al., Theorem 6).

    Under the conditions of Theorem 5: windows of at least `least_window`, and no more than `flows_seeing_loss` of the
    flows decrease theirs. ValueError unless Delta >= 1, n >= 1 and BDP > 0, here and below.
    """
    _check(flows, delta)
    return delta * sqrt_rule(bdp, flows)


def almost_fair_window(bdp: float, buffer: float, flows: float, delta: float) -> float:
    """BDP + B - Delta BDP / sqrt(n): the aggregate window stays above this (Spang et al., Theorem 5). ValueError also
    for B < 0.
    """
    check_at_least("a buffer", buffer, 0)
    return bdp + buffer - almost_fair_buffer(bdp, flows, delta)


def almost_fair_utilization(flows: float, delta: float) -> float:
    """1 - Delta / sqrt(n), whatever the buffer (Spang et al., Theorem 7). Not below 0.

    A bound on the utilization of any instant, not on its mean. The paper's "more than 1,000 flows ... at least 97%" is
    96.84 % for Delta = 1, rounded.
    """
    _check(flows, delta)
    return max(1 - delta / math.sqrt(flows), 0.0)


def buffer_for_utilization(bdp: float, flows: float, delta: float, utilization: float) -> float:
    """(Delta / sqrt(n) - (1 - u)) BDP, not below 0: least buffer for which the utilization of no instant falls below u.

    Theorem 5 with Lemma 2 of Spang et al.: W >= BDP + B - Delta BDP / sqrt(n), and u = W / BDP. For u = 1
    this is Theorem 6. The result is 0 if Theorem 7 promises u or more without a buffer. The model has no bursts;
    bursts need a buffer of 20 packets (Spang et al., 3.6). ValueError unless 0 <= u <= 1.
    """
    _check(flows, delta, bdp)
    check_share("a utilization", utilization, ends=True)
    return max(delta / math.sqrt(flows) - (1 - utilization), 0.0) * bdp


def flows_seeing_loss(bdp: float, flows: float, delta: float) -> float:
    """n^2 / (Delta BDP) + sqrt(n): the most flows that may see a loss in one RTT for Theorems 5 to 7 (Spang et al.)."""
    _check(flows, delta, bdp)
    return flows**2 / (delta * bdp) + math.sqrt(flows)


def least_window(decrease: float = 0.5, increase: float = 1.0) -> float:
    """alpha / beta: windows below it break Theorem 5 (Spang et al., 4.1); 2 for Reno.

    The algorithm's window falls to beta W at a loss and otherwise grows by `increase` alpha or more per RTT. The paper
    writes alpha / (1 - beta) because there, unlike in its 3.5, a window decreases *by* beta W. ValueError unless
    0 < beta < 1 and alpha > 0.
    """
    check_share("the decrease", decrease)
    check_positive("the increase", increase)
    return increase / decrease


def almost_fair_least_window(bdp: float, flows: float, delta: float) -> float:
    """BDP / (Delta n): the least window that Delta-almost fairness allows (Spang et al., equation 1)."""
    _check(flows, delta, bdp)
    return bdp / (delta * flows)


def desynchronized_window(bdp: float, buffer: float, flows: float, delta: float, extra: float) -> float:
    """BDP + B - s Delta BDP / n: the aggregate window if n^2 / (Delta BDP) + s flows see a loss (Spang et al., equation
    3). ValueError for B < 0 or s < 0.
    """
    check_at_least("a buffer", buffer, 0)
    return bdp + buffer - desynchronized_buffer(bdp, flows, delta, extra)


def desynchronized_buffer(bdp: float, flows: float, delta: float, extra: float) -> float:
    """s Delta BDP / n: full utilization if at most n^2 / (Delta BDP) + s flows see a loss in one RTT (Spang et al.,
    4.6).

    s = sqrt(n) is Theorem 6; s = c n asks for c Delta BDP, s = 1 for Delta BDP / n. ValueError for s < 0.
    """
    _check(flows, delta, bdp)
    check_at_least("extra flows", extra, 0)
    return extra * delta * bdp / flows


def fraction_losing_buffer(bdp: float, flows: float, fraction: float) -> float:
    """(p BDP - 2 n (1 - p)) / (2 - p): full utilization if a fraction p of n fair Reno flows sees a loss. Not below 0.

    Spang et al., Table 1, prints this bound as O(p BDP - n + n p). All windows are (BDP + B) / n. p n windows halve,
    the others grow by one. BDP + B - p (BDP + B) / 2 + n (1 - p) >= BDP gives the constants. p = 1 is the BDP rule.
    ValueError unless n >= 1, BDP > 0 and 0 <= p <= 1.
    """
    check_at_least("flows", flows, 1)
    check_positive("a BDP", bdp)
    check_share("a fraction", fraction, ends=True)
    return max((fraction * bdp - 2 * flows * (1 - fraction)) / (2 - fraction), 0.0)


def bbr_buffer(bdp: float, flows: float, delta: float, risk: float) -> float:
    """Delta BDP sqrt(ln(1 / delta)) / sqrt(2 n), for n BBR v1 flows that probe for bandwidth. With a larger buffer
    P(utilization < 1) <= delta, the `risk` (Spang et al., Theorem 8, equation 2).

    The theorem has no condition on how many flows see a loss. ValueError unless 0 < risk < 1. See bbr_buffer_sharp.
    """
    _check(flows, delta, bdp)
    check_share("a risk", risk)
    return delta * bdp * math.sqrt(-math.log(risk) / (2 * flows))


def bbr_buffer_sharp(bdp: float, flows: float, delta: float, risk: float) -> float:
    """Delta BDP sqrt(ln(1 / delta)) / sqrt(8 n): the bound that the proof of Theorem 8 supports; half of bbr_buffer.

    Appendix B bounds each flow's change by c = Delta BDP / (4 n), so Azuma-Hoeffding's exp(-t^2 / (2 n c^2)) is
    exp(-8 n t^2 / (Delta BDP)^2). The paper continues with exp(-2 n t^2 / ...), which loses a factor of 4. The theorem
    holds nevertheless. Spang et al., appendix B. ValueError as for bbr_buffer.
    """
    return bbr_buffer(bdp, flows, delta, risk) / 2


def random_decrease_flows(bdp: float, flows: float, delta: float, risk: float = math.exp(-0.5)) -> float:
    """n^2 / (BDP / Delta) + sqrt(2 n ln(1 / delta)): a bound on the flows that decrease their windows in one RTT, if
    each flow that sees a loss decreases its window with probability p = 1 / w. The number of flows exceeds the bound
    with a probability of at most delta, the `risk` (Spang et al., Lemma 9, appendix D).

    Lemma 9 has the risk exp(-1/2), for which the second term is sqrt(n). The lemma's n^2 / (BDP / Delta) is right,
    since p <= Delta n / BDP. Equation 5 of the appendix prints n^2 / (Delta BDP), and the next line omits Delta.
    ValueError unless 0 < risk < 1.
    """
    _check(flows, delta, bdp)
    check_share("a risk", risk)
    return flows**2 * delta / bdp + math.sqrt(-2 * flows * math.log(risk))


def least_flows_that_shrink_window(flows: float, least_losing_window: float) -> float:
    """n / (1 + w / 2): if fewer of n Reno flows halve windows of w packets, the aggregate window still grows.

    Spang et al., appendix C. The other windows grow by one packet per RTT. If the halved windows differ, w is the
    smallest, and the result is only the number of flows from which on the aggregate window cannot grow. One halved
    window of BDP / n does not shrink the aggregate window if BDP / n < n - 1 (Spang et al., 4.2; BDP / n < 2 (n - 1) is
    enough). ValueError unless n >= 1 and w > 0.
    """
    check_at_least("flows", flows, 1)
    check_positive("a window", least_losing_window)
    return flows / (1 + least_losing_window / 2)


def _check(flows: float, delta: float, bdp: float = 1.0) -> None:
    check_at_least("flows", flows, 1)
    check_at_least("Delta", delta, 1)
    check_positive("a BDP", bdp)
