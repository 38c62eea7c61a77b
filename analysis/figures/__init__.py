# SPDX-License-Identifier: MIT
"""One file per figure. `prepare` selects and thins the data of an analysis; `draw` needs only this data, so another
process can draw the figure. NAMES is the order in the report.
"""

from __future__ import annotations

from typing import Any

NAMES = (
    "queue_and_windows", "queue_depth_distribution", "completion_times", "window_distribution", "utilization",
    "zoom_on_loss",
)  # fmt: skip
OF_WINDOWS = ("window_distribution",)
OF_FINITE_FLOWS = ("completion_times",)
LACKING = {  # data that an imported run may lack -> figures that need them
    "trace": OF_WINDOWS,
    "postcards": ("utilization", "zoom_on_loss"),
    "depths": ("queue_depth_distribution",),
    "times": ("queue_and_windows",),
}


def names(spec: dict[str, Any]) -> tuple[str, ...]:
    """The figures of a run, without those whose data the run lacks: it is imported, or has no such flows."""
    imported = spec.get("imported")
    lacks = imported.get("lacks") if isinstance(imported, dict) else None
    left_out = (
        {name for lack in lacks if lack in LACKING for name in LACKING[lack]} if isinstance(lacks, list) else set()
    )
    if spec.get("traffic") == "open-loop" or (spec.get("transfers") and not spec["groups"]):
        left_out |= set(OF_WINDOWS)
    if not spec.get("transfers"):
        left_out |= set(OF_FINITE_FLOWS)
    return tuple(name for name in NAMES if name not in left_out)
