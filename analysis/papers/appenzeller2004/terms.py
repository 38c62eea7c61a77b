# SPDX-License-Identifier: MIT
"""The paper's senders and links, and what its figures read from a run."""

from __future__ import annotations

import re

from analysis.figures.common import BLUE, ORANGE
from analysis.papers.paper_runs import PaperRun, PaperRuns

# Both senders of the page: the paper's TCP (PROFILE=paper) and today's Linux (PROFILE=linux)
PAPER, LINUX = "paper", "linux"
PROFILES = (PAPER, LINUX)
NAMES = {PAPER: "Reno as then", LINUX: "Reno as now"}
COLORS = {PAPER: BLUE, LINUX: ORANGE}

# The OC3 link of Figures 11, 15 and 16: 155 Mb/s carry 12,917 packets of 1500 bytes per second
OC3_PACKETS_PER_S = 155e6 / 8 / 1500
FIFO_PACKETS = 43  # 64 kB in the router's output FIFO; the router's buffer limit does not count them

# The link of Figures 13 and 14: 400 Mb/s, 80 ms, long flows with short ones beside them
MIX_STEM, MIX_RTT_S = "mix", 0.08
MIX_BDP = 400e6 * MIX_RTT_S / 8 / 1500

# Short flows
LOAD = 0.8
UNLIMITED_PACKETS = 20_000  # a buffer that no run fills
OVERHEAD_BYTES = 38  # Ethernet's bytes per packet: our rates are the printed rates times (MTU + 38) / MTU


def by_profile(runs: PaperRuns, stem: str) -> dict[str, list[PaperRun]]:
    """The runs of a sweep for each sender."""
    return {profile: runs.select(stem, profile=profile) for profile in PROFILES}


def synchronization(run: PaperRun) -> float | None:
    """S = (Var(sum of W) / sum of Var(W) - 1) / (n - 1)."""
    value = run.value("aggregate_window_packets", "synchronization")
    return None if value is None else float(value)


def length(run: PaperRun) -> int:
    """Packets of a flow: 14 for fixed:14p and for bursts:14p; 0 if the sizes are given in another way."""
    spec = run.experiment
    given = spec.finite[0].sizes_given if spec.finite else spec.open_loop and spec.open_loop.sizes
    match = re.search(r"(\d+)p$", str(given))
    return int(match[1]) if match else 0


def printed_mbps(run: PaperRun) -> int:
    """The rate as the paper counts it, without Ethernet's overhead."""
    return round(run["rate_bps"] * run["mtu_bytes"] / (run["mtu_bytes"] + OVERHEAD_BYTES) / 1e6)


def tcp_queue(run: PaperRun) -> float | None:
    """Mean number of data packets in the queue, over time."""
    over_time = run.value("finite_flows", 0, "slow_start_queue")
    return None if over_time is None else over_time["time_mean_depth_data_packets"]["measured"]


def burst_queue(run: PaperRun) -> tuple[float | None, float | None]:
    """(mean packets in the queue over time, its standard error) of UDP bursts."""
    depth = run.value("open_loop", "time_mean_depth_packets")
    return depth["measured"], depth["standard_error"]


def transfer_s(run: PaperRun) -> float | None:
    """Mean time from a flow's first data to its last ACK."""
    mean = run.value("finite_flows", 0, "transfer_s", "mean")
    return None if mean is None else float(mean)
