# SPDX-License-Identifier: MIT
"""Values that figures read from a run with short flows: packets of a flow, mean queue over time, transfer time."""

from __future__ import annotations

import re

from analysis.papers.stored_runs import StoredRun

LOAD = 0.8
UNLIMITED_PACKETS = 20_000  # a buffer that no run fills
OVERHEAD_BYTES = 38  # Ethernet's bytes per packet: our rates are the printed rates times (MTU + 38) / MTU


def length(run: StoredRun) -> int:
    """Packets of a flow: 14 for fixed:14p and for bursts:14p; 0 if the sizes are given in another way."""
    spec = run.experiment
    given = spec.finite[0].sizes_given if spec.finite else spec.sizes
    match = re.search(r"(\d+)p$", str(given))
    return int(match[1]) if match else 0


def printed_mbps(run: StoredRun) -> int:
    """The rate as the paper counts it, without Ethernet's overhead."""
    return round(run["rate_bps"] * run["mtu_bytes"] / (run["mtu_bytes"] + OVERHEAD_BYTES) / 1e6)


def tcp_queue(run: StoredRun) -> float | None:
    """Mean number of data packets in the queue, over time."""
    over_time = run.value("finite_flows", 0, "slow_start_queue")
    return None if over_time is None else over_time["time_mean_depth_data_packets"]["measured"]


def burst_queue(run: StoredRun) -> tuple[float | None, float | None]:
    """(mean packets in the queue over time, its standard error) of UDP bursts."""
    depth = run.value("open_loop", "time_mean_depth_packets")
    return depth["measured"], depth["standard_error"]


def transfer_s(run: StoredRun) -> float | None:
    """Mean time from a flow's first data to its last ACK."""
    mean = run.value("finite_flows", 0, "transfer_s", "mean")
    return None if mean is None else float(mean)
