# SPDX-License-Identifier: MIT
"""What a rule is: what it asks for, what it assumes, and what a run is judged by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from analysis.advise.link import Link


class Condition(NamedTuple):
    """An assumption; `holds` is None if these inputs do not say."""

    text: str
    holds: bool | None


@dataclass(frozen=True, kw_only=True)
class Rule:
    """`ask` gives packets (math.inf: no buffer is enough) for a link to which it `applies`; `conditions` what it
    assumes.

    `aim` is what the buffer is for, and what a run is judged by: "full" use, the "target" (Link.utilization), or None
    if runs of long flows do not measure it. `runs_of` says of how many flows such runs are: "one" or "many".
    """

    key: str
    name: str
    formula: str
    source: str
    ask: Callable[[Link], float]
    conditions: Callable[[Link], list[Condition]]
    applies: Callable[[Link], bool] = lambda link: True
    aim: str | None = None
    runs_of: str = "many"


class Advice(NamedTuple):
    """What one rule says of one link."""

    rule: Rule
    packets: float
    conditions: list[Condition]

    @property
    def holds(self) -> bool | None:
        """False if any assumption fails, True if all hold, else None."""
        if any(condition.holds is False for condition in self.conditions):
            return False
        return True if all(condition.holds for condition in self.conditions) else None
