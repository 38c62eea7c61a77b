# SPDX-License-Identifier: MIT
"""Queue length and windows as exact step functions of time, over a short span."""

from __future__ import annotations

import numpy as np


def queue_steps(
    came_ns: np.ndarray, left_ns: np.ndarray, depth: np.ndarray, refused: np.ndarray, start_ns: int, end_ns: int
) -> np.ndarray:
    """The queue's length after each admission and each departure in [start, end]: 2 x steps, ns and packets, int64.

    Inputs are sorted by arrival and begin early enough that no earlier packet is still queued at `start_ns`. `depth` is
    the depth at arrival; `refused` masks packets that did not enter the queue.
    """
    came, left = came_ns[~refused], left_ns[~refused]
    arrival = np.column_stack((came, depth[~refused].astype(np.int64) + 1))
    departed = np.sort(left, kind="stable")
    admitted = np.searchsorted(came, departed, side="right")
    departure = np.column_stack((departed, admitted - np.arange(1, len(departed) + 1)))  # first in, first out
    steps = np.concatenate((arrival, np.maximum(departure, 0)))
    steps = steps[np.argsort(steps[:, 0], kind="stable")]
    return steps[(steps[:, 0] >= start_ns) & (steps[:, 0] <= end_ns)].T


def value_steps(times_ns: np.ndarray, values: np.ndarray, start_ns: int, end_ns: int) -> np.ndarray:
    """The steps of a value in [start, end): 2 x steps, ns and value. If there is an earlier value, the first step is at
    `start_ns` and has the last earlier value.
    """
    first, last = np.searchsorted(times_ns, (start_ns, end_ns))
    first = max(int(first) - 1, 0)
    return np.array([np.maximum(times_ns[first:last], start_ns), values[first:last]])
