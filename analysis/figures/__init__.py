# SPDX-License-Identifier: MIT
"""One file, one figure. `prepare` picks and thins the data of an analysis, `draw` makes the picture from that alone, so
pictures can be drawn by processes that know nothing else. NAMES is their order in the report.
"""

from __future__ import annotations

from typing import Any

NAMES = ("queue_and_windows", "queue_depth_distribution", "window_distribution", "utilization", "zoom_on_loss")
OF_WINDOWS = ("window_distribution",)
LACKING = {  # what an imported run may lack, and the figures that are nothing without it
    "trace": OF_WINDOWS,
    "postcards": ("utilization", "zoom_on_loss"),
    "depths": ("queue_depth_distribution",),
    "times": ("queue_and_windows",),
}


def names(spec: dict[str, Any]) -> tuple[str, ...]:
    """The figures of a run: open-loop traffic has no windows, an imported one what its sources told."""
    imported = spec.get("imported")
    lacks = imported.get("lacks") if isinstance(imported, dict) else None
    left_out = (
        {name for lack in lacks if lack in LACKING for name in LACKING[lack]} if isinstance(lacks, list) else set()
    )
    if spec.get("traffic") == "open-loop":
        left_out |= set(OF_WINDOWS)
    return tuple(name for name in NAMES if name not in left_out)
