# SPDX-License-Identifier: MIT
"""The sum of many windows, over time: its moments, and its distance from a normal distribution."""

from __future__ import annotations

import numpy as np
from scipy import special

STEM = "aggregate"
Held = tuple[np.ndarray, np.ndarray]  # (values in ascending order, ns at each value)


def moments(held: Held) -> tuple[float, float]:
    """(mean, standard deviation) over time."""
    values, ns = held
    mean = float(np.average(values, weights=ns))
    return mean, float(np.sqrt(np.average((values - mean) ** 2, weights=ns)))


def distance_from_normal(held: Held) -> float:
    """Kolmogorov's distance: the largest difference between the distribution function and the normal one with the same
    mean and deviation, taken halfway through each value's step (values are whole packets).
    """
    values, ns = held
    mean, deviation = moments(held)
    upto = np.cumsum(ns) / ns.sum()
    middle = upto - ns / ns.sum() / 2
    return float(np.abs(middle - special.ndtr((values - mean) / deviation)).max())
