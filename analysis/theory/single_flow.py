# SPDX-License-Identifier: MIT
"""One long flow at a bottleneck: the buffer that it needs, and its utilization with a smaller buffer.

Windows are packets in flight; windows, buffers and BDPs are packets unless stated otherwise. All results follow from
Assumptions 1 and 3 of Spang et al.: the queue is the window minus the BDP, and losses begin at a window of BDP + B.
The assumptions fail for bursts (Spang et al., 3.6: with a buffer below about twenty packets).
"""

from __future__ import annotations

from analysis.theory.checks import check_at_least, check_positive, check_share

# Window after a loss / window before it, as in Spang et al., 3.5. Reno: RFC 5681, 3.1. Cubic: Linux's beta_cubic
# (net/ipv4/tcp_cubic.c). Scalable: net/ipv4/tcp_scalable.c.
DECREASE = {"reno": 1 / 2, "cubic": 717 / 1024, "scalable": 7 / 8}
BBR_DRAIN = 3 / 4  # pacing gain of BBR v1 in the RTT after a loss while probing (Spang et al., 3.5)
ALGORITHMS = (*DECREASE, "bbr")
DECREASE["scalable_50"] = DECREASE["scalable"]  # hosts/congestion/scalable_50.c: another increase, the same decrease


def bdp_packets(rate_bps: int, rtt_ns: int, wire_bytes: int) -> float:
    """C x RTT in full packets of `wire_bytes` each, frame, FCS, preamble and gap included (Spang et al., 3.3).

    ValueError unless all are above 0.
    """
    check_positive("a rate", rate_bps)
    check_positive("an RTT", rtt_ns)
    check_positive("bytes on the wire", wire_bytes)
    return rate_bps * rtt_ns / (8e9 * wire_bytes)


def bdp_rule(bdp: float) -> float:
    """B = C x RTT: the least buffer that keeps the link of one Reno flow busy (Spang et al., 3.1; Appenzeller et al.,
    1.2, 2).

    Assumes that the window halves. A sender that pauses after a loss (Appenzeller et al.) and one that keeps sending
    (PRR) need the same buffer (Spang et al., 3.5). ValueError unless BDP > 0.
    """
    check_positive("a BDP", bdp)
    return bdp


def synchronized_buffer(bdp: float, flows: int) -> float:
    """B = 2 T_p C = C x RTT for any number of flows that lose together (Appenzeller et al., 3.1, equations 2 and 3).

    Their windows add up to one sawtooth: W_max = BDP + B, and W_max / 2 = BDP. ValueError unless n >= 1 and BDP > 0.
    """
    check_at_least("flows", flows, 1)
    check_positive("a BDP", bdp)
    return bdp


def queue_length(in_flight: float, bdp: float, buffer: float) -> float:
    """Q = W - BDP, within 0 and B (Spang et al., Assumption 1). ValueError unless W >= 0, BDP > 0 and B >= 0."""
    check_at_least("a window", in_flight, 0)
    check_positive("a BDP", bdp)
    check_at_least("a buffer", buffer, 0)
    return min(max(in_flight - bdp, 0.0), buffer)


def utilization_of_window(in_flight: float, bdp: float) -> float:
    """min(W / BDP, 1) (Spang et al., Lemma 2). ValueError unless W >= 0 and BDP > 0."""
    check_positive("a BDP", bdp)
    check_at_least("a window", in_flight, 0)
    return min(in_flight / bdp, 1.0)


def decrease_buffer(decrease: float, bdp: float, utilization: float = 1.0, variability: float = 0.0) -> float:
    """(u / beta - 1) BDP: least buffer for a utilization u right after a loss, of a flow whose window falls to beta W.

    Spang et al., 3.5 ("decrease by beta on a loss", W' = beta W) and Table 1, (1/b - 1) BDP. With `variability` eps > 0
    the queue may differ from Assumption 1 by that share: (1 - eps)(W - BDP) <= Q <= (1 + eps)(W - BDP). Losses can
    then begin at W = BDP + B / (1 + eps), so the buffer must be (1 + eps) times as large (3.3 states this for Reno:
    (1 + eps) BDP). Never below 0. ValueError unless 0 < beta < 1, 0 <= u <= 1, eps >= 0 and BDP > 0.
    """
    check_share("the decrease", decrease)
    check_positive("a BDP", bdp)
    check_share("a utilization", utilization, ends=True)
    check_at_least("variability", variability, 0)
    return max((utilization / decrease - 1) * (1 + variability), 0.0) * bdp


def decrease_utilization(decrease: float, buffer: float, bdp: float) -> float:
    """min(beta (1 + B / BDP), 1): utilization right after a loss, of a flow whose window falls to beta W (Spang et al.,
    3.5). ValueError unless 0 < beta < 1, B >= 0 and BDP > 0.
    """
    check_share("the decrease", decrease)
    check_at_least("a buffer", buffer, 0)
    check_positive("a BDP", bdp)
    return utilization_of_window(decrease * (bdp + buffer), bdp)


def min_utilization(cc: str, buffer: float, bdp: float) -> float | None:
    """Least utilization after a loss of a single flow: min(beta (1 + B/BDP), 1); BBR v1: min(3/4 + B/BDP, 1).

    Spang et al., 3.5. None for an algorithm without a rule there. ValueError unless B >= 0 and BDP > 0.
    """
    check_at_least("a buffer", buffer, 0)
    check_positive("a BDP", bdp)
    if cc == "bbr":
        return utilization_of_window(BBR_DRAIN * bdp + buffer, bdp)
    if cc not in DECREASE:
        return None
    return decrease_utilization(DECREASE[cc], buffer, bdp)


def drained_packets(cc: str, buffer: float, bdp: float) -> float | None:
    """Packets by which the queue of a single flow falls from B: (1 - beta) (BDP + B) after a loss; BBR v1: BDP / 4 in
    the round trip in which it sends less. Never more than B.

    Spang et al., 3.5 with Assumptions 1 and 3 (at a loss W = BDP + B); its 3.6 measures about all of B = BDP for Reno,
    60-70 % for Cubic, 11-25 % for Scalable, 25 % for BBR. None for an algorithm without a rule there. ValueError
    unless B >= 0 and BDP > 0.
    """
    check_at_least("a buffer", buffer, 0)
    check_positive("a BDP", bdp)
    if cc == "bbr":
        return min((1 - BBR_DRAIN) * bdp, buffer)
    if cc not in DECREASE:
        return None
    return buffer - queue_length(DECREASE[cc] * (bdp + buffer), bdp, buffer)


def single_flow_buffer(cc: str, bdp: float, utilization: float = 1.0) -> float | None:
    """Least buffer for a utilization of a single flow: (u/beta - 1) BDP; BBR v1: (u - 3/4) BDP. Never below 0.

    Spang et al., 3.5 and Table 1: BDP for Reno, 3/7 BDP for Cubic (beta rounded to 7/10; with 717/1024 it is 0.4282),
    1/7 BDP for Scalable, 1/4 BDP for BBR while it probes for bandwidth and packets are lost. None for an algorithm
    without a rule there (for example BBRv2: "as soon as the algorithm is described in sufficient detail"). ValueError
    unless BDP > 0 and 0 <= u <= 1.
    """
    check_positive("a BDP", bdp)
    check_share("a utilization", utilization, ends=True)
    if cc == "bbr":
        return max(utilization - BBR_DRAIN, 0.0) * bdp
    if cc not in DECREASE:
        return None
    return decrease_buffer(DECREASE[cc], bdp, utilization)
