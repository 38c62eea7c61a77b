# SPDX-License-Identifier: MIT
"""The time, packets and memory that an experiment takes. All of it follows from the experiment.

With ACCESS the hosts' socket buffers bound the flows' windows: the queue of an access link has no limit, and a window
above the path's bandwidth-delay product would only lengthen it. The switch's memory and the longest round trip follow
from this bound.
"""

from __future__ import annotations

import math
from fractions import Fraction

from experiments.spec.traffic import MAX_FLOWS
from hosts.traffic.plan import STREAMS_PER_PROCESS
from lib import units
from lib.frames import LEAST_FRAME_BYTES, WIRE_EXTRA_BYTES
from model.experiment import Experiment
from model.groups import Datagrams, Group, Long

MAX_POOL_BYTES = 2 << 30
WINDOWS_UNSENT = 2  # limit of a socket's unsent bytes, in windows of the flow's fair share
UNSENT_BYTES = 256 << 10  # the same limit if windows are small: two writes, so that a writer is rarely woken
MOST_UNSENT_BYTES = 128 << 20  # bounds the sum of this limit over all sockets, for up to 4096 flows
LEAST_UNSENT_BYTES = 32 << 10  # more than two initial windows of ten segments of 1448 bytes
# A socket buffer counts bytes of memory: a segment takes up to twice its size. Linux wakes a sender only when a third
# of the buffer is free, so the other two thirds must hold a window that fills the link.
BUFFER_PER_WINDOW = 3
# The middle value of tcp_rmem in the kernel. A receive buffer starts at this size even if the last value is smaller, so
# a smaller limit would have no effect.
LEAST_BUFFER_BYTES = 128 << 10
MOST_BUFFER_BYTES = 256 << 20  # hosts.tune.tune accepts no more
POOL_PACKET_BYTES = 2176  # of a packet in the switch, beside its frame: headers as fields, headroom, events
POOL_MARGIN = 8192
MOST_BURST = 1 << 16  # packets beyond a full buffer and full links
# On the wire: a SYN with all its options, and the ACK of a SYN-ACK.
HANDSHAKE_WIRE_BYTES = 98 + 90
MOST_SYNS, UNCONNECTED = 4, 0.001  # that were lost, of a flow; expected number of flows that lose more
LEAST_CONNECT_INTERVAL_NS = 100_000  # between two SYNs, for a machine in real time


def traffic_ns(experiment: Experiment) -> int:
    """Duration of the traffic. iperf3 takes whole seconds. WARMUP begins when all flows are up."""
    asked_ns = setup_ns(experiment) + (experiment.start_spread_ns or 0) + experiment.warmup_ns + experiment.duration_ns
    return -(-asked_ns // 10**9) * 10**9 if experiment.generator == "iperf3" else asked_ns


def setup_ns(experiment: Experiment) -> int:
    """The longest time between the starts of several iperf3 processes; 0 for a single process, and for epoll.

    A process connects its flows one after the other. Each connection takes a round trip through a queue that other
    flows already fill. The result is twice the time of these round trips, plus a second for SYNs that are dropped
    and sent again (RFC 6298).
    """
    processes = process_flows(experiment)
    if experiment.generator != "iperf3" or len(processes) <= 1:
        return 0
    return 2 * max(flows for _, flows in processes) * longest_rtt_ns(experiment) + 10**9


def process_flows(experiment: Experiment) -> list[tuple[Long | Datagrams, int]]:
    """Group and number of flows of each sending process. An iperf3 process carries 128 flows at most."""
    most = STREAMS_PER_PROCESS if experiment.generator == "iperf3" else MAX_FLOWS
    groups: tuple[Long | Datagrams, ...] = (*experiment.long, *experiment.datagrams)
    return [(group, min(most, group.flows - first)) for group in groups for first in range(0, group.flows, most)]


def farthest_rtt_ns(experiment: Experiment) -> int:
    """RTT of the farthest flow through empty queues, with all jitter."""
    return experiment.rtt_ns + (experiment.rtt_spread_ns or 0) + experiment.jitter_ns


def longest_rtt_ns(experiment: Experiment) -> int:
    """RTT of the farthest flow through full queues."""
    waits_ns = [
        _sharing(experiment, group) * access_packets(experiment, bps) * experiment.wire_bytes * 8 * 10**9 // bps
        for group in experiment.tcp_groups
        if (bps := group.access_bps)
    ]
    return _bottleneck_rtt_ns(experiment) + max(waits_ns, default=0)


def _sharing(experiment: Experiment, group: Group) -> int:
    """The most long flows that share one access link of the group; 1 without shared links, or for finite flows."""
    if not group.access_links or not isinstance(group, Long):
        return 1
    return -(-sum(each.flows for each in experiment.long if each.number == group.number) // group.access_links)


def _bottleneck_rtt_ns(experiment: Experiment) -> int:
    """RTT of the farthest flow through a full buffer, without its access queue."""
    rate_bps = min(experiment.rate_bps, mean_bps(experiment)) if experiment.rate_changes else experiment.rate_bps
    return farthest_rtt_ns(experiment) + experiment.buffer_packets * experiment.wire_bytes * 8 * 10**9 // rate_bps


def mean_bps(experiment: Experiment) -> int:
    """The mean rate over the traffic, in wire bits/s."""
    schedule = experiment.rate_schedule
    if not schedule:
        return experiment.rate_bps
    lasts_ns = traffic_ns(experiment)
    return max(1, int(schedule.bits_possible(0, lasts_ns) * experiment.wire_share * 10**9 / lasts_ns))


def most_bdp_packets(experiment: Experiment) -> int:
    """The BDP at the peak of the rate."""
    peak = units.nearest(Fraction(experiment.peak_bps * experiment.rtt_ns, 8 * 10**9 * experiment.wire_bytes))
    return max(experiment.bdp_packets, peak) if experiment.rate_changes else experiment.bdp_packets


def access_buffer_bytes(experiment: Experiment) -> int | None:
    """Most bytes of a socket's buffer, if all flows have access links of one rate: a setting of the hosts. None
    without ACCESS of the run.
    """
    access_bps = experiment.shared.access_bps
    return None if access_bps is None else socket_buffer_bytes(experiment, access_bps)


def socket_buffer_bytes(experiment: Experiment, access_bps: int) -> int:
    """Most bytes of memory of the buffer of a socket whose flow has an access link of this rate: enough for a window
    that fills the slower of both links for an RTT through a full bottleneck queue.
    """
    bits = min(access_bps, experiment.peak_bps) * _bottleneck_rtt_ns(experiment)
    window_bytes = -(-bits // (8 * 10**9)) + 2 * experiment.mtu_bytes
    return min(max(LEAST_BUFFER_BYTES, BUFFER_PER_WINDOW * window_bytes), MOST_BUFFER_BYTES)


def access_packets(experiment: Experiment, access_bps: int | None) -> int:
    """Most packets of a flow in the queue of an access link of this rate: each takes more than the MTU of the socket's
    buffer.
    """
    return 0 if access_bps is None else socket_buffer_bytes(experiment, access_bps) // experiment.mtu_bytes + 1


def access_queues_packets(experiment: Experiment) -> int:
    """Most packets in the queues of all access links."""
    lasts_ns = traffic_ns(experiment)
    flows: list[tuple[Group, int]] = [(group, group.flows) for group in experiment.long]
    flows += [(group, math.ceil(group.open_flows(lasts_ns))) for group in experiment.finite]
    return sum(number * access_packets(experiment, group.access_bps) for group, number in flows)


def unsent_bytes(experiment: Experiment) -> int | None:
    """The most unsent bytes that a socket holds: two windows of a flow's fair share, but at least UNSENT_BYTES.
    With more than 512 flows this lower bound shrinks, down to LEAST_UNSENT_BYTES. None: as many as the socket's
    buffer holds.

    A send buffer grows to twice the largest window that the flow ever had. If many flows start one after another,
    most flows have the whole link for some time, and a virtual machine has no memory for buffers of that size.
    """
    flows = experiment.flows
    if experiment.clock != "virtual" or flows < 2 or experiment.program:
        return None
    window_packets = -(-(most_bdp_packets(experiment) + experiment.buffer_packets) // flows)
    few = max(LEAST_UNSENT_BYTES, min(UNSENT_BYTES, MOST_UNSENT_BYTES // flows))
    return max(few, WINDOWS_UNSENT * window_packets * experiment.mtu_bytes)


def finite_flows(experiment: Experiment) -> float:
    """Expected number of finite flows."""
    return sum(group.flows(traffic_ns(experiment)) for group in experiment.finite)


def open_finite_flows(experiment: Experiment) -> int:
    """The most finite flows that are open at the same time."""
    return math.ceil(sum(group.open_flows(traffic_ns(experiment)) for group in experiment.finite))


def connect_interval_ns(experiment: Experiment) -> int:
    """Time between two SYNs of epoll: twice the time that a SYN and the ACK of another handshake take on the link, so
    that no buffer is too small for handshakes.
    """
    return max(LEAST_CONNECT_INTERVAL_NS, 2 * HANDSHAKE_WIRE_BYTES * 8 * 10**9 // experiment.rate_bps)


def connect_ns(experiment: Experiment) -> int:
    """Time that epoll needs before the start to connect all flows: the SYNs, and some round trips."""
    if experiment.generator != "epoll":
        return 0
    syns_ns = experiment.flows * connect_interval_ns(experiment)
    return syns_ns + 3 * farthest_rtt_ns(experiment) + _syn_timeouts_ns(experiment)


def _syn_timeouts_ns(experiment: Experiment) -> int:
    """With LOSS, time for SYNs that are sent again: so many that hardly a flow still waits, up to MOST_SYNS."""
    if experiment.loss is None:
        return 0
    chance, again = experiment.loss.of_link.mean, 1
    while again < MOST_SYNS and experiment.flows * chance**again > UNCONNECTED:
        again += 1
    return (2**again - 1) * 10**9


def data_packets(experiment: Experiment) -> int:
    """An estimate of the number of data packets: all are full (open-loop: of mean size), and the link is busy all the
    time. If all flows are finite, the link carries their offered load instead, if that is less.
    """
    least_bytes = LEAST_FRAME_BYTES + WIRE_EXTRA_BYTES
    means = {
        "bimodal": (least_bytes + experiment.wire_bytes) // 2,
        "exponential": least_bytes + experiment.mtu_bytes // 5,  # a little less than the truncated distribution's mean
    }
    full = experiment.wire_bytes
    mean_bytes = min((means.get(group.sizes, full) for group in experiment.datagrams), default=full)
    rate_bps = mean_bps(experiment)
    if not experiment.flows and not experiment.program:
        rate_bps = min(rate_bps, int(sum(group.offered_bps() for group in experiment.finite)) + 1)
    return rate_bps * traffic_ns(experiment) // (8 * 10**9 * mean_bytes)


def pool_packets(experiment: Experiment) -> int:
    """The number of packets that the switch has memory for: a full buffer, packets on its links, and arriving bursts.
    Access queues get at most the rest of MAX_POOL_BYTES. If the pool overflows, the run is not valid.
    """
    in_flight = Fraction(experiment.peak_bps * farthest_rtt_ns(experiment), 8 * 10**9 * experiment.wire_bytes)
    ahead = max(experiment.buffer_packets, experiment.ecn_threshold_packets or 0) + units.nearest(in_flight)
    least = POOL_MARGIN + ahead + min(3 * ahead, MOST_BURST)  # postcards and their copies count, too
    queued = 8 * access_queues_packets(experiment) // 7  # clones have an eighth of the pool
    return max(least, min(least + queued, MAX_POOL_BYTES // (experiment.frame_bytes + POOL_PACKET_BYTES)))


def pool_bytes(experiment: Experiment) -> int:
    """Memory of `pool_packets`."""
    return pool_packets(experiment) * (experiment.frame_bytes + POOL_PACKET_BYTES)
