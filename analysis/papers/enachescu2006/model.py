# SPDX-License-Identifier: MIT
"""A run in the paper's terms: its peak load, the carried share of this load, and the predictions of the TCP equation
with the losses of M/M/1/B and of M/D/1/B.
"""

from __future__ import annotations

from statistics import harmonic_mean

from analysis.papers.stored_runs import StoredRun
from analysis.theory import mm1b, queues, tiny_buffers

EXPONENTIAL, EQUAL = "TCP equation, M/M/1/B", "TCP equation, M/D/1/B"


def bdp(run: StoredRun) -> float:
    """C x RTT in packets. RTT is the harmonic mean over the flows, because their rates W / RTT add up. Raises
    InputError.
    """
    spec, flows = run.experiment, run["flows"]
    steps = max(flows - 1, 1)
    rtts_ns = [spec.rtt_ns + (spec.rtt_spread_ns or 0) * step / steps for step in range(flows)]
    return float(spec.rate_bps * harmonic_mean(rtts_ns) / 8e9 / spec.wire_bytes)


def peak_load(run: StoredRun) -> float:
    """rho = N W / (C RTT). Windows must be capped. Raises InputError."""
    return tiny_buffers.peak_load(bdp(run), run["flows"], run["window_packets"])


def effective_utilization(run: StoredRun) -> float | None:
    """theta = u / rho: the share of the peak load that the link carried."""
    used = run["utilization_mean"]
    return None if used is None else used / peak_load(run)


def used_with_exponential(flows: int, bdp_packets: float, buffer: int, largest_window: float) -> float:
    """u that satisfies both the TCP equation and the loss of M/M/1/B (section IV-A)."""
    load = tiny_buffers.tcp_mm1b_load(bdp_packets / flows, buffer, largest_window)
    return mm1b.utilization(load, buffer)


def used_with_equal(flows: int, bdp_packets: float, buffer: int, largest_window: float) -> float:
    """u that satisfies both the TCP equation and the loss of M/D/1/B: packets have one size."""
    load = tiny_buffers.tcp_md1b_load(bdp_packets / flows, buffer, largest_window)
    return load * (1 - queues.md1_loss(load, buffer))


MODELS = {EXPONENTIAL: used_with_exponential, EQUAL: used_with_equal}
