# SPDX-License-Identifier: MIT
"""Sums that come out the same on every machine, so that a replay gives the same bytes as the run itself.

NumPy adds in one order whatever the processor is; the dot product of its BLAS depends on the kind of processor and on
the number of threads, in the last digits.
"""

from __future__ import annotations

import numpy as np


def dot(first: np.ndarray, second: np.ndarray) -> float:
    """The sum of products."""
    return float(np.sum(first * second, dtype=np.float64))


def percentile(values: np.ndarray, counts: np.ndarray, percent: int) -> int:
    """Of whole `values` in ascending order, each of which occurred so often: the smallest with at least that share at
    or below it, as metrics.percentiles has it. Some must have occurred.
    """
    return int(values[np.searchsorted(counts.cumsum() * 100, percent * counts.sum())])
