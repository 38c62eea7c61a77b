# SPDX-License-Identifier: MIT
"""Resolves a spec: defaults, SI units, the rules between keys, and the limits of this host.

`resolve` reports every error at once, so that a user corrects a spec once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from controlplane.targets import TARGETS
from experiments import access, capabilities, offloads, pacing, paths, resolve_traffic, tcp_options, transfers
from experiments.host import Host
from experiments.spec import (
    ARRIVALS,
    KEYS,
    MAX_FLOWS,
    SPEC_VERSION,
    STREAMS_PER_PROCESS,
    Group,
    Spec,
    validate,
)
from experiments.transfers import Transfers
from hosts.traffic.open_loop import SIZES
from lib import units
from lib.errors import BadValue, SpecError
from lib.frames import ETHERNET_BYTES, LEAST_FRAME_BYTES, WIRE_EXTRA_BYTES, wire_bytes_of_ip
from lib.units import Quantity

UTILIZATION_WINDOW_RTTS = 10
MAX_TRAFFIC_NS = 82_800 * 10**9  # an hour less than iperf3's own limit, for the start of many flows
MAX_POOL_BYTES = 2 << 30
POOL_PACKET_BYTES = 2176  # of a packet in the switch, beside its frame: headers as fields, headroom, events
POOL_MARGIN = 8192
MOST_BURST = 1 << 16  # packets beyond a full buffer and full links
DEFAULT_LOAD = Fraction(4, 5)
# The field compares with iperf3. In virtual time iperf3 cannot run: it spins while it waits.
DEFAULT_GENERATOR = {"real": "iperf3", "virtual": "epoll"}
# On the wire: a SYN with all its options, and the ACK of a SYN-ACK.
HANDSHAKE_WIRE_BYTES = 98 + 90
# Left out of spec.yaml while they have no value: the names of points and jobs follow from its keys.
LATER_KEYS = (
    "rtts_ns", "access_bps", "access_links", "transfers", "tcp", "offloads", "pacing", "window_packets",
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
    load: float | None  # this and the next three: of open-loop traffic
    sizes: str | None
    arrivals: str | None
    datagram_flows: int | None
    transfers: tuple[Transfers, ...]  # groups of finite flows
    seed: int
    reps: int
    rtts_ns: list[int] | None = None  # of classes of flows; None: RTT and RTT_SPREAD say them
    access_bps: int | None = None  # of each long flow's own link, or of each that finite flows share
    access_links: int | None = None  # number of links that finite flows share
    tcp: dict[str, int | str] | None = None  # None: Linux's defaults, and not in spec.yaml
    offloads: dict[str, int] | None = None  # None: off, and not in spec.yaml
    pacing: str | None = None  # None: off, and not in spec.yaml
    window_packets: int | None = None  # None: no bound, and not in spec.yaml

    @property
    def flows(self) -> int:
        """Number of long flows, or of 5-tuples of open-loop traffic."""
        return sum(group.flows or 0 for group in self.groups) + (self.datagram_flows or 0)

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
        """The longest time between the starts of several iperf3 processes; 0 for a single process.

        A process connects its flows one after the other. Each takes a round trip through a queue that other flows
        already fill: twice that, and a second for SYNs that are dropped and sent again (RFC 6298).
        """
        processes = self.process_flows
        if self.generator != "iperf3" or len(processes) <= 1:
            return 0
        most_flows = max(flows for _, flows in processes)
        return 2 * most_flows * self.longest_rtt_ns + 10**9

    @property
    def longest_rtt_ns(self) -> int:
        """RTT of the farthest flow through full queues."""
        if self.access_bps is None:
            return self._bottleneck_rtt_ns
        return self._bottleneck_rtt_ns + self.access_packets * self.wire_bytes * 8 * 10**9 // self.access_bps

    @property
    def _bottleneck_rtt_ns(self) -> int:
        """RTT of the farthest flow through a full buffer, without its access queue."""
        queue_ns = self.buffer_packets * self.wire_bytes * 8 * 10**9 // self.rate_bps
        return self.rtt_ns + self.rtt_spread_ns + queue_ns

    @property
    def access_buffer_bytes(self) -> int | None:
        """Most bytes of a socket's buffer, with access links."""
        if self.access_bps is None:
            return None
        return access.socket_buffer_bytes(self.access_bps, self.rate_bps, self._bottleneck_rtt_ns, self.mtu_bytes)

    @property
    def access_packets(self) -> int:
        """Most packets in the queue of an access link."""
        held_bytes = self.access_buffer_bytes
        return 0 if held_bytes is None else access.queued_packets(held_bytes, self.mtu_bytes)

    @property
    def flows_at_once(self) -> int:
        """Number of flows that are open at the same time, at most."""
        return self.flows + math.ceil(sum(group.open_flows(self.traffic_ns) for group in self.transfers))

    @property
    def access_queues_packets(self) -> int:
        """Most packets in the queues of all access links."""
        return self.flows_at_once * self.access_packets

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
        """Data packets of the whole traffic on a full link; for open-loop and finite flows an upper bound."""
        least_bytes = LEAST_FRAME_BYTES + WIRE_EXTRA_BYTES
        mean_bytes = {
            "bimodal": (least_bytes + self.wire_bytes) // 2,
            "exponential": least_bytes + self.mtu_bytes // 5,  # truncated, its mean is a little more
        }.get(self.sizes or "", self.wire_bytes)
        offered_bps = sum(group.offered_bps() for group in self.transfers)
        rate_bps = self.rate_bps if self.flows else min(self.rate_bps, int(offered_bps) + 1)
        return rate_bps * self.traffic_ns // (8 * 10**9 * mean_bytes)

    @property
    def pool_packets(self) -> int:
        """Most packets that the switch holds at once: a full buffer, packets on its links, and arriving bursts. Access
        queues get what MAX_POOL_BYTES leaves them; a run whose pool overflows is not valid.
        """
        in_flight = Fraction(self.rate_bps * (self.rtt_ns + self.rtt_spread_ns), 8 * 10**9 * self.wire_bytes)
        ahead = max(self.buffer_packets, self.ecn_threshold_packets or 0) + units.nearest(in_flight)
        least = POOL_MARGIN + ahead + min(3 * ahead, MOST_BURST)  # postcards and their copies count, too
        queued = 8 * self.access_queues_packets // 7  # clones have an eighth of the pool
        return max(least, min(least + queued, MAX_POOL_BYTES // self._pool_packet_bytes))

    @property
    def pool_bytes(self) -> int:
        """Memory of these packets."""
        return self.pool_packets * self._pool_packet_bytes

    @property
    def _pool_packet_bytes(self) -> int:
        return self.frame_bytes + POOL_PACKET_BYTES

    def to_dict(self) -> dict[str, Any]:
        groups = [{"cc": group.cc, "flows": group.flows} for group in self.groups]
        content = asdict(self) | {"groups": groups, "transfers": [asdict(group) for group in self.transfers]}
        for key in LATER_KEYS:
            if content[key] in (None, []):
                del content[key]
        return content

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Resolved:
        """The inverse of `to_dict`, for another process. Nothing is checked: not for files of users."""
        groups = tuple(Group(group["cc"], group["flows"]) for group in content["groups"])
        finite = tuple(Transfers(**group) for group in content.get("transfers", ()))
        return cls(**{**content, "groups": groups, "transfers": finite})

    @property
    def process_flows(self) -> list[tuple[str | None, int]]:
        """Congestion control and number of flows of each sending process. iperf3 carries 128 flows at most."""
        if self.datagram_flows:
            return [(None, self.datagram_flows)]
        most = STREAMS_PER_PROCESS if self.generator == "iperf3" else MAX_FLOWS
        return [
            (group.cc, min(most, group.flows - first))
            for group in self.groups
            if group.flows
            for first in range(0, group.flows, most)
        ]


def resolve(given: Mapping[str, object], host: Host) -> Resolved:
    """The experiment that `given` (key -> value, keys in lower case) asks for. Raises SpecError with every error."""
    spec, errors = validate(given)
    if "spec_version" in errors:
        raise SpecError(list(errors.values()))

    def wrong(key: str, problem: str) -> None:
        errors.setdefault(key, BadValue(key.upper(), given.get(key, _default_text(spec, key)), problem))

    clock = spec.clock or host.clock
    if spec.switch in ("driver", "ns3") and clock == "real" and not errors.keys() & {"switch", "clock"}:
        what = "is part of the virtual-time kernel" if spec.switch == "driver" else "simulates its time"
        wrong("switch", f"{what}; allowed: process, or {spec.switch} with CLOCK=virtual")
    groups = resolve_traffic.groups(spec, given, errors, wrong)
    open_loop = spec.traffic == transfers.OPEN_LOOP
    has_finite = bool(transfers.finite_kinds(spec.traffic))
    generator = None if open_loop else spec.generator or ("epoll" if has_finite else DEFAULT_GENERATOR[clock])
    if generator == "iperf3" and has_finite and not errors.keys() & {"generator", "traffic"}:
        wrong("generator", "has no finite flows; allowed: epoll")
    if generator == "iperf3" and clock == "virtual" and not errors.keys() & {"generator", "clock"}:
        wrong("generator", "waits for its peer by spinning, which never ends in virtual time; allowed: epoll")
    resolve_traffic.check(spec, given, generator, errors, wrong)
    _check_host(spec, groups, host, errors, wrong)
    if not errors.keys() & {"access", "access_links"}:
        paths.refuse_access(spec, wrong)
    if not errors.keys() & {"rtts", "access_links"}:
        paths.refuse(spec, given, wrong)
    if spec.switch == "ns3":
        _check_simulator(spec, errors, wrong)
    can = TARGETS[spec.target].capabilities

    def refused(key: str, problem: str) -> None:
        if not errors.keys() & {key, "target"}:
            wrong(key, problem)

    wire_bytes = wire_bytes_of_ip(spec.mtu)
    capabilities.refuse(spec, clock, wire_bytes, can, refused)
    rtts_ns, rate_bps = paths.rtts_ns(spec), units.whole(spec.rate)
    rtt_ns = min(rtts_ns) if rtts_ns else units.whole(spec.rtt)
    bdp = Fraction(rate_bps * rtt_ns, 8 * 10**9 * wire_bytes)
    duration_ns, warmup_ns = (resolve_traffic.time_ns(quantity, rtt_ns) for quantity in (spec.duration, spec.warmup))
    if not errors.keys() & {"duration", "rtt"} and duration_ns < UTILIZATION_WINDOW_RTTS * rtt_ns:
        wrong("duration", f"is too short; allowed: {UTILIZATION_WINDOW_RTTS} RTTs or more, the window of utilization")
    elif not errors.keys() & {"duration", "warmup", "rtt"} and duration_ns + warmup_ns > MAX_TRAFFIC_NS:
        wrong("duration", "is too long; allowed: WARMUP and DURATION together 82800s at most, as iperf3 can run")

    start_spread_ns = resolve_traffic.start_spread_ns(spec.start_spread, generator, rtt_ns) if groups else 0
    finite = transfers.resolve(
        spec, groups[0].cc if len(groups) == 1 else resolve_traffic.one_cc(spec), wire_bytes,
        start_spread_ns + warmup_ns + duration_ns, wrong,
    )  # fmt: skip
    switch = spec.switch or ("driver" if clock == "virtual" else "process")
    buffer_packets, threshold_bytes = threshold(spec.buf, bdp, rate_bps, wire_bytes, spec.mtu)
    ecn = _ecn_threshold(spec, buffer_packets, threshold_bytes, bdp, wire_bytes, errors, wrong)
    resolved = Resolved(
        spec_version=SPEC_VERSION,
        name=spec.name
        or "-".join(
            [*(f"{group.cc}{group.flows}" for group in groups), *(f"{group.kind}-{group.cc}" for group in finite)]
        )
        or f"open-loop-{spec.sizes or SIZES[0]}".replace(":", "-"),
        target=spec.target,
        clock=clock,
        switch=switch,
        traffic=spec.traffic,
        generator=generator,
        delay=spec.delay or capabilities.default_delay(can),
        mode=spec.mode,
        groups=groups,
        rate_bps=rate_bps,
        rate_pps=capabilities.rate_pps(rate_bps, wire_bytes, can),
        rtt_ns=rtt_ns,
        rtt_spread_ns=max(rtts_ns) - rtt_ns if rtts_ns else units.whole(spec.rtt_spread),
        mtu_bytes=spec.mtu,
        wire_bytes=wire_bytes,
        bdp_packets=max(1, units.nearest(bdp)),
        buffer_given=spec.buf.text,
        buffer_packets=buffer_packets,
        threshold_bytes=threshold_bytes,
        ecn_threshold_packets=ecn[0],
        ecn_threshold_bytes=ecn[1],
        duration_ns=duration_ns,
        warmup_ns=warmup_ns,
        start_spread_ns=start_spread_ns,
        load=float(DEFAULT_LOAD if spec.load is None else spec.load) if open_loop else None,
        sizes=(spec.sizes or SIZES[0]) if open_loop else None,
        arrivals=(spec.arrivals or ARRIVALS[0]) if open_loop else None,
        datagram_flows=(resolve_traffic.DEFAULT_FLOWS if spec.flows is None else spec.flows) if open_loop else None,
        transfers=finite,
        seed=spec.seed,
        reps=spec.reps,
        rtts_ns=rtts_ns,
        access_links=spec.access_links,
        access_bps=None if spec.access is None else units.whole(spec.access),
        tcp=tcp_options.resolve(spec, spec.traffic, spec.switch, wrong),
        offloads=offloads.resolve(spec, given, clock, switch, capabilities.on_testbed(can), rate_bps, wrong),
        **pacing.resolve(spec, given, spec.traffic, clock, switch, capabilities.on_testbed(can), wrong),
    )
    if resolved.pool_bytes > MAX_POOL_BYTES and not errors.keys() & {"buf", "rate", "rtt", "rtts", "rtt_spread"}:
        wrong(
            "buf",
            f"makes the switch hold {resolved.pool_packets} packets, {resolved.pool_bytes >> 20} MiB; allowed: "
            f"{MAX_POOL_BYTES >> 20} MiB for the buffer and all that RATE x (RTT + RTT_SPREAD) has in flight",
        )
    if errors:
        known = [key for key in KEYS if key in errors]
        raise SpecError([errors[key] for key in [*known, *sorted(errors.keys() - known)]])
    return resolved


def _default_text(spec: Spec, key: str) -> object:
    value = getattr(spec, key, None)
    return value.text if isinstance(value, Quantity) else value


def _check_host(spec: Spec, groups: tuple[Group, ...], host: Host, errors: dict[str, BadValue], wrong: Any) -> None:
    """Refuses what the hosts' kernel lacks. This machine does not know the hosts of a testbed."""
    if capabilities.on_testbed(TARGETS[spec.target].capabilities):
        return
    _check_congestion_controls("cc", [group.cc for group in groups or spec.cc], host, errors, wrong)
    if spec.finite_cc:
        _check_congestion_controls("finite_cc", [spec.finite_cc], host, errors, wrong)
    if spec.delay == "tc" and not host.netem and "delay" not in errors:
        wrong("delay", "needs netem, which this host's kernel lacks (CONFIG_NET_SCH_NETEM); allowed: switch")


def _check_congestion_controls(key: str, names: list[str], host: Host, errors: dict[str, BadValue], wrong: Any) -> None:
    known = host.congestion_controls
    missing = [] if known is None else [cc for cc in names if cc not in known]
    if missing and known is not None and key not in errors:
        what = "is" if len(names) == 1 else f"names {' and '.join(missing)},"
        more = " (CLOCK=virtual has all of Linux)" if host.clock == "real" else ""
        wrong(key, f"{what} no congestion control of {host.kernel}; allowed: {', '.join(known)}{more}")


def _check_simulator(spec: Spec, errors: dict[str, BadValue], wrong: Any) -> None:
    """What simulator/ does not have."""
    for key, lacks, problem in (
        ("target", spec.target != "soft", "is a switch that ns-3 does not simulate; allowed: soft"),
        ("traffic", spec.traffic != "long", "is not simulated; allowed: long"),
        ("delay", spec.delay == "tc", "needs netem, which no simulated host has; allowed: switch"),
        (
            "buf",
            spec.buf.dimension == "bytes",
            "is in bytes, the simulated queue compares packets; allowed: p, bdp, time",
        ),
    ):
        if lacks and key not in errors:
            wrong(key, f"{problem} with SWITCH=ns3")


def threshold(quantity: Quantity, bdp: Fraction, rate_bps: int, wire_bytes: int, mtu: int) -> tuple[int, int | None]:
    """A queue length in packets, and in bytes if given in bytes. BDPs and times are rounded to packets, at least 1."""
    if quantity.dimension == "bytes":
        size = units.whole(quantity)
        return max(1, units.nearest(Fraction(size, mtu + ETHERNET_BYTES))), size
    if quantity.dimension == "packets":
        return units.whole(quantity), None
    if quantity.dimension == "bdp":
        return max(1, units.nearest(quantity.amount * bdp)), None
    return max(1, units.nearest(quantity.amount * rate_bps / (8 * 10**9 * wire_bytes))), None


def _ecn_threshold(
    spec: Spec, buffer_packets: int, buffer_bytes: int | None, bdp: Fraction, wire_bytes: int,
    errors: dict[str, BadValue], wrong: Any,
) -> tuple[int | None, int | None]:  # fmt: skip
    """The marking threshold, in packets and, if BUF is in bytes, in bytes.

    By default half the buffer: flows in steady state then see marks, not drops at the hard limit, and half of the
    buffer absorbs the bursts of flows that have not seen a mark yet.
    """
    if spec.mode != "ecn":
        if spec.ecn_threshold is not None and not errors.keys() & {"ecn_threshold", "mode"}:
            wrong("ecn_threshold", "has no meaning here; allowed: with MODE=ecn only")
        return None, None
    if spec.ecn_threshold is None:
        return max(1, buffer_packets // 2), None if buffer_bytes is None else max(1, buffer_bytes // 2)
    packets, in_bytes = threshold(spec.ecn_threshold, bdp, units.whole(spec.rate), wire_bytes, spec.mtu)
    if errors.keys() & {"ecn_threshold", "buf", "rate", "rtt", "mtu"}:
        return packets, in_bytes
    if (in_bytes is None) != (buffer_bytes is None):
        wrong("ecn_threshold", "and BUF are not in the same unit; allowed: both in bytes, or both in p, bdp or time")
    elif (in_bytes or packets) > (buffer_bytes or buffer_packets):
        wrong("ecn_threshold", f"is more than BUF={spec.buf.text}; allowed: up to BUF, which is the hard limit")
    return packets, in_bytes
