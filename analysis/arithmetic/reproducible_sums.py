# SPDX-License-Identifier: MIT
"""Sums that are bit-identical on every machine, so that a replay reproduces the bytes of the run.

np.sum adds in the same order on every processor. np.dot calls BLAS: the last digits of its results depend on the
processor and on the number of threads.
"""

from __future__ import annotations

import numpy as np


def dot(first: np.ndarray, second: np.ndarray) -> float:
    """Sum of products, in float64."""
    return float(np.sum(first * second, dtype=np.float64))


def percentile(values: np.ndarray, counts: np.ndarray, percent: int) -> int:
    """The smallest value with at least `percent` of all occurrences at or below it, as in metrics.percentiles.
    `values` are ascending integers; values[i] occurred counts[i] times. `counts` must not sum to 0.
    """
    return int(values[np.searchsorted(counts.cumsum() * 100, percent * counts.sum())])
