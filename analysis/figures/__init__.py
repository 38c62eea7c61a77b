# SPDX-License-Identifier: MIT
"""One file per figure. `prepare` selects and thins the data of an analysis; `draw` needs only this data, so another
process can draw the figure. NAMES is the order in the report.
"""

from __future__ import annotations

from model.experiment import Experiment
from model.groups import OPEN_LOOP

NAMES = (
    "link_rate", "link_flows", "queue_and_windows", "policy_value", "queue_depth_distribution", "queueing_delay",
    "program_rates", "throughput",
    "completion_times", "window_distribution", "depth_against_window", "utilization", "zoom_on_loss",
)  # fmt: skip
OF_WINDOWS = ("throughput", "window_distribution", "depth_against_window")
OF_FINITE_FLOWS = ("completion_times",)
OF_PROGRAMS = ("program_rates",)
OF_POLICIES = ("policy_value",)
OF_CAPTURED_LINKS = ("link_rate", "link_flows")
LACKING = {  # data that an imported run may lack -> figures that need them
    "trace": ("window_distribution", "depth_against_window"),
    "postcards": ("utilization", "zoom_on_loss", "queueing_delay", "throughput", "depth_against_window"),
    "depths": ("queue_depth_distribution",),
    "times": ("queue_and_windows",),
}


def names(spec: Experiment) -> tuple[str, ...]:
    """The figures of a run, without figures of data that an imported run lacks or of flows that the run lacks."""
    left_out = {name for lack in (spec.imported.lacks if spec.imported else ()) for name in LACKING.get(lack, ())}
    if "sojourn_ns" in spec.unknown_columns:
        left_out.add("queueing_delay")
    if spec.traffic == OPEN_LOOP or (not spec.long and (spec.finite or spec.program)):
        left_out |= set(OF_WINDOWS)
    if not spec.finite:
        left_out |= set(OF_FINITE_FLOWS)
    if not spec.program:
        left_out |= set(OF_PROGRAMS)
    if not spec.has_own_policy:
        left_out |= set(OF_POLICIES)
    if not (spec.imported and spec.imported.link):
        left_out |= set(OF_CAPTURED_LINKS)
    return tuple(name for name in NAMES if name not in left_out)
