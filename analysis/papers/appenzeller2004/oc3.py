# SPDX-License-Identifier: MIT
"""The OC3 link of Figures 11, 15 and 16: 155 Mb/s carry 12,917 packets of 1500 bytes per second."""

from __future__ import annotations

from analysis.papers.stored_runs import StoredRun

PACKETS_PER_S = 155e6 / 8 / 1500
FIFO_PACKETS = 43  # 64 kB in the router's output FIFO; the router's buffer limit does not count them


def bdp(rtt_s: float) -> float:
    """The BDP in packets: those in flight that just fill a path of this RTT."""
    return PACKETS_PER_S * rtt_s


def mean_window(run: StoredRun) -> float | None:
    """Mean packets in flight of a flow, over time and flows."""
    total = run["in_flight_mean_packets"]
    return None if total is None else total / run["flows"]
