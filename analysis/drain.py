# SPDX-License-Identifier: MIT
"""How far flows let the buffer run empty: the depth before they slow down, and the least depth after.

Loss-based flows slow down when they lose a packet. BBR probes instead: every eight round trips it sends more for one
and less for the next, so a cycle is what a loss event is to the others. The first seed paper, 3.6, compares both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.loss import LossEvent, min_mean_depth
from analysis.metrics import Columns, Window, arrivals_in, spread

# BBR v1 while it probes for bandwidth: pacing gains 5/4, 3/4 and six times 1, each for one minimum RTT (first seed
# paper, 3.5; net/ipv4/tcp_bbr.c, bbr_pacing_gain).
PROBING_CYCLE_RTTS = 8


@dataclass(frozen=True)
class Drain:
    """One fall of the queue, in packets as arrivals found it."""

    before_packets: int
    after_packets: int
    mean_after_packets: float | None  # the least that packets of one base RTT found on average

    @property
    def packets(self) -> int:
        return max(self.before_packets - self.after_packets, 0)


def after_losses(events: list[LossEvent]) -> list[Drain]:
    """One for each loss event: the depth that its first lost packet found, and the least in its aftermath.

    Events whose aftermath is not wholly in the measurement window are left out.
    """
    return [
        Drain(event.depth_before_packets, event.min_depth_packets, event.min_mean_depth_packets)
        for event in events
        if event.min_depth_packets is not None
    ]


def in_cycles(queue: Columns, window: Window, rtt_ns: int) -> list[Drain]:
    """One for each stretch of PROBING_CYCLE_RTTS base RTTs: its deepest arrival (the last, if several), and the least
    depth in as long a time after that.

    Cycles need not begin with the stretches: each holds one deepest point, and what follows it is the fall from there.
    The queue in front of the link lengthens the flow's own RTT, not its cycle, which is timed by the minimum RTT.
    """
    cycle_ns = PROBING_CYCLE_RTTS * rtt_ns
    found = []
    for start_ns in range(window.start_ns, window.end_ns - 2 * cycle_ns + 1, cycle_ns):
        rows = arrivals_in(queue, start_ns, start_ns + cycle_ns)
        depth = queue["depth_packets"][rows]
        if not len(depth):
            continue
        deepest = rows.stop - 1 - int(depth[::-1].argmax())
        after_ns = int(queue["enqueue_mono_ns"][deepest])
        after = queue["depth_packets"][arrivals_in(queue, after_ns, after_ns + cycle_ns)]
        mean = min_mean_depth(queue, after_ns, after_ns + cycle_ns, rtt_ns)
        found.append(Drain(int(queue["depth_packets"][deepest]), int(after.min()), mean))
    return found


def drained_fraction(
    queue: Columns, window: Window, events: list[LossEvent], spec: dict[str, Any], bdp_packets: float
) -> dict[str, Any]:
    """Median, least and most over the falls, of "probing cycles" if every flow is BBR and of "loss events" otherwise:
    as fractions of the depth before (1 - least depth after / depth before), of the buffer, of the BDP; in packets.

    The least depth has the gaps between bursts in it, and flows that recover send in bursts: receivers put SACKs
    together (sysctl tcp_comp_sack_nr). `of_bdp_mean_over_rtt` is the fall to the least mean over one base RTT, which
    has not, and is nearer to what follows from windows; a probe of BBR, which lasts one RTT, it flattens.
    """
    by_cycle = {group["cc"] for group in spec["groups"]} == {"bbr"}
    drains = in_cycles(queue, window, spec["rtt_ns"]) if by_cycle else after_losses(events)
    packets = np.array([drain.packets for drain in drains], dtype=np.float64)
    before = np.array([drain.before_packets for drain in drains], dtype=np.float64)
    mean = np.array([d.before_packets - d.mean_after_packets for d in drains if d.mean_after_packets is not None])
    return {
        "basis": "probing cycles" if by_cycle else "loss events",
        "count": len(drains),
        "packets": spread(packets),
        "of_depth_before": spread(packets[before > 0] / before[before > 0]),
        "of_buffer": spread(packets / spec["buffer_packets"]),
        "of_bdp": spread(packets / bdp_packets),
        "of_bdp_mean_over_rtt": spread(mean / bdp_packets),
    }
