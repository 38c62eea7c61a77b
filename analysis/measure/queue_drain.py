# SPDX-License-Identifier: MIT
"""How far the queue drains: the depth before flows slow down, and the minimum depth after.

Loss-based flows slow down after a loss. BBR slows down in every probing cycle of eight round trips: it sends faster
for one round trip and slower for the next. Spang et al., 3.6, compare both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.measure.loss import LossEvent, min_mean_depth
from analysis.measure.metrics import Columns, Window, arrivals_in, spread
from model.experiment import Experiment

# Base RTTs between probes for bandwidth. BBR v1: pacing gains 5/4, 3/4 and six times 1, each for one minimum RTT (Spang
# et al., 3.5; net/ipv4/tcp_bbr.c, bbr_pacing_gain). BBRv2 and BBRv3: at most 63 round trips, and at most as many
# as the window has packets (tcp_bbr2.c, bbr_bw_probe_max_rounds; draft-ietf-ccwg-bbr, IsRenoCoexistenceProbeTime).
PROBING_CYCLE_RTTS = {"bbr": 8, "bbr2": 63, "bbr3": 63}


@dataclass(frozen=True)
class Drain:
    """One fall of the queue: depths at arrivals, in packets."""

    before_packets: int
    after_packets: int
    mean_after_packets: float | None  # minimum of the mean over one base RTT

    @property
    def packets(self) -> int:
        return max(self.before_packets - self.after_packets, 0)


def after_losses(events: list[LossEvent]) -> list[Drain]:
    """One drain per loss event: from the depth at its first drop to the minimum depth in its aftermath.

    Events whose aftermath extends beyond the measurement window are left out.
    """
    return [
        Drain(event.depth_before_packets, event.min_depth_packets, event.min_mean_depth_packets)
        for event in events
        if event.min_depth_packets is not None
    ]


def in_cycles(queue: Columns, window: Window, rtt_ns: int, cycle_rtts: int) -> list[Drain]:
    """One drain per `cycle_rtts` base RTTs: from the deepest arrival (the last of several) to the minimum depth
    within one cycle after it.

    The intervals need not be aligned with BBR's cycles: each contains one deepest point, and the fall follows it.
    BBR times its cycle by the minimum RTT, so a standing queue does not lengthen the cycle.
    """
    cycle_ns = cycle_rtts * rtt_ns
    drains = []
    for start_ns in range(window.start_ns, window.end_ns - 2 * cycle_ns + 1, cycle_ns):
        rows = arrivals_in(queue, start_ns, start_ns + cycle_ns)
        depth = queue["depth_packets"][rows]
        if not len(depth):
            continue
        deepest = rows.stop - 1 - int(depth[::-1].argmax())
        after_ns = int(queue["enqueue_mono_ns"][deepest])
        after = queue["depth_packets"][arrivals_in(queue, after_ns, after_ns + cycle_ns)]
        mean = min_mean_depth(queue, after_ns, after_ns + cycle_ns, rtt_ns)
        drains.append(Drain(int(queue["depth_packets"][deepest]), int(after.min()), mean))
    return drains


def drained_fraction(
    queue: Columns, window: Window, events: list[LossEvent], spec: Experiment, bdp_packets: float
) -> dict[str, Any]:
    """Minimum, median and maximum of the drains, in packets and as fractions of the depth before the drain, of the
    buffer and of the BDP.

    `basis` is "probing cycles" if every flow is BBR of the same version, else "loss events". The minimum depth includes
    the gaps between bursts, and recovering flows send in bursts because receivers compress SACKs (tcp_comp_sack_nr).
    `of_bdp_mean_over_rtt` is the fall to the minimum of the mean over one base RTT. It is free of these gaps and
    closer to the prediction from windows, but flattens a probe of BBR, which lasts one RTT.
    """
    used = {group.cc for group in spec.long}
    cycle_rtts = PROBING_CYCLE_RTTS.get(used.pop()) if len(used) == 1 else None
    drains = in_cycles(queue, window, spec.rtt_ns, cycle_rtts) if cycle_rtts else after_losses(events)
    packets = np.array([drain.packets for drain in drains], dtype=np.float64)
    before = np.array([drain.before_packets for drain in drains], dtype=np.float64)
    mean = np.array([d.before_packets - d.mean_after_packets for d in drains if d.mean_after_packets is not None])
    return {
        "basis": "probing cycles" if cycle_rtts else "loss events",
        "count": len(drains),
        "packets": spread(packets),
        "of_depth_before": spread(packets[before > 0] / before[before > 0]),
        "of_buffer": spread(packets / spec.buffer_packets),
        "of_bdp": spread(packets / bdp_packets),
        "of_bdp_mean_over_rtt": spread(mean / bdp_packets),
    }
