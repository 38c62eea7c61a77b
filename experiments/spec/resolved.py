# SPDX-License-Identifier: MIT
"""An experiment that can be run, and all values that follow from its parameters."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import Annotated

from experiments.spec import access
from experiments.spec.keys import STREAMS_PER_PROCESS
from experiments.spec.traffic import MAX_FLOWS
from lib import units
from lib.frames import ETHERNET_BYTES, LEAST_FRAME_BYTES, WIRE_EXTRA_BYTES
from model.experiment import Experiment
from model.groups import Datagrams, Group, Long
from model.record import NotNegative, Positive, one_of

MAX_POOL_BYTES = 2 << 30
WINDOWS_UNSENT = 2  # limit of a socket's unsent bytes, in windows of the flow's fair share
UNSENT_BYTES = 256 << 10  # the same limit if windows are small: two writes, so that a writer is rarely woken
MOST_UNSENT_BYTES = 128 << 20  # bounds the sum of this limit over all sockets, for up to 4096 flows
LEAST_UNSENT_BYTES = 32 << 10  # more than two initial windows of ten segments of 1448 bytes
POOL_PACKET_BYTES = 2176  # of a packet in the switch, beside its frame: headers as fields, headroom, events
POOL_MARGIN = 8192
MOST_BURST = 1 << 16  # packets beyond a full buffer and full links
# On the wire: a SYN with all its options, and the ACK of a SYN-ACK.
HANDSHAKE_WIRE_BYTES = 98 + 90
MOST_SYNS, UNCONNECTED = 4, 0.001  # that were lost, of a flow; expected number of flows that lose more
LEAST_CONNECT_INTERVAL_NS = 100_000  # between two SYNs, for a machine in real time


class Resolved(Experiment):
    """An experiment that can be run: the fields that every run has, and all values that follow from the fields."""

    name: str
    switch: Annotated[str, one_of("process", "driver", "ns3")]
    delay: Annotated[str, one_of("switch", "tc")]
    buffer_given: str
    start_spread_ns: NotNegative
    seed: NotNegative
    reps: Positive

    @property
    def with_ecn(self) -> bool:
        """Whether any TCP flow asks for ECN."""
        return any(map(self.ecn_of, self.with_settings))

    @property
    def pacing_of_host(self) -> str | None:
        """The kind of pacing, one for all groups that are paced."""
        return next((group.pacing for group in self.with_settings if group.pacing), None)

    @property
    def frame_bytes(self) -> int:
        """A full frame as the switch counts it: Ethernet header included, FCS not."""
        return self.mtu_bytes + ETHERNET_BYTES

    @property
    def traffic_ns(self) -> int:
        """Duration of the traffic. iperf3 takes whole seconds. WARMUP begins when all flows are up."""
        asked_ns = self.setup_ns + self.start_spread_ns + self.warmup_ns + self.duration_ns
        return -(-asked_ns // 10**9) * 10**9 if self.generator == "iperf3" else asked_ns

    @property
    def setup_ns(self) -> int:
        """The longest time between the starts of several iperf3 processes; 0 for a single process, and for epoll.

        A process connects its flows one after the other. Each connection takes a round trip through a queue that other
        flows already fill. The result is twice the time of these round trips, plus a second for SYNs that are dropped
        and sent again (RFC 6298).
        """
        processes = self.process_flows
        if self.generator != "iperf3" or len(processes) <= 1:
            return 0
        most_flows = max(flows for _, flows in processes)
        return 2 * most_flows * self.longest_rtt_ns + 10**9

    @property
    def longest_rtt_ns(self) -> int:
        """RTT of the farthest flow through full queues."""
        waits_ns = [
            self._sharing(group) * self.access_packets(bps) * self.wire_bytes * 8 * 10**9 // bps
            for group in self.tcp_groups
            if (bps := group.access_bps)
        ]
        return self._bottleneck_rtt_ns + max(waits_ns, default=0)

    @cached_property
    def peak_bps(self) -> int:
        """The largest rate over one RTT, in wire bits/s."""
        schedule = self.rate_schedule
        return math.ceil(schedule.peak_bps(self.rtt_ns) * self._wire_share) if schedule else self.rate_bps

    @cached_property
    def mean_bps(self) -> int:
        """The mean rate over the traffic, in wire bits/s."""
        schedule = self.rate_schedule
        if not schedule:
            return self.rate_bps
        return max(1, int(schedule.bits_possible(0, self.traffic_ns) * self._wire_share * 10**9 / self.traffic_ns))

    @property
    def _wire_share(self) -> Fraction:
        """Wire bits per bit of the schedule, with full packets."""
        of_ip = self.rate_schedule and self.rate_schedule.opportunities
        return Fraction(self.wire_bytes, self.mtu_bytes) if of_ip else Fraction(1)

    @property
    def most_bdp_packets(self) -> int:
        """The BDP at the peak of the rate."""
        peak = units.nearest(Fraction(self.peak_bps * self.rtt_ns, 8 * 10**9 * self.wire_bytes))
        return max(self.bdp_packets, peak) if self.rate_changes else self.bdp_packets

    @property
    def farthest_rtt_ns(self) -> int:
        """RTT of the farthest flow through empty queues, with all jitter."""
        return self.rtt_ns + (self.rtt_spread_ns or 0) + self.jitter_ns

    def _sharing(self, group: Group) -> int:
        """The most long flows that share one access link of the group; 1 without shared links, or for finite flows."""
        if not group.access_links or not isinstance(group, Long):
            return 1
        return -(-sum(each.flows for each in self.long if each.number == group.number) // group.access_links)

    @property
    def _bottleneck_rtt_ns(self) -> int:
        """RTT of the farthest flow through a full buffer, without its access queue."""
        rate_bps = min(self.rate_bps, self.mean_bps) if self.rate_changes else self.rate_bps
        queue_ns = self.buffer_packets * self.wire_bytes * 8 * 10**9 // rate_bps
        return self.farthest_rtt_ns + queue_ns

    @property
    def access_buffer_bytes(self) -> int | None:
        """Most bytes of a socket's buffer, if all flows have access links of one rate: a setting of the hosts. None
        without ACCESS of the run.
        """
        access_bps = self.shared.access_bps
        return None if access_bps is None else self.socket_buffer_bytes(access_bps)

    @property
    def unsent_bytes(self) -> int | None:
        """The most unsent bytes that a socket holds: two windows of a flow's fair share, but at least UNSENT_BYTES.
        With more than 512 flows this lower bound shrinks, down to LEAST_UNSENT_BYTES. None: as many as the socket's
        buffer holds.

        A send buffer grows to twice the largest window that the flow ever had. If many flows start one after another,
        most flows have the whole link for some time, and a virtual machine has no memory for buffers of that size.
        """
        if self.clock != "virtual" or self.flows < 2 or self.program:
            return None
        window_packets = -(-(self.most_bdp_packets + self.buffer_packets) // self.flows)
        few = max(LEAST_UNSENT_BYTES, min(UNSENT_BYTES, MOST_UNSENT_BYTES // self.flows))
        return max(few, WINDOWS_UNSENT * window_packets * self.mtu_bytes)

    def socket_buffer_bytes(self, access_bps: int) -> int:
        """Most bytes of the buffer of a socket whose flow has an access link of this rate."""
        return access.socket_buffer_bytes(access_bps, self.peak_bps, self._bottleneck_rtt_ns, self.mtu_bytes)

    def access_packets(self, access_bps: int | None) -> int:
        """Most packets of a flow in the queue of an access link of this rate."""
        return 0 if access_bps is None else access.queued_packets(self.socket_buffer_bytes(access_bps), self.mtu_bytes)

    @property
    def flows_at_once(self) -> int:
        """The most flows that are open at the same time."""
        return self.flows + math.ceil(sum(group.open_flows(self.traffic_ns) for group in self.finite))

    @property
    def access_queues_packets(self) -> int:
        """Most packets in the queues of all access links."""
        of_long = sum(group.flows * self.access_packets(group.access_bps) for group in self.long)
        of_finite = sum(
            math.ceil(group.open_flows(self.traffic_ns)) * self.access_packets(group.access_bps)
            for group in self.finite
        )
        return of_long + of_finite

    @property
    def connect_interval_ns(self) -> int:
        """Time between two SYNs of epoll: twice the time that a SYN and the ACK of another handshake take on the link,
        so that no buffer is too small for handshakes.
        """
        return max(LEAST_CONNECT_INTERVAL_NS, 2 * HANDSHAKE_WIRE_BYTES * 8 * 10**9 // self.rate_bps)

    @property
    def connect_ns(self) -> int:
        """Time that epoll needs before the start to connect all flows: the SYNs, and some round trips."""
        if self.generator != "epoll":
            return 0
        return self.flows * self.connect_interval_ns + 3 * self.farthest_rtt_ns + self._syn_timeouts_ns

    @property
    def _syn_timeouts_ns(self) -> int:
        """With LOSS, time for SYNs that are sent again: so many that hardly a flow still waits, up to MOST_SYNS."""
        if self.loss is None:
            return 0
        chance, again = self.loss.of_link.mean, 1
        while again < MOST_SYNS and self.flows * chance**again > UNCONNECTED:
            again += 1
        return (2**again - 1) * 10**9

    @property
    def packets(self) -> int:
        """An estimate of the number of data packets: all are full (open-loop: of mean size), and the link is busy all
        the time. If all flows are finite, the link carries their offered load instead, if that is less.
        """
        least_bytes = LEAST_FRAME_BYTES + WIRE_EXTRA_BYTES
        means = {
            "bimodal": (least_bytes + self.wire_bytes) // 2,
            "exponential": least_bytes + self.mtu_bytes // 5,  # a little less than the truncated distribution's mean
        }
        sizes = (group.sizes for group in self.datagrams)
        mean_bytes = min((means.get(of_group, self.wire_bytes) for of_group in sizes), default=self.wire_bytes)
        offered_bps = sum(group.offered_bps() for group in self.finite)
        mean_bps = self.mean_bps
        rate_bps = mean_bps if self.flows or self.program else min(mean_bps, int(offered_bps) + 1)
        return rate_bps * self.traffic_ns // (8 * 10**9 * mean_bytes)

    @property
    def pool_packets(self) -> int:
        """The number of packets that the switch has memory for: a full buffer, packets on its links, and arriving
        bursts. Access queues get at most the rest of MAX_POOL_BYTES. If the pool overflows, the run is not valid.
        """
        in_flight = Fraction(self.peak_bps * self.farthest_rtt_ns, 8 * 10**9 * self.wire_bytes)
        ahead = max(self.buffer_packets, self.ecn_threshold_packets or 0) + units.nearest(in_flight)
        least = POOL_MARGIN + ahead + min(3 * ahead, MOST_BURST)  # postcards and their copies count, too
        queued = 8 * self.access_queues_packets // 7  # clones have an eighth of the pool
        return max(least, min(least + queued, MAX_POOL_BYTES // self._pool_packet_bytes))

    @property
    def pool_bytes(self) -> int:
        """Memory of `pool_packets`."""
        return self.pool_packets * self._pool_packet_bytes

    @property
    def _pool_packet_bytes(self) -> int:
        return self.frame_bytes + POOL_PACKET_BYTES

    @property
    def process_flows(self) -> list[tuple[Long | Datagrams, int]]:
        """Group and number of flows of each sending process. An iperf3 process carries 128 flows at most."""
        most = STREAMS_PER_PROCESS if self.generator == "iperf3" else MAX_FLOWS
        groups: tuple[Long | Datagrams, ...] = (*self.long, *self.datagrams)
        return [(group, min(most, group.flows - first)) for group in groups for first in range(0, group.flows, most)]
