# SPDX-License-Identifier: MIT
"""The type of a rule: the buffer that it asks for, its assumptions, and the criterion that runs are judged by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from analysis.advise.link import Link


class Assumption(NamedTuple):
    """An assumption of a rule; `holds` is None if the inputs do not decide it."""

    text: str
    holds: bool | None


class Promise(NamedTuple):
    """The criterion for runs: one of MEASURES, and its least value (0 to 1)."""

    measure: str
    least: float

    @property
    def text(self) -> str:
        """For people: "mean utilization 99 % or more"."""
        return f"{MEASURES[self.measure]} {100 * self.least:.4g} % or more"


NONEMPTY, MEAN, P01 = "nonempty", "utilization_mean", "utilization_p01"
# The two criteria of Spang et al. (5.1), and the mean utilization, for rules that bound the lost capacity.
MEASURES = {
    NONEMPTY: "share of packets that found a queue",
    MEAN: "mean utilization",
    P01: "1st percentile of utilization over ten RTTs",
}


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule of the literature, as functions of a link."""

    key: str
    name: str
    formula: str
    source: str
    ask: Callable[[Link], float]  # the buffer in packets; math.inf if no buffer is enough
    assumptions: Callable[[Link], list[Assumption]]
    applies: Callable[[Link], bool] = lambda link: True
    promise: Callable[[Link], Promise] | None = None  # None: runs of long flows cannot test the rule
    runs_of: str = "many"  # "one" or "many": the number of flows of runs that can judge the rule
    needs_delta: bool = False  # the rule assumes DELTA-almost fairness, which only runs can measure
    most_losing: Callable[[Link], float] | None = None  # the number of flows that may see a loss in any RTT
    takes_losing: bool = False  # `ask` depends on LOSING


class Advice(NamedTuple):
    """The answer of one rule for one link; `packets` is the buffer."""

    rule: Rule
    packets: float
    assumptions: list[Assumption]

    @property
    def holds(self) -> bool | None:
        """False if any assumption fails, True if all assumptions hold, else None."""
        if any(assumption.holds is False for assumption in self.assumptions):
            return False
        return True if all(assumption.holds for assumption in self.assumptions) else None
