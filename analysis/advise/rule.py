# SPDX-License-Identifier: MIT
"""What a rule is: what it asks for, what it assumes, and what a run is judged by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from analysis.advise.link import Link


class Assumption(NamedTuple):
    """An assumption; `holds` is None if these inputs do not say."""

    text: str
    holds: bool | None


class Promise(NamedTuple):
    """What a run is judged by: one of MEASURES, and how much of it is enough (0 to 1)."""

    measure: str
    least: float

    @property
    def text(self) -> str:
        """As people say it: mean utilization 99 % or more."""
        return f"{MEASURES[self.measure]} {100 * self.least:.4g} % or more"


NONEMPTY, MEAN, P01 = "nonempty", "utilization_mean", "utilization_p01"
# The first paper's two criteria (5.1), and the mean, which is what a bound on all that is lost bounds.
MEASURES = {
    NONEMPTY: "packets that found a queue",
    MEAN: "mean utilization",
    P01: "1st percentile of utilization over ten RTTs",
}


@dataclass(frozen=True, kw_only=True)
class Rule:
    """`ask` gives packets (math.inf: no buffer is enough) for a link to which it `applies`; `assumptions` what it
    assumes.

    `promise` is what the buffer is for, and what a run is judged by; None if runs of long flows do not measure it.
    `runs_of` says of how many flows such runs are, "one" or "many". Of what only runs can tell, `needs_delta` says that
    it assumes DELTA-almost fairness, and `most_losing` how many flows may lose in any RTT. `takes_losing`: what it asks
    for depends on LOSING.
    """

    key: str
    name: str
    formula: str
    source: str
    ask: Callable[[Link], float]
    assumptions: Callable[[Link], list[Assumption]]
    applies: Callable[[Link], bool] = lambda link: True
    promise: Callable[[Link], Promise] | None = None
    runs_of: str = "many"
    needs_delta: bool = False
    most_losing: Callable[[Link], float] | None = None
    takes_losing: bool = False


class Advice(NamedTuple):
    """What one rule says of one link."""

    rule: Rule
    packets: float
    assumptions: list[Assumption]

    @property
    def holds(self) -> bool | None:
        """False if any assumption fails, True if all hold, else None."""
        if any(assumption.holds is False for assumption in self.assumptions):
            return False
        return True if all(assumption.holds for assumption in self.assumptions) else None
