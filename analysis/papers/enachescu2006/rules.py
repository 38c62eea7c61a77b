# SPDX-License-Identifier: MIT
"""Both rules for the buffer as a function of the largest window W: constant, and 5 log10(W), rounded up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from analysis.figures.common import BLUE, ORANGE, Data
from analysis.papers.series import series
from analysis.papers.stored_runs import StoredRun
from analysis.theory import tiny_buffers

LEAST_PACKETS = 5
CONSTANT, LOGARITHMIC = "B = 5", "B = 5 log₁₀ W"
SHADES = {CONSTANT: (ORANGE, "o"), LOGARITHMIC: (BLUE, "s")}
BUFFERS: dict[str, Callable[[int], int]] = {
    CONSTANT: lambda window: LEAST_PACKETS,
    LOGARITHMIC: lambda window: math.ceil(tiny_buffers.log_window_buffer(window) - 1e-9),
}


def by_rule(runs: Iterable[StoredRun], predicted: Callable[[StoredRun], float]) -> dict[str, Data]:
    """Estimates of u by W, and the prediction for the same buffers, for each rule."""
    listed = list(runs)
    result: dict[str, Data] = {}
    for name, buffer in BUFFERS.items():
        of_rule = [run for run in listed if run["buffer_packets"] == buffer(run["window_packets"])]
        result[name] = {
            "points": series(of_rule, "window_packets", "utilization_mean"),
            "equal": {run["window_packets"]: predicted(run) for run in of_rule},
        }
    return result
