# SPDX-License-Identifier: MIT
"""One file per figure. `prepare` selects and thins the data of an analysis; `draw` needs only this data, so another
process can draw the figure. NAMES is the order in the report.
"""

from __future__ import annotations

from typing import Any

NAMES = (
    "queue_and_windows", "queue_depth_distribution", "queueing_delay", "program_rates", "throughput",
    "completion_times", "window_distribution", "depth_against_window", "utilization", "zoom_on_loss",
)  # fmt: skip
OF_WINDOWS = ("throughput", "window_distribution", "depth_against_window")
OF_FINITE_FLOWS = ("completion_times",)
OF_PROGRAMS = ("program_rates",)
LACKING = {  # data that an imported run may lack -> figures that need them
    "trace": ("window_distribution", "depth_against_window"),
    "postcards": ("utilization", "zoom_on_loss", "queueing_delay", "throughput", "depth_against_window"),
    "depths": ("queue_depth_distribution",),
    "times": ("queue_and_windows",),
}


def names(spec: dict[str, Any]) -> tuple[str, ...]:
    """The figures of a run, without figures of data that an imported run lacks or of flows that the run lacks."""
    imported = spec.get("imported")
    lacks = imported.get("lacks") if isinstance(imported, dict) else None
    left_out = (
        {name for lack in lacks if lack in LACKING for name in LACKING[lack]} if isinstance(lacks, list) else set()
    )
    if isinstance(imported, dict) and "sojourn_ns" in (imported.get("unknown_postcard_fields") or ()):
        left_out.add("queueing_delay")
    if spec.get("traffic") == "open-loop" or (
        not spec.get("groups") and (spec.get("transfers") or spec.get("program"))
    ):
        left_out |= set(OF_WINDOWS)
    if not spec.get("transfers"):
        left_out |= set(OF_FINITE_FLOWS)
    if not spec.get("program"):
        left_out |= set(OF_PROGRAMS)
    return tuple(name for name in NAMES if name not in left_out)
