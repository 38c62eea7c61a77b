# SPDX-License-Identifier: MIT
"""One number of a figure: the paper's number, the theory's and the measured one, side by side."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import polars as pl

from analysis.arithmetic.statistics import Interval
from analysis.papers.published_numbers import Key
from analysis.wording import algorithm_names

NOT_MEASURED = "not measured"
DIGITS = 10
NUMBERS = ("measured", "low", "high")


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
    def verdict(self) -> str:
        """How the measured number compares with the prediction; "" if one of them is missing, and for a distance from 0
        without an interval.
        """
        if self.predicted is None or self.measured is None:
            return ""
        if self.is_predicted or self.measured.value == self.predicted:
            return "as predicted"
        if self.predicted == 0 and self.measured.low is None:
            return ""
        if self.predicted == 0 or math.isinf(self.measured.ends[1]):
            return "not as predicted"
        return f"{self.measured.value / self.predicted:.2f} times the prediction"

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
    """One row per fact: its name, the paper's words, and the numbers; empty where there is none. `words` and
    `ns3_words` stand in place of a missing number (at most 0.5), `why` says why a number is not as predicted. `key` is
    a JSON object, in a column that only tables with keys have.
    """
    schema: dict[str, Any] = {"what": pl.String, "paper": pl.String, "predicted": pl.Float64}
    schema |= dict.fromkeys(NUMBERS, pl.Float64) | {"runs": pl.Int64, "unit": pl.String, "words": pl.String}
    for other in ("second", "ns3"):
        schema |= {other: pl.Float64, f"{other}_low": pl.Float64, f"{other}_high": pl.Float64}
        schema |= {f"{other}_runs": pl.Int64}
    schema |= {"ns3_words": pl.String, "why": pl.String}
    rows = [_row(fact) for fact in facts]
    frame = rounded(pl.DataFrame(rows, schema=schema | {"key": pl.String}, orient="row"))
    return frame if frame["key"].count() else frame.drop("key")


def rounded(table: pl.DataFrame) -> pl.DataFrame:
    """The table without digits that differ between processors."""
    return table.with_columns(pl.selectors.float().round_sig_figs(DIGITS))


def _row(fact: Fact) -> tuple[Any, ...]:
    of_ns3 = fact.ns3.measured if fact.ns3 else None
    words = None if fact.measured else fact.none
    ns3_words = None if of_ns3 or fact.ns3_text == "–" else fact.ns3_text
    missing = (None,) * len(Interval._fields)
    return (
        fact.what, fact.paper or None, fact.predicted, *(fact.measured or missing), fact.unit or None, words,
        *(fact.second or missing), *(of_ns3 or missing), ns3_words, fact.reason or None,
        json.dumps(fact.key) if fact.key else None,
    )  # fmt: skip


def exactly(value: float) -> Interval:
    """A number of one run, or of all runs pooled: it is not a mean of repetitions, so it has no interval."""
    return Interval(value, None, None, 1)


def each(
    points: Mapping[Any, Interval | None],
    what: str,
    paper: str | Callable[[Any], str | None] = "",
    predicted: float | Callable[[Any], float | None] | None = None,
    unit: str = "",
    headline: bool | Callable[[Any], bool | None] = False,
) -> list[Fact]:
    """A Fact for each point. `what` is a format of the point's place; `paper`, `predicted` and `headline` are one for
    all, or functions of the place.
    """

    def at(place: Any, given: Any) -> Any:
        return given(place) if callable(given) else given

    return [
        Fact(what.format(x), at(x, paper) or "", at(x, predicted), point, unit, headline=bool(at(x, headline)))
        for x, point in points.items()
    ]


def absent(text: str, paper: str = "") -> Fact:
    """A Fact that says why numbers are missing."""
    return Fact(text.replace("\n", " "), paper, None, None, "")


def by_algorithm(curves: Mapping[str, Any], rows: list[Fact], paper: str = "") -> Iterator[tuple[str, str, Any]]:
    """(algorithm, its name, its curve) of each curve with numbers. A curve without numbers ({"absent": why}) becomes a
    Fact of `rows`.
    """
    for cc, curve in curves.items():
        if "absent" in curve:
            rows.append(absent(curve["absent"], paper))
        else:
            yield cc, algorithm_names.name(cc), curve
