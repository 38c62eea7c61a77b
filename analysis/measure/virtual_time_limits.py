# SPDX-License-Identifier: MIT
"""Limits of a run in virtual time. The virtual clock waits for the lab, so any deviation is a fault: limits are
absolute and hold for every frame.

A switch that is a driver of the virtual-time kernel is exact. A switch process computes departures just as exactly, but
pays 1 ns for each reading of the clock, so it hands frames over up to some us late.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from analysis.read.load import Run
from runs.verdict import Area


@dataclass(frozen=True)
class ExactLimits:
    """The largest values allowed. None: another limit implies this one."""

    lateness_ns: int
    gap_error_ns: int | None
    idle_rtt_ns: int  # excess over the expected RTT; the RTT may never be shorter
    idle_rtt_why: str


# Why the idle RTT may be longer: with `driver`, the measuring process reads the clock before it sends and after the
# reply, and the kernel reads it when it wakes the process. With `process`, the switch may also delay the frame in each
# direction.
LIMITS = {
    "driver": ExactLimits(0, 1, 10, "for reading the clock"),
    "process": ExactLimits(10_000, None, 20_000, "for the switch's lateness, both ways"),
    "ns3": ExactLimits(0, None, 0, "because no program reads a clock"),
}
MAX_RATE_ERROR = 1e-6
REPORT = "a fault of the lab: please report it with this run"


def limits(run: Run) -> ExactLimits:
    """The limits of the run's kind of switch."""
    return LIMITS[run.experiment.switch_kind]


def rate_error_allowed(run: Run, span_ns: float) -> float:
    """MAX_RATE_ERROR, or the error that the allowed lateness causes at one end of the span, if that is larger."""
    return max(MAX_RATE_ERROR, limits(run).lateness_ns / span_ns)


def inexact(run: Run, facts: dict[str, Any]) -> list[str]:
    """One line for each limit that was exceeded. Facts that are not recorded are reported in fidelity.py."""
    allowed, reasons = limits(run), []
    late = facts["lateness_max_ns"]
    if late is not None and late > allowed.lateness_ns:
        reasons.append(
            f"{Area.FIDELITY}: a frame left the switch {late:.0f} ns late; allowed in virtual time are "
            f"{allowed.lateness_ns} ns with SWITCH={run.experiment.switch_kind}: {REPORT}"
        )
    late = facts["postcard_lateness_max_ns"]
    if run.experiment.switch_kind == "driver" and late:
        reasons.append(f"{Area.FIDELITY}: a postcard left the switch {late:.0f} ns late; allowed are 0 ns: {REPORT}")
    gap = facts["gap_error_max_ns"]
    if allowed.gap_error_ns is not None and gap is not None and gap > allowed.gap_error_ns:
        reasons.append(
            f"{Area.FIDELITY}: the gap between two frames was {gap:.0f} ns off the link's; allowed in virtual time is "
            f"{allowed.gap_error_ns} ns: {REPORT}"
        )
    error = facts["rate_error_fraction"]
    if error is not None and abs(error) > rate_error_allowed(run, facts["back_to_back_ns"]):
        reasons.append(
            f"{Area.FIDELITY}: the link's rate was off by {-error:+.2e}; allowed in virtual time is "
            f"{rate_error_allowed(run, facts['back_to_back_ns']):.2g}: {REPORT}"
        )
    clamped = facts["arrivals_clamped_fraction"]
    if clamped:
        reasons.append(
            f"{Area.FIDELITY}: {clamped:.2g} of arrivals were moved to a later time; in virtual time none may be: "
            f"{REPORT}"
        )
    return reasons


def idle_rtt_reason(run: Run, least: float, expected: int) -> str | None:
    """One line if the idle RTT (ns) is shorter than expected, or longer than allowed."""
    allowed, more, jitter_ns = limits(run), least - expected, run.experiment.jitter_ns
    if 0 <= more <= allowed.idle_rtt_ns + jitter_ns:
        return None
    return (
        f"delay: an echo on the idle path took {least:.0f} ns; allowed in virtual time are {expected} ns (the RTT and "
        f"the echo's time on the bottleneck), to the ns, and up to {allowed.idle_rtt_ns} ns more "
        f"{allowed.idle_rtt_why}{f' and {jitter_ns} ns of jitter' * bool(jitter_ns)}: check where the delay is set"
    )
