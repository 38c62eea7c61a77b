# SPDX-License-Identifier: MIT
"""Checks of a closed form's arguments. The error names the value and the allowed values; every check refuses NaN."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

Numbers = Sequence[float] | np.ndarray


def check_load(load: float, below: float = 1.0) -> None:
    """ValueError unless 0 < load < `below`. A queue without a limit has a steady state, and so a mean, only below 1.
    For a queue with a limit, `below` is math.inf.
    """
    if not 0 < load < below:
        bound = "finite" if below == math.inf else f"below {below:g}, where the queue has a steady state"
        raise ValueError(f"a load of {load}; allowed: above 0, {bound}")


def check_share(what: str, value: float, ends: bool = False) -> None:
    """ValueError unless 0 < `value` < 1; `ends` also allows 0 and 1."""
    if not (0 <= value <= 1 if ends else 0 < value < 1):
        raise ValueError(f"{what} of {value}; allowed: {'0 to 1' if ends else 'between 0 and 1'}")


def check_at_least(what: str, value: float, least: float) -> None:
    """ValueError unless `value` is `least` or more."""
    if not value >= least:
        raise ValueError(f"{what} of {value}; allowed: {least:g} or more")


def check_whole(what: str, value: float, least: int) -> None:
    """ValueError unless `value` is a whole number, `least` or more."""
    if not least <= value < math.inf or value != int(value):
        raise ValueError(f"{what} of {value}; allowed: whole numbers, {least} or more")


def check_positive(what: str, value: float) -> None:
    """ValueError unless `value` is more than 0."""
    if not value > 0:
        raise ValueError(f"{what} of {value}; allowed: more than 0")
