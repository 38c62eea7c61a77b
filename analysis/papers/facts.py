# SPDX-License-Identifier: MIT
"""One number of a figure: the paper's, the theory's and the measured one, side by side."""

from __future__ import annotations

import math
from typing import NamedTuple

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
    headline: bool = False  # answers what was asked of the whole paper: the page begins with these

    @property
    def is_predicted(self) -> bool:
        """Whether the prediction lies in the measured interval."""
        low, high = self.measured[1:3] if self.measured else (None, None)
        return self.predicted is not None and low is not None and high is not None and low <= self.predicted <= high

    @property
    def prediction_text(self) -> str:
        """The predicted number with its unit."""
        return "–" if self.predicted is None else self._with_unit(f"{self.predicted:.4g}")

    @property
    def measurement_text(self) -> str:
        """The estimate with its 95 % interval, if it has one; `none` if there is no estimate."""
        if self.measured is None:
            return self.none
        value, low, high, _ = self.measured
        if low is None or high is None:
            return self._with_unit(f"{value:.4g}")
        if math.isinf(high):
            return self._with_unit(f"more than {low:.4g}")
        return self._with_unit(f"{value:.4g} ({low:.4g} to {high:.4g})")

    def _with_unit(self, text: str) -> str:
        return f"{text} {self.unit}".strip()


def exactly(value: float) -> Interval:
    """A number of all runs pooled: it is no mean of repetitions, so it has no interval."""
    return Interval(value, None, None, 1)


def absent(text: str, paper: str = "") -> Fact:
    """In place of an algorithm's numbers: why there are none."""
    return Fact(text.replace("\n", " "), paper, None, None, "")
