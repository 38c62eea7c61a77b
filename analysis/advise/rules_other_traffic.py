# SPDX-License-Identifier: MIT
"""Rules for short flows (Appenzeller et al., section 4), for smooth traffic through tiny buffers (Enachescu et al.) and
for the fastest transfers (Prasad et al.). analysis/theory/ computes them.
"""

from __future__ import annotations

import math

from analysis.advise.link import Link
from analysis.advise.rule import Assumption, Rule
from analysis.advise.rules_long_flows import reno
from analysis.theory import capacity_ratio, queues, short_flows, tiny_buffers
from analysis.wording.formats import round_up

SHORT_FLOW_PACKETS = 90  # Appenzeller et al., section 4: shorter flows never leave slow start
MOST_LOST = 0.1  # Enachescu et al.'s equation 2 omits terms that grow with the loss; with more loss we do not trust it
MUCH_BELOW_ONE = 0.1  # the Gamma of Prasad et al.'s simulations with the PL-form (their Table 1)


def _load(link: Link) -> float:
    if link.load is None:
        raise ValueError("no load is given; allowed: above 0, below 1")
    return link.load


def _has_load(link: Link) -> bool:
    return link.load is not None


def _has_short_flows(link: Link) -> bool:
    return bool(link.flow_packets)


def _slower_than_inputs(link: Link) -> bool:
    return link.gamma is not None and link.gamma < 1


def _smooth(link: Link) -> Assumption:
    """The assumption that the bursts of long flows' windows arrive spread out."""
    text = "senders pace, or access links are much slower than this one"
    if link.cc == "bbr":
        return Assumption(f"{text}: BBR paces (Spang et al., 3.6), but not as Poisson", None)
    if link.gamma is None:
        return Assumption(text, None)
    # Theorem 2 of Enachescu et al.: access links slower by a factor of order log(W), with an unstated constant
    window = link.fair_window if link.window_bytes is None else link.largest_window
    return Assumption(f"{text}: {link.gamma:.3g} x", None if link.gamma > math.log2(max(window, 2)) else False)


def _poisson(link: Link) -> Assumption:
    """The assumption of Poisson packets for other traffic: only slow access links spread out its packets."""
    text = "packets are Poisson: access links are much slower than this one"
    if link.gamma is None:
        return Assumption(text, None)
    return Assumption(f"{text}: {link.gamma:.3g} x", None if link.gamma > 1 else False)


def _burst_tail(link: Link, order: int | None) -> float:
    bursts, weights = link.bursts
    return short_flows.buffer_for_tail(_load(link), bursts, link.risk, weights, order)


def _burst_assumptions(link: Link) -> list[Assumption]:
    largest = max(packets for packets, _ in link.flow_packets)
    faster = None if link.gamma is None else link.gamma <= 1
    return [
        Assumption(
            f"flows never leave slow start (fewer than {SHORT_FLOW_PACKETS} packets): {largest}",
            largest < SHORT_FLOW_PACKETS,
        ),
        Assumption("flows are many, and begin at random (Poisson)", None),
        Assumption("bursts arrive whole: access links are no slower than this one (else less is needed)", faster),
        Assumption(
            f"two terms of a series are enough; with all terms the rule gives {_burst_tail(link, None):.4g} packets",
            None,
        ),
    ]


def _md1(link: Link) -> float:
    return short_flows.buffer_for_tail(_load(link), (1,), link.risk)


def _md1_assumptions(link: Link) -> list[Assumption]:
    """Two assumptions: packets are Poisson, and the rule's buffer, an estimate for large buffers, is no less than the
    exact buffer (where that is known).
    """
    packets, exact = round_up(_md1(link)), queues.md1_buffer(_load(link), link.risk)
    text = "the rule's buffer, an estimate for large buffers, is large enough"
    if exact is None:
        return [_poisson(link), Assumption(text, None)]
    exact_text = f"the exact least buffer for a loss of {link.risk:g} is {exact} packets"
    return [_poisson(link), Assumption(f"{text}: {exact_text}", packets >= exact)]


def _theorem_1(link: Link) -> float:
    if link.utilization >= 1 or link.peak_load >= 1:
        return math.inf
    return tiny_buffers.poisson_buffer(link.peak_load, link.largest_window, link.utilization)


def _theorem_1_assumptions(link: Link) -> list[Assumption]:
    share = link.peak_load
    used = f"{link.utilization * share:.3g} of the link" if share < 1 else "not of the link's rate"
    return [
        Assumption(f"all flows' largest windows together stay below the link's rate: {share:.3g} of it", share < 1),
        reno(link),
        _smooth(link),
        Assumption("UTIL is below 1", link.utilization < 1),
        Assumption(f"UTIL {link.utilization:g} is a share of the rate that these windows offer: {used}", None),
    ]


def _tcp_equation(link: Link) -> float:
    return math.inf if link.utilization >= 1 else tiny_buffers.tcp_mm1b_buffer(link.fair_window, link.utilization)


def _tcp_equation_assumptions(link: Link) -> list[Assumption]:
    wanted, largest = link.utilization * link.fair_window, link.largest_window
    limit = "" if math.isinf(largest) else f": WINDOW is {largest:.3g}"
    loss = tiny_buffers.tcp_loss(wanted)
    return [
        Assumption(f"windows can reach {wanted:.3g} packets{limit}", largest >= wanted),
        Assumption(f"losses are few enough for the TCP equation: {loss:.3g}", loss <= MOST_LOST),
        Assumption("UTIL is below 1", link.utilization < 1),
        reno(link),
        _smooth(link),
        Assumption("the queue is M/M/1/B (a heuristic of the paper, not a theorem)", None),
    ]


def _pl_assumptions(link: Link) -> list[Assumption]:
    gamma = link.gamma or 0.0
    return [
        Assumption(f"much slower than its inputs: C_out/C_in = {gamma:.3g}", True if gamma <= MUCH_BELOW_ONE else None),
        Assumption("heavy-tailed transfers, most of their packets in congestion avoidance", None),
        Assumption(
            "loss falls as B^-0.5, delay is 0.4 B/C: typical of the paper's simulations, not of this link", None
        ),
    ]


def _mean_segments(link: Link) -> int:
    """Packets of the mean short flow."""
    total = sum(weight for _, weight in link.flow_packets)
    return max(round(sum(packets * weight for packets, weight in link.flow_packets) / total), 1)


def _s_assumptions(link: Link) -> list[Assumption]:
    return [
        Assumption(f"transfers of {_mean_segments(link)} packets, mostly in slow start", None),
        Assumption("loss is 1/B, delay B/(2C), as in M/M/1/B under heavy load: simple, but not real traffic", None),
    ]


def _ex_assumptions(link: Link) -> list[Assumption]:
    gamma = link.gamma or 0.0
    return [
        Assumption(f"faster than its inputs: C_out/C_in = {gamma:.3g}", gamma > 1),
        Assumption("many lightly loaded inputs, independent of each other", None),
    ]


OTHER_TRAFFIC = (
    Rule(
        key="short-flows",
        name="short flows, RISK",
        formula="P(Q >= B) = RISK, bursts of slow start",
        source="Appenzeller et al., 4 and appendix C",
        applies=_has_short_flows,
        ask=lambda link: _burst_tail(link, 2),
        assumptions=_burst_assumptions,
    ),
    Rule(
        key="md1",
        name="paced short flows",
        formula="P(Q >= B) = RISK, single packets (M/D/1)",
        source="Appenzeller et al., 4",
        applies=_has_load,
        ask=_md1,
        assumptions=_md1_assumptions,
    ),
    Rule(
        key="rho-b",
        name="LOAD^B",
        formula="LOAD^B = RISK",
        source="Enachescu et al., II",
        applies=_has_load,
        ask=lambda link: tiny_buffers.buffer_for_drops(_load(link), link.risk),
        assumptions=lambda link: [_poisson(link)],
    ),
    Rule(
        key="theorem-1",
        name="tiny: Theorem 1",
        formula="log(W^2 / (2 (1 - UTIL))) / log(1 / rho), rho = n W / BDP",
        source="Enachescu et al., Theorem 1",
        applies=lambda link: link.window_bytes is not None,
        ask=_theorem_1,
        assumptions=_theorem_1_assumptions,
    ),
    Rule(
        key="tcp-equation",
        name="tiny: TCP equation",
        formula="p(UTIL, B) of M/M/1/B = 3 / (2 (UTIL BDP / n)^2)",
        source="Enachescu et al., IV-A",
        applies=lambda link: link.flows > 1,
        ask=_tcp_equation,
        assumptions=_tcp_equation_assumptions,
    ),
    Rule(
        key="l-model",
        name="large transfers",
        formula="b / (f (2 - b)) BDP with b = 0.5, f = 0.4; 2 BDP with M/M/1/B (equation 4)",
        source="Prasad et al., equation 7",
        applies=_slower_than_inputs,
        ask=lambda link: capacity_ratio.pl_l_buffer(link.bdp),
        assumptions=_pl_assumptions,
    ),
    Rule(
        key="s-model",
        name="small transfers",
        formula="sqrt(2 M/D BDP)",
        source="Prasad et al., equation 3",
        applies=lambda link: _has_short_flows(link) and (link.gamma is None or link.gamma < 1),
        ask=lambda link: capacity_ratio.mm1b_s_buffer(link.bdp, _mean_segments(link)),
        assumptions=_s_assumptions,
    ),
    Rule(
        key="ex-form",
        name="slow inputs",
        formula="zero, or less than ten packets",
        source="Prasad et al., 7.2",
        applies=lambda link: link.gamma is not None and link.gamma >= 1,
        ask=lambda link: float(capacity_ratio.EX_LARGEST_PACKETS),
        assumptions=_ex_assumptions,
    ),
)
