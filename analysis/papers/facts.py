# SPDX-License-Identifier: MIT
"""One number of a figure: the paper's, the theory's and the measured one, side by side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

from analysis.statistics import Interval


class Fact(NamedTuple):
    """One number: what the paper says, what the theory predicts for this very run, what was measured."""

    what: str
    paper: str  # its own words or number, "" if it has none
    predicted: float | None
    measured: Interval | None  # None: not measured
    unit: str
    reason: str = ""  # why measured and predicted differ, as far as known
    none: str = "not measured"  # stands in place of a number that was not measured
    headline: bool = False  # answers a question of the whole paper: the page begins with these facts
    second: Interval | None = None  # measured in the paper's second set of runs

    @property
    def is_predicted(self) -> bool:
        """Whether the prediction lies in the measured interval."""
        if self.predicted is None or self.measured is None or self.measured.low is None:
            return False
        low, high = self.measured.ends
        return low <= self.predicted <= high

    @property
    def prediction_text(self) -> str:
        """The predicted number with its unit."""
        return "–" if self.predicted is None else f"{self.predicted:.4g} {self.unit}".strip()

    @property
    def measurement_text(self) -> str:
        """The estimate with its 95 % interval, if it has one; `none` if there is no estimate."""
        return self.none if self.measured is None else f"{self.measured} {self.unit}".strip()


def with_second(facts: Iterable[Fact], second: Iterable[Fact]) -> list[Fact]:
    """Each fact, with the measurement of the same name in the second set of runs."""
    measured = {fact.what: fact.measured for fact in second}
    return [fact._replace(second=measured.get(fact.what)) for fact in facts]


def table(facts: Iterable[Fact]) -> pl.DataFrame:
    """The numbers only, one row per fact; empty where there is none."""
    numbers = dict.fromkeys(("predicted", "measured", "low", "high"), pl.Float64)
    schema = {"what": pl.String, "paper": pl.String, **numbers, "runs": pl.Int64, "unit": pl.String}
    schema |= {"second": pl.Float64, "second_runs": pl.Int64}
    rows = [
        (*fact[:3], *(fact.measured or (None,) * 4), fact.unit,
         *((fact.second.value, fact.second.runs) if fact.second else (None, None)))
        for fact in facts
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")


def exactly(value: float) -> Interval:
    """A number of all runs pooled: it is not a mean of repetitions, so it has no interval."""
    return Interval(value, None, None, 1)


def absent(text: str, paper: str = "") -> Fact:
    """A Fact with the reason why an algorithm has no numbers."""
    return Fact(text.replace("\n", " "), paper, None, None, "")
