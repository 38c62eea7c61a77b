# SPDX-License-Identifier: MIT
"""Rules for long flows: those of Spang et al. and of Appenzeller et al., sections 2 and 3. The package analysis/theory
computes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from analysis.advise.link import Link
from analysis.advise.rule import MEAN, NONEMPTY, P01, Assumption, Promise, Rule
from analysis.measure.metrics import UTILIZATION_WINDOW_RTTS
from analysis.theory import gaussian, many_flows, single_flow
from analysis.wording.formats import si

BURST_PACKETS = 20  # Spang et al., 3.6: a smaller buffer loses bursts under any rule
SYNCHRONIZED_BELOW, DESYNCHRONIZED_ABOVE = 100, 500  # flows; Appenzeller et al., 3.2
LEAST_MEAN_WINDOW = 2  # packets; Appenzeller et al., 5.1.1: smaller windows cause timeouts
FULL = 0.99  # share of packets that find a queue: Spang et al.'s full utilization (5.1)
UNIFORM_FULL = 0.98  # share of the time, in Theorem 4


def reno(link: Link) -> Assumption:
    """The assumption that all flows use Reno."""
    return Assumption("Reno: windows halve, one packet more each RTT", link.cc == "reno")


def _room(link: Link, buffer: float) -> list[Assumption]:
    """Assumptions of every rule for long flows: room for the bursts of unpaced senders, and for windows to grow."""
    assumptions = []
    if link.cc != "bbr":  # BBR paces: its utilization does not collapse with fewer packets (Spang et al., 3.6)
        text = f"buffer of {BURST_PACKETS} packets or more, for bursts"
        assumptions.append(Assumption(text, buffer >= BURST_PACKETS))
    if link.window_bytes is not None:
        text = f"windows can reach BDP/n = {link.fair_window:.3g} packets: WINDOW is {link.largest_window:.3g}"
        assumptions.append(Assumption(text, link.largest_window >= link.fair_window))
    return assumptions


def _full(link: Link) -> Promise:
    return Promise(NONEMPTY, FULL)


def _wanted(link: Link) -> Promise:
    """UTIL as the 1st percentile over ten RTTs. Utilization over ten RTTs has a resolution of one packet. A UTIL of
    100 % is therefore judged as one packet less than full use.
    """
    return Promise(P01, min(link.utilization, 1 - 1 / (UTILIZATION_WINDOW_RTTS * max(link.bdp, 1))))


def _many(link: Link) -> bool:
    return link.flows > 1


def _one_or_together(link: Link) -> Assumption:
    if link.flows == 1:
        return Assumption("a single flow", True)
    text = f"all {link.flows} flows lose packets together (common below 100 flows, very rare above 500)"
    return Assumption(text, False if link.flows > DESYNCHRONIZED_ABOVE else None)


def _apart(link: Link) -> Assumption:
    text = f"{link.flows} windows are independent (usual above 500 flows, not below 100)"
    if link.flows > DESYNCHRONIZED_ABOVE:
        return Assumption(text, True)
    return Assumption(text, False if link.flows < SYNCHRONIZED_BELOW else None)


def _uniform() -> Assumption:
    return Assumption(
        "windows uniform from 2/3 to 4/3 of their mean (measured ones are not: Spang et al., 5.3, our runs)", None
    )


def _mean_window(link: Link, buffer: float) -> Assumption:
    window = (link.bdp + buffer) / link.flows
    return Assumption(f"mean window above {LEAST_MEAN_WINDOW} packets: {window:.3g}", window > LEAST_MEAN_WINDOW)


def _fair(link: Link, ask: Callable[[Link], float]) -> Assumption:
    measured = replace(link, delta=max(many_flows.MEASURED_DELTA[link.cc], link.delta))
    text = f"windows stay within a factor of {link.delta:g} of BDP/n"
    if measured != link:
        needed = si(link.bytes(ask(measured)), "B")
        text += f"; Spang et al. measured a factor of about {measured.delta:g}, for which the rule asks for {needed}"
    return Assumption(text, None)


def _almost_fair(link: Link, ask: Callable[[Link], float], few_lose: Assumption | None = None) -> list[Assumption]:
    return [
        Assumption("windows fall by a fixed share at a loss", link.cc in single_flow.DECREASE),
        _fair(link, ask),
        _least_window(link),
        few_lose or _few_lose(link),
        Assumption("one RTT for all flows", None),
        *_room(link, ask(link)),
    ]


def _least_window(link: Link) -> Assumption:
    """Whether the least window is large enough. It lies between Delta-almost fairness's lower bound and BDP/n."""
    allowed = many_flows.almost_fair_least_window(link.bdp, link.flows, link.delta)
    needed = many_flows.least_window(single_flow.DECREASE.get(link.cc, 0.5))
    holds = True if allowed >= needed else None if link.fair_window >= needed else False
    return Assumption(f"least window {needed:.2g} packets or more: {allowed:.3g} to {link.fair_window:.3g}", holds)


def _most_losing(link: Link) -> float:
    return many_flows.flows_seeing_loss(link.bdp, link.flows, link.delta)


def _few_lose(link: Link) -> Assumption:
    """At most n^2 / (Delta BDP) + sqrt(n) flows see a loss. LOSING is the part of their number above the first term."""
    most = _most_losing(link)
    holds = None if link.losing is None else link.losing <= math.sqrt(link.flows)
    return Assumption(f"at most {most:.4g} of {link.flows} flows see a loss in one RTT", holds)


def _one_flow(link: Link) -> float:
    buffer = single_flow.single_flow_buffer(link.cc, link.bdp, link.utilization)
    if buffer is None:
        raise ValueError(f"no rule for {link.cc}; allowed: {', '.join(single_flow.ALGORITHMS)}")
    return buffer


def _one_flow_assumptions(link: Link) -> list[Assumption]:
    assumptions = [_one_or_together(link)]
    if link.cc == "bbr":
        assumptions.append(
            Assumption("BBR v1 that probes for bandwidth, and loses packets while it sends at 5/4", None)
        )
    return [*assumptions, *_room(link, _one_flow(link))]


def _sqrt_n(link: Link) -> float:
    return many_flows.sqrt_rule(link.bdp, link.flows)


def _sqrt_n_assumptions(link: Link) -> list[Assumption]:
    buffer = _sqrt_n(link)
    return [_apart(link), reno(link), _mean_window(link, buffer), _uniform(), *_room(link, buffer)]


def _gaussian(link: Link) -> float:
    return gaussian.required_buffer(link.utilization, link.bdp, link.flows)


def _gaussian_assumptions(link: Link) -> list[Assumption]:
    buffer = _gaussian(link)
    return [
        _apart(link),
        reno(link),
        _mean_window(link, buffer if buffer < math.inf else 0),
        _uniform(),
        *_room(link, buffer),
        Assumption("the bound reaches UTIL with a finite buffer", buffer < math.inf),
    ]


def _theorem_6(link: Link) -> float:
    return many_flows.almost_fair_buffer(link.bdp, link.flows, link.delta)


def _theorem_7(link: Link) -> float:
    theory = many_flows.buffer_for_utilization(link.bdp, link.flows, link.delta, link.utilization)
    return max(theory, float(BURST_PACKETS))


def _theorem_7_assumptions(link: Link) -> list[Assumption]:
    bound = many_flows.almost_fair_utilization(link.flows, link.delta)
    text = f"without a buffer at least {bound:.4g} of the link is used"
    if _theorem_7(link) == BURST_PACKETS:
        text += f", UTIL is {link.utilization:g}: bursts need more room than the theorem, about twenty packets (3.6)"
    return [Assumption(text, True), *_almost_fair(link, _theorem_7)]


def _equation_3(link: Link) -> float:
    return many_flows.desynchronized_buffer(link.bdp, link.flows, link.delta, link.losing or 0.0)


def _most_losing_of_equation_3(link: Link) -> float:
    return _most_losing(link) - math.sqrt(link.flows) + (link.losing or 0.0)


def _equation_3_assumptions(link: Link) -> list[Assumption]:
    most = _most_losing_of_equation_3(link)
    few_lose = Assumption(f"at most {most:.4g} of {link.flows} flows see a loss in one RTT, as LOSING says", True)
    return _almost_fair(link, _equation_3, few_lose)


def _theorem_8(link: Link) -> float:
    return many_flows.bbr_buffer(link.bdp, link.flows, link.delta, link.risk)


def _theorem_8_assumptions(link: Link) -> list[Assumption]:
    return [
        Assumption("all flows are BBR v1 that probes for bandwidth", None if link.cc == "bbr" else False),
        _fair(link, _theorem_8),
        Assumption("cycles begin at random, and one RTT for all flows", None),
        *_room(link, _theorem_8(link)),
    ]


LONG_FLOWS = (
    Rule(
        key="bdp",
        name="BDP",
        formula="C x RTT",
        source="Spang et al., 3.1; Appenzeller et al., 2 and 3.1",
        ask=lambda link: single_flow.bdp_rule(link.bdp),
        assumptions=lambda link: [_one_or_together(link), reno(link), *_room(link, link.bdp)],
        promise=_full,
        runs_of="one",
    ),
    Rule(
        key="one-flow",
        name="one flow, UTIL",
        formula="(UTIL/beta - 1) BDP; BBR: (UTIL - 3/4) BDP",
        source="Spang et al., 3.5",
        ask=_one_flow,
        assumptions=_one_flow_assumptions,
        promise=_wanted,
        runs_of="one",
    ),
    Rule(
        key="sqrt-n",
        name="BDP/sqrt(n)",
        formula="BDP / sqrt(n)",
        source="Appenzeller et al., 3.2; Spang et al., Theorem 4",
        applies=_many,
        ask=_sqrt_n,
        assumptions=_sqrt_n_assumptions,
        promise=lambda link: Promise(NONEMPTY, UNIFORM_FULL),
    ),
    Rule(
        key="gaussian",
        name="Gaussian, UTIL",
        formula="UTIL = erf(3 sqrt(3) / (2 sqrt(2)) B sqrt(n) / (BDP + B))",
        source="Appenzeller et al., equation 6",
        applies=_many,
        ask=_gaussian,
        assumptions=_gaussian_assumptions,
        promise=lambda link: Promise(MEAN, link.utilization),
    ),
    Rule(
        key="theorem-6",
        name="Theorem 6",
        formula="DELTA BDP / sqrt(n)",
        source="Spang et al., Theorems 5 and 6",
        applies=_many,
        ask=_theorem_6,
        assumptions=lambda link: _almost_fair(link, _theorem_6),
        promise=_full,
        needs_delta=True,
        most_losing=_most_losing,
    ),
    Rule(
        key="theorem-7",
        name="Theorem 7, UTIL",
        formula="(DELTA / sqrt(n) - (1 - UTIL)) BDP, at least 20 packets",
        source="Spang et al., Theorems 5 and 7, Lemma 2",
        applies=_many,
        ask=_theorem_7,
        assumptions=_theorem_7_assumptions,
        promise=_wanted,
        needs_delta=True,
        most_losing=_most_losing,
    ),
    Rule(
        key="equation-3",
        name="equation 3, LOSING",
        formula="LOSING DELTA BDP / n",
        source="Spang et al., equation 3",
        applies=lambda link: link.flows > 1 and link.losing is not None,
        ask=_equation_3,
        assumptions=_equation_3_assumptions,
        promise=_full,
        needs_delta=True,
        most_losing=_most_losing_of_equation_3,
        takes_losing=True,
    ),
    Rule(
        key="theorem-8",
        name="Theorem 8, RISK",
        formula="DELTA BDP sqrt(ln(1 / RISK) / (2 n))",
        source="Spang et al., Theorem 8",
        applies=lambda link: link.flows > 1 and link.cc == "bbr",
        ask=_theorem_8,
        assumptions=_theorem_8_assumptions,
        promise=lambda link: Promise(NONEMPTY, 1 - link.risk),
        needs_delta=True,
    ),
)
