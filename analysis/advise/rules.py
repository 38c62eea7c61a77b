# SPDX-License-Identifier: MIT
"""Every rule of the literature, in the order in which it is shown."""

from __future__ import annotations

from analysis.advise.link import Link
from analysis.advise.rule import Advice, Rule
from analysis.advise.rules_long_flows import LONG_FLOWS
from analysis.advise.rules_other_traffic import OTHER_TRAFFIC

RULES: tuple[Rule, ...] = (*LONG_FLOWS, *OTHER_TRAFFIC)


def advise(link: Link) -> list[Advice]:
    """Every rule that applies to this link, in the order of RULES."""
    return [Advice(rule, rule.ask(link), rule.assumptions(link)) for rule in RULES if rule.applies(link)]


def not_asked(link: Link) -> list[str]:
    """Which parameters would bring more rules, and which."""
    missing = []
    if link.load is None:
        missing.append("LOAD or FLOW_SIZES (short flows, smooth traffic)")
    if link.window_bytes is None:
        missing.append("WINDOW (tiny buffers)")
    if link.gamma is None:
        missing.append("INPUT (capacity ratio)")
    if link.losing is None and link.flows > 1:
        missing.append("LOSING (equation 3)")
    return missing
