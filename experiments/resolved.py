# SPDX-License-Identifier: MIT
"""An experiment with every parameter set, in SI units, and all values that follow from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from controlplane.policy import MARKING_MODES
from experiments import access
from experiments.spec import STREAMS_PER_PROCESS
from experiments.traffic import MAX_FLOWS
from experiments.traffic_groups import Datagrams, Group, OwnSettings, to_dict
from experiments.transfers import Transfers
from lib import units
from lib.frames import ETHERNET_BYTES, LEAST_FRAME_BYTES, WIRE_EXTRA_BYTES

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
# Keys that are left out of spec.yaml while they have no value: the names of points and jobs follow from the content of
# spec.yaml, so a new key would otherwise rename them all.
LATER_KEYS = (
    "rtts_ns", "access_bps", "access_links", "servers", "transfers", "tcp", "offloads", "pacing", "window_packets",
    "congestion_sources", "cc_parameters", "ecn", "ack_delay_ns", "datagrams",
    "program", "drop_cost_permille",
)  # fmt: skip
LEAST_CONNECT_INTERVAL_NS = 100_000  # between two SYNs, for a machine in real time


@dataclass(frozen=True)
class Resolved:
    """An experiment with every parameter set, in SI units: the content of spec.yaml in a run directory."""

    spec_version: int
    name: str
    target: str
    clock: str
    switch: str
    traffic: str
    generator: str | None  # of TCP flows
    delay: str
    mode: str
    groups: tuple[Group, ...]
    rate_bps: int
    rate_pps: int | None  # the rate in full packets, rounded, on a target that counts packets
    rtt_ns: int
    rtt_spread_ns: int
    mtu_bytes: int
    wire_bytes: int
    bdp_packets: int
    buffer_given: str
    buffer_packets: int  # the threshold; if it is in bytes, the nearest number of full packets
    threshold_bytes: int | None
    ecn_threshold_packets: int | None
    ecn_threshold_bytes: int | None
    duration_ns: int
    warmup_ns: int
    start_spread_ns: int
    load: float | None  # `load`, `sizes`, `arrivals` and `datagram_flows` are of open-loop traffic
    sizes: str | None
    arrivals: str | None
    datagram_flows: int | None
    transfers: tuple[Transfers, ...]  # groups of finite flows
    seed: int
    reps: int
    rtts_ns: list[int] | None = None  # of classes of flows; None: RTT and RTT_SPREAD apply
    access_bps: int | None = None  # rate of each long flow's own link, or of each link that flows share
    access_links: int | None = None  # number of links that flows share
    servers: int | None = None  # number of paths of finite flows; None: one for each pair of RTT and access link
    tcp: dict[str, int | str] | None = None  # None: Linux's defaults, and not in spec.yaml
    offloads: dict[str, int] | None = None  # None: off, and not in spec.yaml
    pacing: str | None = None  # None: off, and not in spec.yaml
    window_packets: int | None = None  # None: no bound, and not in spec.yaml
    congestion_sources: list[dict[str, str]] | None = None  # users' own algorithms: name, file, sha256, text
    cc_parameters: dict[str, str] | None = None  # algorithm.parameter -> value; None: the kernel's defaults
    ecn: str | None = None  # of TCP; None: on only with a marking MODE, and not in spec.yaml
    ack_delay_ns: int | None = None  # propagation delay of the ACK direction; None: half of the RTT
    program: dict[str, Any] | None = None  # SERVER and CLIENT; None: none, and not in spec.yaml
    drop_cost_permille: int | None = None  # None: none, and not in spec.yaml
    datagrams: tuple[Datagrams, ...] = ()  # groups of open-loop traffic beside others, and not in spec.yaml if none

    @property
    def flows(self) -> int:
        """Number of long flows and of 5-tuples of open-loop traffic."""
        of_datagrams = sum(group.flows for group in self.datagrams) + (self.datagram_flows or 0)
        return sum(group.flows or 0 for group in self.groups) + of_datagrams

    @property
    def tcp_groups(self) -> tuple[Group | Transfers, ...]:
        return (*self.groups, *self.transfers)

    def ecn_of(self, group: OwnSettings) -> bool:
        """Whether the TCP flows of the group ask for ECN."""
        ecn = group.ecn or self.ecn
        return ecn == "on" if ecn else self.mode in MARKING_MODES

    @property
    def with_ecn(self) -> bool:
        """Whether any TCP flow asks for ECN."""
        return any(self.ecn_of(group) for group in self.tcp_groups or (OwnSettings(),))

    @property
    def pacing_of_host(self) -> str | None:
        """The kind of pacing, one for all groups that are paced."""
        return next((group.pacing for group in self.tcp_groups if group.pacing), self.pacing)

    def access_of(self, group: OwnSettings) -> int | None:
        """The rate of the access links of the group's flows."""
        return group.access_bps if group.is_own else self.access_bps

    @property
    def back_ns(self) -> int:
        """Propagation delay of the ACK direction of flows without an ACK_DELAY of their group. The data direction has
        the rest of RTT.
        """
        return self.rtt_ns - self.rtt_ns // 2 if self.ack_delay_ns is None else self.ack_delay_ns

    def back_of(self, group: OwnSettings) -> int:
        """Propagation delay of the ACK direction of the group's flows."""
        return self.back_ns if group.ack_delay_ns is None else group.ack_delay_ns

    def forth_extra_ns(self, rtt_ns: int, ack_delay_ns: int | None) -> int:
        """A flow's delay in the data direction, minus the least of all flows. `ack_delay_ns` is the group's."""
        return rtt_ns - (self.back_ns if ack_delay_ns is None else ack_delay_ns) - self.least_forth_ns

    @property
    def least_back_ns(self) -> int:
        """Propagation delay of the link that all ACKs cross. Some groups have an additional delay."""
        return min(map(self.back_of, self.tcp_groups), default=self.back_ns)

    @property
    def least_forth_ns(self) -> int:
        """Propagation delay of the link that all data crosses. Some flows have an additional delay."""
        forth_ns = [(group.rtt_ns or self.rtt_ns) - self.back_of(group) for group in self.tcp_groups]
        return min(forth_ns, default=self.rtt_ns - self.back_ns)

    @property
    def idle_rtt_ns(self) -> int:
        """RTT of a packet that belongs to no flow."""
        return self.least_forth_ns + self.least_back_ns

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
            if (bps := self.access_of(group))
        ]
        return self._bottleneck_rtt_ns + max(waits_ns, default=0)

    def _sharing(self, group: OwnSettings) -> int:
        """The most long flows that share one access link of the group; 1 without shared links, or for finite flows."""
        links = group.access_links if group.is_own else self.access_links
        if not links or not isinstance(group, Group):
            return 1
        flows = (group.flows or 0) if group.is_own else sum(each.flows or 0 for each in self.groups)
        return -(-flows // links)

    @property
    def _bottleneck_rtt_ns(self) -> int:
        """RTT of the farthest flow through a full buffer, without its access queue."""
        queue_ns = self.buffer_packets * self.wire_bytes * 8 * 10**9 // self.rate_bps
        return self.rtt_ns + self.rtt_spread_ns + queue_ns

    @property
    def access_buffer_bytes(self) -> int | None:
        """Most bytes of a socket's buffer, if all flows have access links of one rate: a setting of the hosts. None
        without ACCESS of the run.
        """
        return None if self.access_bps is None else self.socket_buffer_bytes(self.access_bps)

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
        window_packets = -(-(self.bdp_packets + self.buffer_packets) // self.flows)
        few = max(LEAST_UNSENT_BYTES, min(UNSENT_BYTES, MOST_UNSENT_BYTES // self.flows))
        return max(few, WINDOWS_UNSENT * window_packets * self.mtu_bytes)

    def socket_buffer_bytes(self, access_bps: int) -> int:
        """Most bytes of the buffer of a socket whose flow has an access link of this rate."""
        return access.socket_buffer_bytes(access_bps, self.rate_bps, self._bottleneck_rtt_ns, self.mtu_bytes)

    def access_packets(self, access_bps: int | None) -> int:
        """Most packets of a flow in the queue of an access link of this rate."""
        return 0 if access_bps is None else access.queued_packets(self.socket_buffer_bytes(access_bps), self.mtu_bytes)

    @property
    def flows_at_once(self) -> int:
        """The most flows that are open at the same time."""
        return self.flows + math.ceil(sum(group.open_flows(self.traffic_ns) for group in self.transfers))

    @property
    def access_queues_packets(self) -> int:
        """Most packets in the queues of all access links."""
        of_long = sum((group.flows or 0) * self.access_packets(self.access_of(group)) for group in self.groups)
        of_finite = sum(
            math.ceil(group.open_flows(self.traffic_ns)) * self.access_packets(self.access_of(group))
            for group in self.transfers
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
        return self.flows * self.connect_interval_ns + 3 * (self.rtt_ns + self.rtt_spread_ns)

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
        sizes = [self.sizes or "", *(group.sizes for group in self.datagrams)]
        mean_bytes = min(means.get(of_group, self.wire_bytes) for of_group in sizes)
        offered_bps = sum(group.offered_bps() for group in self.transfers)
        rate_bps = self.rate_bps if self.flows or self.program else min(self.rate_bps, int(offered_bps) + 1)
        return rate_bps * self.traffic_ns // (8 * 10**9 * mean_bytes)

    @property
    def pool_packets(self) -> int:
        """The number of packets that the switch has memory for: a full buffer, packets on its links, and arriving
        bursts. Access queues get at most the rest of MAX_POOL_BYTES. If the pool overflows, the run is not valid.
        """
        in_flight = Fraction(self.rate_bps * (self.rtt_ns + self.rtt_spread_ns), 8 * 10**9 * self.wire_bytes)
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

    def to_dict(self) -> dict[str, Any]:
        of_groups = {name: list(map(to_dict, getattr(self, name))) for name in ("groups", "transfers", "datagrams")}
        content = asdict(self) | of_groups
        for key in LATER_KEYS:
            if content[key] in (None, []):
                del content[key]
        return content

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Resolved:
        """The inverse of `to_dict`, for another process. Nothing is checked, so it must not read files of users."""
        groups = tuple(Group(**group) for group in content["groups"])
        finite = tuple(Transfers(**group) for group in content.get("transfers", ()))
        datagrams = tuple(Datagrams(**group) for group in content.get("datagrams", ()))
        return cls(**{**content, "groups": groups, "transfers": finite, "datagrams": datagrams})

    @property
    def all_datagrams(self) -> tuple[Datagrams, ...]:
        """The groups of open-loop traffic, beside others or alone."""
        if self.datagram_flows is None:
            return self.datagrams
        return (Datagrams(self.datagram_flows, self.load or 0.0, self.sizes or "", self.arrivals or ""),)

    @property
    def process_flows(self) -> list[tuple[Group | Datagrams, int]]:
        """Group and number of flows of each sending process. An iperf3 process carries 128 flows at most."""
        most = STREAMS_PER_PROCESS if self.generator == "iperf3" else MAX_FLOWS
        groups: tuple[Group | Datagrams, ...] = (*self.groups, *self.all_datagrams)
        return [
            (group, min(most, (group.flows or 0) - first))
            for group in groups
            for first in range(0, group.flows or 0, most)
        ]
