# SPDX-License-Identifier: MIT
"""All rules of the literature, in display order."""

from __future__ import annotations

from analysis.advise.link import Link
from analysis.advise.rule import Advice, Rule
from analysis.advise.rules_long_flows import LONG_FLOWS
from analysis.advise.rules_other_traffic import OTHER_TRAFFIC

RULES: tuple[Rule, ...] = (*LONG_FLOWS, *OTHER_TRAFFIC)


def advise(link: Link) -> list[Advice]:
    """The advice of every rule that applies to the link, in the order of RULES."""
    return [Advice(rule, rule.ask(link), rule.assumptions(link)) for rule in RULES if rule.applies(link)]


def not_asked(link: Link) -> list[str]:
    """The missing parameters that would add rules, each with the rules that it would add."""
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
