# SPDX-License-Identifier: MIT
"""What a run in virtual time must reach. The clock there waits for the lab, so what differs from what was asked for is
a fault and no bad luck: limits are absolute, and hold for every frame.

A switch that is a driver of that kernel is exact. One that is a process pays 1 ns whenever it reads the clock: its
frames are handed over up to some us late, though departures are computed as exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from analysis.load import Run


@dataclass(frozen=True)
class ExactLimits:
    """The most that is allowed of each. None: bounded by another."""

    lateness_ns: int
    gap_error_ns: int | None
    idle_rtt_ns: int  # by which it may be longer than expected; never shorter
    idle_rtt_why: str


# The idle RTT is measured by a process: it reads the clock before it sends and when it has the reply (and so does the
# kernel, on its behalf, when it wakes). Otherwise a frame of each direction may be late.
LIMITS = {
    "driver": ExactLimits(0, 1, 10, "for reading the clock"),
    "process": ExactLimits(10_000, None, 20_000, "for the switch's lateness, both ways"),
}
MAX_RATE_ERROR = 1e-6
REPORT = "a fault of the lab: please report it with this run"


def in_virtual_time(run: Run) -> bool:
    return run.spec.get("clock") == "virtual"


def switch_kind(run: Run) -> str:
    """`driver` or `process`. In runs from before there was a choice it was a process."""
    return str(run.spec.get("switch", "process"))


def limits(run: Run) -> ExactLimits:
    """What is not known is held to what is exact."""
    return LIMITS.get(switch_kind(run), LIMITS["driver"])


def rate_error_allowed(run: Run, span_ns: float) -> float:
    """1e-6; of a switch that is a process at least what lateness at one end of the span may make of it."""
    return max(MAX_RATE_ERROR, limits(run).lateness_ns / span_ns)


def inexact(run: Run, facts: dict[str, Any]) -> list[str]:
    """One line for each limit that was passed. What is not recorded is for others to say."""
    allowed, reasons = limits(run), []
    late = facts["lateness_max_ns"]
    if late is not None and late > allowed.lateness_ns:
        reasons.append(
            f"fidelity: a frame left the switch {late:.0f} ns late; allowed in virtual time are {allowed.lateness_ns} "
            f"ns with SWITCH={switch_kind(run)}: {REPORT}"
        )
    late = facts["postcard_lateness_max_ns"]
    if switch_kind(run) == "driver" and late:
        reasons.append(f"fidelity: a postcard left the switch {late:.0f} ns late; allowed are 0 ns: {REPORT}")
    gap = facts["gap_error_max_ns"]
    if allowed.gap_error_ns is not None and gap is not None and gap > allowed.gap_error_ns:
        reasons.append(
            f"fidelity: the gap between two frames was {gap:.0f} ns off the link's; allowed in virtual time is "
            f"{allowed.gap_error_ns} ns: {REPORT}"
        )
    error = facts["rate_error_fraction"]
    if error is not None and abs(error) > rate_error_allowed(run, facts["back_to_back_ns"]):
        reasons.append(
            f"fidelity: the link's rate was off by {-error:+.2e}; allowed in virtual time is "
            f"{rate_error_allowed(run, facts['back_to_back_ns']):.2g}: {REPORT}"
        )
    clamped = facts["arrivals_clamped_fraction"]
    if clamped:
        reasons.append(
            f"fidelity: {clamped:.2g} of arrivals were moved to a later time; in virtual time none may be: {REPORT}"
        )
    return reasons


def idle_rtt_reason(run: Run, least: float, expected: int) -> str | None:
    """Against the round trip that an echo takes when nothing else is under way."""
    allowed, more = limits(run), least - expected
    if 0 <= more <= allowed.idle_rtt_ns:
        return None
    return (
        f"delay: an echo on the idle path took {least:.0f} ns, expected are {expected} ns (RTT and its time on the "
        f"bottleneck), in virtual time to the ns, and up to {allowed.idle_rtt_ns} ns more {allowed.idle_rtt_why}: "
        "check where the delay is set"
    )
