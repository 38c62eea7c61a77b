# SPDX-License-Identifier: MIT
"""The limits of a run on each target. They follow from the target's capabilities (controlplane/targets.py): a switch
that computes departures must be exact except for rounding; a switch that reads a clock has tolerances.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from analysis.read.load import Run


@dataclass(frozen=True)
class Rules:
    """Limits of a target, and the checks that apply to it. Depths in packets, fractions of 1."""

    exact_time: bool  # the target computes departures and counts every frame's lateness against them
    depth_error_packets: int  # largest difference of a depth from the recount by arrivals and departures
    depth_error_fraction: float  # largest fraction of packets whose depths differ by more than depth_error_packets
    max_rate_error: float  # largest error of the rate of back-to-back departures
    # Largest utilization of one window. It exceeds 1, because a frame that leaves late counts in the next window. Where
    # departures are measured, the largest lateness of a frame adds to it.
    max_utilization: float
    echo_takes_link_time: bool = True  # an echo on the idle bottleneck takes its transmission time
    tick_ns: int = 0  # a departure closer to an arrival than this may or may not count in the arrival's depth
    drops_tell: bool = True  # True: the P4 program decides every drop, so a postcard has the deciding depth


COMPUTED = Rules(True, 0, 0.0, 1e-3, 1.001)  # of a target that computes departures
MEASURED = Rules(False, 4, 0.01, 1e-2, 1.02)  # of a target that reports when departures happened
WAITED_FOR = replace(MEASURED, depth_error_packets=0, depth_error_fraction=0.0)  # MEASURED, but in virtual time


def rules(run: Run) -> Rules:
    """The limits of the run's target; those of a measuring target for a switch of an unknown kind."""
    can = run.experiment.capabilities
    if can is None:
        return MEASURED
    waited_for = replace(WAITED_FOR, tick_ns=can.time_step_ns)
    return replace(
        COMPUTED if can.exact_time else waited_for if run.experiment.in_virtual_time else MEASURED,
        # A rate in packets per second delays the next packet: the first packet of a busy period passes at once.
        echo_takes_link_time=can.rate_unit != "pps",
        drops_tell=can.tail_drop_seen_by_program,
    )
