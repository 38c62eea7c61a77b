# SPDX-License-Identifier: MIT
"""One number of a figure: the paper's number, the theory's and the measured one, side by side."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

from analysis.published_numbers import Key
from analysis.statistics import Interval

NOT_MEASURED = "not measured"


class Fact(NamedTuple):
    """One number: the paper's words for it, the theory's prediction for our runs, and the measurement."""

    what: str
    paper: str  # the paper's words or number, "" if it has none
    predicted: float | None
    measured: Interval | None  # None: not measured
    unit: str
    reason: str = ""  # why measured and predicted differ, as far as known
    none: str = NOT_MEASURED  # stands in place of a number that was not measured
    headline: bool = False  # answers a question of the whole paper: the page begins with these facts
    second: Interval | None = None  # measured in the paper's second set of runs
    ns3: Fact | None = None  # the same number in runs of ns-3
    over_points: bool = False  # an extreme or a mean of many points of the figure
    key: Key | None = None  # only for a number that other parts of the analysis read

    @property
    def is_predicted(self) -> bool:
        """Whether the prediction lies in the measured interval."""
        if self.predicted is None or self.measured is None or self.measured.low is None:
            return False
        low, high = self.measured.ends
        return low <= self.predicted <= high

    @property
    def second_text(self) -> str:
        """The number of the second set of runs with its unit."""
        return "–" if self.second is None else f"{self.second} {self.unit}".strip()

    @property
    def ns3_text(self) -> str:
        """The number of ns-3's runs with its unit, or the words in its place; "–" without a run."""
        is_known = self.ns3 and (self.ns3.measured or self.ns3.none != NOT_MEASURED)
        return self.ns3.measurement_text if self.ns3 and is_known else "–"

    @property
    def prediction_text(self) -> str:
        """The predicted number with its unit."""
        return "–" if self.predicted is None else f"{self.predicted:.4g} {self.unit}".strip()

    @property
    def measurement_text(self) -> str:
        """The estimate with its interval, if it has one; `none` if there is no estimate."""
        return self.none if self.measured is None else f"{self.measured} {self.unit}".strip()


def with_second(facts: Iterable[Fact], second: Iterable[Fact]) -> list[Fact]:
    """Each fact, with the measurement of the same name in the second set of runs."""
    measured = {fact.what: fact.measured for fact in second}
    return [fact._replace(second=measured.get(fact.what)) for fact in facts]


def with_ns3(facts: Iterable[Fact], ns3: Iterable[Fact]) -> list[Fact]:
    """Each fact, with the number of the same name in ns-3's runs. Numbers over many points stay empty: ns-3 has few of
    the points.
    """
    simulated = {fact.what: fact for fact in ns3 if not fact.over_points}
    return [fact._replace(ns3=simulated.get(fact.what)) for fact in facts]


def table(facts: Iterable[Fact]) -> pl.DataFrame:
    """One row per fact: its name, the paper's words, and the numbers; empty where there is none. `key` is a JSON
    object, in a column that only tables with keys have.
    """
    facts = list(facts)
    numbers = dict.fromkeys(("predicted", "measured", "low", "high"), pl.Float64)
    schema = {"what": pl.String, "paper": pl.String, **numbers, "runs": pl.Int64, "unit": pl.String}
    schema |= {"second": pl.Float64, "second_runs": pl.Int64, "ns3": pl.Float64, "ns3_runs": pl.Int64}
    rows = [
        (*fact[:3], *(fact.measured or (None,) * 4), fact.unit,
         *_value_and_runs(fact.second), *_value_and_runs(fact.ns3.measured if fact.ns3 else None))
        for fact in facts
    ]  # fmt: skip
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    keys = [json.dumps(fact.key) if fact.key else None for fact in facts]
    return frame.with_columns(key=pl.Series(keys, dtype=pl.String)) if any(keys) else frame


def _value_and_runs(estimate: Interval | None) -> tuple[float | None, int | None]:
    return (estimate.value, estimate.runs) if estimate else (None, None)


def exactly(value: float) -> Interval:
    """A number of one run, or of all runs pooled: it is not a mean of repetitions, so it has no interval."""
    return Interval(value, None, None, 1)


def absent(text: str, paper: str = "") -> Fact:
    """A Fact that says why numbers are missing."""
    return Fact(text.replace("\n", " "), paper, None, None, "")
