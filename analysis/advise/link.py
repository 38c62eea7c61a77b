# SPDX-License-Identifier: MIT
"""The link of a question: rates in bit/s, windows and buffers in packets, unless a name says another unit."""

from __future__ import annotations

import math
from dataclasses import dataclass

from analysis.theory import short_flows, single_flow, tiny_buffers
from lib.frames import ETHERNET_BYTES, wire_bytes_of_ip


@dataclass(frozen=True)
class Link:
    """One bottleneck and its traffic. None: not given."""

    rate_bps: int
    rtt_ns: int
    flows: int
    cc: str
    utilization: float  # the target
    mtu_bytes: int = 1500
    delta: float = 1.0  # Delta of almost fairness
    losing: float | None = None  # s of equation 3: the flows that see a loss in one RTT, minus n^2 / (Delta BDP)
    risk: float = 0.025  # accepted probability
    window_bytes: float | None = None  # largest window of a flow
    input_bps: int | None = None  # highest rate at which one flow can arrive
    load: float | None = None
    flow_packets: tuple[tuple[int, float], ...] = ()  # (packets of a short flow, weight)

    @property
    def wire_bytes(self) -> int:
        """Bytes that a full packet takes on the link."""
        return wire_bytes_of_ip(self.mtu_bytes)

    @property
    def bdp(self) -> float:
        """C x RTT in full packets."""
        return single_flow.bdp_packets(self.rate_bps, self.rtt_ns, self.wire_bytes)

    @property
    def fair_window(self) -> float:
        """BDP / n: each flow's share of the pipe."""
        return self.bdp / self.flows

    @property
    def largest_window(self) -> float:
        """W_max in full packets, at least 1; math.inf without a limit."""
        return math.inf if self.window_bytes is None else max(self.window_bytes / self.mtu_bytes, 1.0)

    @property
    def peak_load(self) -> float:
        """The rate that all flows offer with their largest windows, divided by the link's capacity."""
        return tiny_buffers.peak_load(self.bdp, self.flows, self.largest_window)

    @property
    def gamma(self) -> float | None:
        """Capacity of the output (the link) / capacity of an input."""
        return None if self.input_bps is None else self.rate_bps / self.input_bps

    @property
    def bursts(self) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """Bursts of the short flows, and their weights."""
        return short_flows.mixed_bursts(dict(self.flow_packets))

    def bytes(self, packets: float) -> float:
        """Bytes of full packets in a buffer: frames as a switch stores them, and as BUF=300kB counts them."""
        return packets * (self.mtu_bytes + ETHERNET_BYTES)

    @property
    def bdp_wire_bytes(self) -> float:
        """C x RTT, as the literature counts: frame overhead included."""
        return self.rate_bps * self.rtt_ns / 8e9

    def time_s(self, packets: float) -> float:
        """Transmission time of full packets in s."""
        return packets * self.wire_bytes * 8 / self.rate_bps
