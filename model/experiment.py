# SPDX-License-Identifier: MIT
"""One experiment with every parameter set, in SI units: the content of spec.yaml. Only this model reads and writes it.

None: there is no such setting, or the source does not say, as of an import. Defaults are not written: the name of a
sweep's point is a digest of the other values, so a new field renames no point.
"""

from __future__ import annotations

import hashlib
import json
import math
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from controlplane.policy import MARKING_MODES, WATCHED_MODES
from controlplane.switch import Capabilities
from controlplane.targets import TARGETS
from hosts.tune.tcp_options import OPTIONS
from lib import link_dynamics, link_trace
from lib.frames import ETHERNET_BYTES, LEAST_IP_BYTES, MOST_IP_BYTES
from model.groups import TRAFFIC, AnyGroup, Datagrams, Finite, Group, Long, Programs
from model.record import NotNegative, Positive, Record, Several, checked, one_of

SPEC_VERSION = 1
TAIL_DROP_QDISCS = ("pfifo", "bfifo")
SHAPING = {"bandwidth", "maxrate"}  # arguments of cake and fq
SOFT, IMPORTED = "soft", "imported"  # targets: our own switch, and a switch of an unknown kind
OF_A_REPETITION = {"repetition", "extra_delays_ns", "machines", "tc_at"}
NOT_OF_A_POINT = {"name", "buffer_given", "seed", "reps", "repetition", "extra_delays_ns"}
Chance = Annotated[float, Field(ge=0, le=1)]
Step = Annotated[tuple[NotNegative, NotNegative], Field(strict=False)]  # ns since the start of WARMUP, wire bits/s
Mtu = Annotated[int, Field(ge=LEAST_IP_BYTES, le=MOST_IP_BYTES)]
TcpOptions = Annotated[
    dict[str, int | str], checked(lambda values: values.keys() == OPTIONS.keys(), f"a mapping of {', '.join(OPTIONS)}")
]


class Source(Record):
    """A user's own congestion control, trace of a rate, or P4 program. `text` is a file of its own beside spec.yaml."""

    name: str
    file: Annotated[
        str, checked(lambda name: name == Path(name).name not in ("", ".."), "the name of a file, without a directory")
    ]
    sha256: str
    text: str | None = None

    @property
    def without_text(self) -> Source:
        return Source(name=self.name, file=self.file, sha256=self.sha256)


class Program(Record):
    """A P4 program of the user's instead of ours. `compiled` is p4c's JSON. `parameters` are those of a policy in our
    program (docs/your-aqm.md), all of them, in ns if their names say so.
    """

    compiled: Source
    parameters: dict[str, NotNegative] | None = None
    # Of a whole program: its tables; its numbers of the sender's and the receiver's port; its addresses, and whose they
    # are; the scheduler of the bottleneck's queues. None: none; those of the lab; none; one queue.
    tables: Source | None = None
    ports: Several[NotNegative] | None = None
    addresses: dict[str, str] | None = None
    scheduler: str | None = None

    @property
    def without_texts(self) -> Program:
        update = {name: each.without_text for name in ("compiled", "tables") if (each := getattr(self, name))}
        return self.model_copy(update=update)


class Loss(Record):
    """Random loss behind the queue: the probabilities of link_dynamics.Loss."""

    to_bad: Chance = 0.0
    to_good: Chance = 1.0
    in_bad: Chance = 1.0
    in_good: Chance = 0.0

    @property
    def of_link(self) -> link_dynamics.Loss:
        return link_dynamics.Loss(*map(Fraction, (self.to_bad, self.to_good, self.in_bad, self.in_good)))


class Jitter(Record):
    """Random delay behind the queue, from 0 to `most_ns`."""

    most_ns: NotNegative
    distribution: Annotated[str, one_of(*link_dynamics.DISTRIBUTIONS)] = link_dynamics.DISTRIBUTIONS[0]


class Offloads(Record):
    """TSO, GSO and GRO of the hosts. A testbed's NICs have their own rate and waiting time."""

    nic_rate_bps: Positive | None = None
    coalesce_us: NotNegative | None = None


UNKNOWN_IF_RECORDED = frozenset(("policy", "threshold", "queue_id"))  # of packets seen before and behind a switch


class Taps(Record):
    """What two captures, before and behind a router, had in common."""

    pairs: int = 0  # packets that both have
    only_before: int = 0  # dropped, or lost by the capture behind the router
    only_behind: int = 0
    lost_behind: int = 0  # of only_before: acknowledged, and never sent again
    ambiguous: int = 0  # departures with several equal arrivals
    uncovered: int = 0  # left out: only one capture covers their time
    rate_bps: int | None = None  # of packets that left right behind another
    drift_ppm: float = 0.0  # of the clock behind the router against the one before it
    uncertainty_ns: float | None = None  # of the times in the queue; None: nothing bounds it
    steps_ns: Several[int] = ()  # by which either clock was set
    nat: Several[str] = ()  # fields that the router changed


class Link(Record):
    """What one capture of a link had. The depths of the run's queue are those of an endless queue at its rate."""

    packets: int = 0  # forward, the way of the queue: as on the link
    packets_back: int = 0
    neither: int = 0  # left out: between hosts of one side
    marked: int = 0  # forward, with CE, which they had before


class Imported(Record):
    """What an import knows of its source: postcard columns and kinds of data that the source lacks."""

    what: str
    notes: Several[str] = ()  # faults of the source
    unknown_postcard_fields: Several[str] = ()
    cell_bytes: Positive | None = None  # of a source with depths in cells
    lacks: Several[str] = ()
    taps: Taps | None = None
    link: Link | None = None


class Experiment(Record):
    spec_version: Annotated[int, Field(ge=SPEC_VERSION, le=SPEC_VERSION)]
    name: str | None = None
    target: Annotated[str, one_of(*TARGETS, IMPORTED)]
    clock: Annotated[str, one_of("real", "virtual")]
    switch: Annotated[str, one_of("process", "driver", "ns3")] | None = None
    generator: str | None = None  # of TCP flows
    delay: Annotated[str, one_of("switch", "tc")] | None = None
    mode: Annotated[str, one_of(*WATCHED_MODES)]
    groups: Several[AnyGroup]  # by `number`; groups of one number in the order long, finite, datagrams, programs
    rate_bps: Positive  # of a changing rate the first; of opportunities the mean, with packets of the MTU
    rate_pps: Positive | None = None  # the rate in full packets, rounded, on a target that counts packets
    rtt_ns: Positive  # the least of all groups: the unit of BUF, DURATION and WARMUP
    mtu_bytes: Mtu
    wire_bytes: Positive
    bdp_packets: Positive
    buffer_given: str | None = None
    buffer_packets: Positive  # the threshold; if it is in bytes, the nearest number of full packets
    threshold_bytes: Positive | None = None
    ecn_threshold_packets: Positive | None = None
    ecn_threshold_bytes: Positive | None = None
    duration_ns: Positive
    warmup_ns: NotNegative
    start_spread_ns: NotNegative | None = None
    seed: NotNegative | None = None
    reps: Positive | None = None
    tcp: TcpOptions | None = None  # None: Linux's defaults
    offloads: Offloads | None = None  # None: off
    congestion_sources: Several[Source] = ()
    cc_parameters: dict[str, str] | None = None  # algorithm.parameter -> value; None: the kernel's defaults
    drop_cost_permille: Positive | None = None
    rate_steps: Several[Step] | None = None  # of a rate that changes; or
    rate_trace: Source | None = None
    bdp_rate_bps: Positive | None = None  # converts BDPs and times of the buffer; None: rate_bps
    queue: str | None = None  # a Linux qdisc with tc's arguments: codel target 5ms; None: our queue
    p4: Program | None = None  # None: our program
    loss: Loss | None = None  # `loss` and `jitter` are behind the bottleneck's queue, towards the receiver
    jitter: Jitter | None = None
    taps: Literal[True] | None = None  # headers before and behind the queue are captured
    # Of one repetition.
    repetition: Positive = 1
    extra_delays_ns: Several[int] = ()  # of each flow, in addition to RTT; empty: none
    machines: dict[str, str] | None = None  # of each part of a run on several machines
    tc_at: str | None = None  # where netem delays, on a testbed
    imported: Imported | None = None

    @property
    def long(self) -> tuple[Long, ...]:
        return tuple(group for group in self.groups if isinstance(group, Long))

    @property
    def finite(self) -> tuple[Finite, ...]:
        return tuple(group for group in self.groups if isinstance(group, Finite))

    @property
    def datagrams(self) -> tuple[Datagrams, ...]:
        return tuple(group for group in self.groups if isinstance(group, Datagrams))

    @property
    def program(self) -> Programs | None:
        """The user's own programs."""
        return next((group for group in self.groups if isinstance(group, Programs)), None)

    @property
    def flow_groups(self) -> tuple[Long | Finite | Datagrams, ...]:
        """All groups but the user's programs, whose flows are not known beforehand."""
        return tuple(group for group in self.groups if not isinstance(group, Programs))

    @property
    def tcp_groups(self) -> tuple[Long | Finite, ...]:
        return (*self.long, *self.finite)

    @property
    def with_settings(self) -> tuple[Long | Finite | Programs, ...]:
        """All groups but datagrams."""
        return tuple(group for group in self.groups if not isinstance(group, Datagrams))

    @property
    def kinds(self) -> list[str]:
        """The kinds of all groups, in the order of TRAFFIC."""
        used = {group.kind for group in self.groups}
        return [kind for kind in TRAFFIC if kind in used]

    @property
    def traffic(self) -> str:
        """The kinds of all groups, with commas: long,finite."""
        return ",".join(self.kinds)

    @property
    def open_loop(self) -> Datagrams | None:
        """The traffic, if all of it is open-loop and of one group."""
        return self.groups[0] if len(self.groups) == 1 and isinstance(self.groups[0], Datagrams) else None

    @property
    def has_own_settings(self) -> bool:
        """Whether groups may have different settings."""
        return len({group.number for group in self.groups}) > 1

    @property
    def shared(self) -> Group:
        """The settings of all TCP flows; without any if groups have their own."""
        return Group() if self.has_own_settings else next(iter(self.with_settings), Group())

    @property
    def rtt_spread_ns(self) -> int | None:
        """The largest RTT less the least; None if it is unknown, as of an import."""
        if self.imported:
            return None
        return max((group.rtt_ns + (group.rtt_spread_ns or 0) for group in self.groups if group.rtt_ns),
                   default=self.rtt_ns) - self.rtt_ns  # fmt: skip

    @property
    def flows(self) -> int:
        """Number of long flows and of 5-tuples of open-loop traffic."""
        return sum(group.flows for group in self.long) + sum(group.flows for group in self.datagrams)

    def back_of(self, group: Group) -> int:
        """Propagation delay of the ACK direction of the group's flows. The data direction has the rest of the RTT."""
        return self._back_ns(group.ack_delay_ns)

    def _back_ns(self, ack_delay_ns: int | None) -> int:
        return self.rtt_ns - self.rtt_ns // 2 if ack_delay_ns is None else ack_delay_ns

    def forth_extra_ns(self, rtt_ns: int, ack_delay_ns: int | None) -> int:
        """A flow's delay in the data direction, minus the least of all flows. `ack_delay_ns` is its group's."""
        return rtt_ns - self._back_ns(ack_delay_ns) - self.least_forth_ns

    @property
    def least_back_ns(self) -> int:
        """Propagation delay of the link that all ACKs cross. Some groups have an additional delay."""
        return min(map(self.back_of, self.with_settings or self.groups))

    @property
    def least_forth_ns(self) -> int:
        """Propagation delay of the link that all data crosses. Some flows have an additional delay."""
        return min((group.rtt_ns or self.rtt_ns) - self.back_of(group) for group in self.with_settings or self.groups)

    @property
    def idle_rtt_ns(self) -> int:
        """RTT of a packet that belongs to no flow. With ACK delays of groups it can be shorter than every flow's."""
        return self.least_forth_ns + self.least_back_ns

    def ecn_of(self, group: Group) -> bool:
        """Whether the TCP flows of the group ask for ECN."""
        return group.ecn == "on" if group.ecn else self.mode in MARKING_MODES

    @property
    def with_ecn(self) -> bool:
        """Whether any TCP flow asks for ECN."""
        return any(map(self.ecn_of, self.with_settings))

    @property
    def pacing_of_host(self) -> str | None:
        """The kind of pacing, one for all groups that are paced."""
        return next((group.pacing for group in self.with_settings if group.pacing), None)

    def without_texts(self) -> Self:
        """Without the texts of the user's own files, which a run has as files."""
        texts = {
            "congestion_sources": tuple(source.without_text for source in self.congestion_sources),
            "rate_trace": self.rate_trace and self.rate_trace.without_text,
            "p4": self.p4 and self.p4.without_texts,
        }
        return self.model_copy(update={name: value for name, value in texts.items() if value})

    @property
    def rate_changes(self) -> bool:
        return bool(self.rate_steps or self.rate_trace)

    @cached_property
    def rate_schedule(self) -> link_dynamics.RateSchedule | None:
        """The rate from the start of WARMUP on, if it changes. Needs the text of a trace."""
        if self.rate_trace:
            return link_trace.parse(self.rate_trace.text or "")
        return link_dynamics.RateSchedule(self.rate_steps) if self.rate_steps else None

    @property
    def wire_share(self) -> Fraction:
        """Wire bits per bit of the schedule, with full packets."""
        of_ip = self.rate_schedule and self.rate_schedule.opportunities
        return Fraction(self.wire_bytes, self.mtu_bytes) if of_ip else Fraction(1)

    @cached_property
    def peak_bps(self) -> int:
        """The largest rate over one RTT, in wire bits/s."""
        schedule = self.rate_schedule
        return math.ceil(schedule.peak_bps(self.rtt_ns) * self.wire_share) if schedule else self.rate_bps

    @property
    def bdp_bps(self) -> int:
        """The rate of the BDP, in which the buffer is measured."""
        return self.bdp_rate_bps or self.rate_bps

    @property
    def no_theory(self) -> str | None:
        """Why the literature's predictions do not hold for this link; None if they may."""
        if self.rate_changes:
            return "the rate changes, and the predictions are for a constant rate"
        if self.p4:
            return "a policy of the user's drops packets, and by the predictions only a full buffer does"
        if self.queue and self.queue.split()[0] not in TAIL_DROP_QDISCS:
            return f"Linux's {self.queue.split()[0]} drops packets, and by the predictions only a full buffer does"
        return "the link loses packets, and by the predictions only a full buffer does" if self.loss else None

    @property
    def point(self) -> str:
        """A short stable name of the settings, the same for all repetitions: a digest of all values but defaults."""
        return hashlib.sha256(json.dumps(self.of_point(), sort_keys=True).encode()).hexdigest()[:12]

    def of_point(self) -> dict[str, Any]:
        """The settings that all repetitions of a point share. The texts of users' algorithms do not count, but their
        digests do.
        """
        return self.without_texts().model_dump(mode="json", exclude_defaults=True, exclude=NOT_OF_A_POINT)

    @property
    def frame_bytes(self) -> int:
        """A full frame as the switch counts it: Ethernet header included, FCS not."""
        return self.mtu_bytes + ETHERNET_BYTES

    @property
    def packet_ns(self) -> float:
        """Time of a full packet on the bottleneck link."""
        return self.wire_bytes * 8e9 / self.rate_bps

    @property
    def has_own_policy(self) -> bool:
        """Whether a policy of the user's decides about drops and marks, in our program."""
        return self.p4 is not None and self.p4.parameters is not None

    @property
    def has_own_program(self) -> bool:
        """Whether a whole program of the user's decides, which makes no postcards."""
        return self.p4 is not None and self.p4.parameters is None

    @property
    def is_recorded(self) -> bool:
        """Whether frames are recorded before and behind the switch, because nothing in it makes postcards."""
        return self.has_own_program and self.target != SOFT

    @property
    def is_watched_by_core(self) -> bool:
        """Whether the switch's core makes the postcards, because the P4 program does not decide about the queue."""
        return (self.has_own_program and not self.is_recorded) or self.queue is not None

    @property
    def qdisc_shapes(self) -> bool:
        """Whether the qdisc has a rate of its own, and lets the link idle."""
        return self.queue is not None and not SHAPING.isdisjoint(self.queue.split())

    @property
    def queue_rule(self) -> str:
        """The mode, and the user's policy before it; or the qdisc."""
        if self.queue:
            return f"Linux's {self.queue}"
        return f"{self.p4.compiled.name} and {self.mode}" if self.p4 else self.mode

    @property
    def jitter_ns(self) -> int:
        """The most delay that jitter adds to a packet."""
        return self.jitter.most_ns if self.jitter else 0

    @property
    def in_virtual_time(self) -> bool:
        return self.clock == "virtual"

    @property
    def switch_kind(self) -> str:
        """`driver`, `ns3` or `process`. A run that names no kind is of kind `process`."""
        return self.switch or "process"

    @property
    def is_simulated(self) -> bool:
        """Whether hosts and switch are ns-3's (simulator/): no rings, sockets or programs lose anything."""
        return self.switch == "ns3"

    @property
    def capabilities(self) -> Capabilities | None:
        """Those of the target; None for a switch of an unknown kind."""
        return TARGETS[self.target].capabilities if self.target in TARGETS else None

    @property
    def unknown_columns(self) -> frozenset[str]:
        """Postcard columns that the source lacks."""
        if self.is_recorded:
            return UNKNOWN_IF_RECORDED
        return frozenset(self.imported.unknown_postcard_fields if self.imported else ())
