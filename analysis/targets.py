# SPDX-License-Identifier: MIT
"""What a run on each target must reach, in one table. It follows from what the target can do exactly
(controlplane/targets.py): a switch whose time is computed is held to it, one with a wall clock is measured instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from analysis.load import Run
from controlplane.switch import Capabilities
from controlplane.targets import TARGETS

SOFT = "soft"


@dataclass(frozen=True)
class Rules:
    """Limits, and what can be checked. Depths in packets; shares of 1."""

    exact_time: bool  # departures are computed, and every frame's lateness against them is counted
    depth_error_packets: int  # by which a depth may differ from the recount of arrivals and departures
    depth_error_fraction: float  # of packets that may differ by more
    max_rate_error: float  # of back-to-back departures
    max_utilization: float  # of a window: what was late in the one before it comes on top
    echo_takes_link_time: bool = True  # on the idle bottleneck
    drops_tell: bool = True  # the program decides on every drop, so a postcard shows the depth that decided


# Of a switch whose departures are computed, and of one that says when they happened.
COMPUTED = Rules(True, 0, 0.0, 1e-3, 1.001)
MEASURED = Rules(False, 4, 0.01, 1e-2, 1.02)


def rules(run: Run) -> Rules:
    """The rules of the run's target. One that this version does not know is held to what is exact."""
    can = capabilities(run)
    if can is None:
        return COMPUTED
    return replace(
        COMPUTED if can.exact_time else MEASURED,
        # A rate in packets is kept by the gap before the next one: the first of a busy period passes at once.
        echo_takes_link_time=can.rate_unit != "pps",
        drops_tell=can.tail_drop_seen_by_program,
    )


def target(run: Run) -> str:
    """Runs from before there was a choice were of the soft switch."""
    return str(run.spec.get("target", SOFT))


def capabilities(run: Run) -> Capabilities | None:
    found = TARGETS.get(target(run))
    return found.capabilities if found else None
