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
