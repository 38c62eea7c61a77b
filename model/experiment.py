# SPDX-License-Identifier: MIT
"""One experiment with every parameter set, in SI units: the content of spec.yaml. Only this model reads and writes it.

None: there is no such setting, or the source does not say, as of an import. Fields that are not given are not written:
the names of a sweep's points follow from the given fields (runs/run_table.py), so a new field renames no point.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from controlplane.policy import MARKING_MODES, WATCHED_MODES
from controlplane.switch import Capabilities
from controlplane.targets import TARGETS
from hosts.tune.tcp_options import OPTIONS
from lib.frames import LEAST_IP_BYTES, MOST_IP_BYTES
from model.groups import LONG, OPEN_LOOP, Datagrams, Finite, Group, Load, Long, PacketSizes
from model.record import NotNegative, Positive, Record, Several, checked, one_of

SPEC_VERSION = 1
SOFT, IMPORTED = "soft", "imported"  # targets: our own switch, and a switch of an unknown kind
PROGRAM = "program"
OF_A_REPETITION = {
    "repetition", "extra_delays_ns", "idle_rtt_ns", "paths", "link_of_flows", "links_bps", "machines", "tc_at",
}  # fmt: skip
Mtu = Annotated[int, Field(ge=LEAST_IP_BYTES, le=MOST_IP_BYTES)]
TcpOptions = Annotated[
    dict[str, int | str], checked(lambda values: values.keys() == OPTIONS.keys(), f"a mapping of {', '.join(OPTIONS)}")
]


class Source(Record):
    """A user's own congestion control. `text` is a file of its own beside spec.yaml."""

    name: str
    file: str
    sha256: str
    text: str | None = None


class Offloads(Record):
    """TSO, GSO and GRO of the hosts. A testbed's NICs have their own rate and waiting time."""

    nic_rate_bps: Positive | None = None
    coalesce_us: NotNegative | None = None


class Programs(Record):
    """The user's own server and client, and the default congestion control of their TCP."""

    server: Several[str] = ()
    client: Several[str] = ()
    server_at: str = "sender"
    directory: str = ""
    port: Positive = 1
    cc: str | None = None


class Path(Record):
    """A path of finite flows, a source address of the sender. `rtt_ns` is without queues. `access_link` is the number
    of the shared link, from 1; 0: none. `ack_delay_ns` is the group's; None: the run's.
    """

    src_addr: str
    rtt_ns: NotNegative
    access_link: NotNegative
    ack_delay_ns: NotNegative | None = None
    access_bps: Positive | None = None  # of the link; None: the run's


class Imported(Record):
    """What an import knows of its source: postcard columns and kinds of data that the source lacks."""

    what: str
    notes: Several[str] = ()  # faults of the source
    unknown_postcard_fields: Several[str] = ()
    cell_bytes: Positive | None = None  # of a source with depths in cells
    lacks: Several[str] = ()


class Experiment(Record):
    spec_version: Annotated[int, Field(ge=SPEC_VERSION, le=SPEC_VERSION)] = SPEC_VERSION
    name: str | None = None
    target: Annotated[str, one_of(*TARGETS, IMPORTED)] = SOFT
    clock: Annotated[str, one_of("real", "virtual")] = "real"
    switch: Annotated[str, one_of("process", "driver", "ns3")] | None = None
    traffic: str = LONG  # one kind, or several with commas
    generator: str | None = None  # of TCP flows
    delay: Annotated[str, one_of("switch", "tc")] | None = None
    mode: Annotated[str, one_of(*WATCHED_MODES)]
    long: Several[Long] = Field(alias="groups")
    rate_bps: Positive
    rate_pps: Positive | None = None  # the rate in full packets, rounded, on a target that counts packets
    rtt_ns: Positive
    rtt_spread_ns: NotNegative | None = None
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
    load: Load | None = None  # `load`, `sizes`, `arrivals` and `datagram_flows` are of open-loop traffic alone
    sizes: PacketSizes | None = None
    arrivals: str | None = None
    datagram_flows: Positive | None = None
    finite: Several[Finite] = Field((), alias="transfers")
    seed: NotNegative | None = None
    reps: Positive | None = None
    rtts_ns: Several[Positive] | None = None  # of classes of flows; None: RTT and RTT_SPREAD apply
    access_bps: Positive | None = None  # rate of each long flow's own link, or of each link that flows share
    access_links: Positive | None = None  # number of links that flows share
    servers: Positive | None = None  # number of paths of finite flows; None: one for each pair of RTT and access link
    tcp: TcpOptions | None = None  # None: Linux's defaults
    offloads: Offloads | None = None  # None: off
    pacing: str | None = None
    window_packets: Positive | None = None
    congestion_sources: Several[Source] | None = None
    cc_parameters: dict[str, str] | None = None  # algorithm.parameter -> value; None: the kernel's defaults
    ecn: str | None = None  # of TCP; None: on only with a marking MODE
    ack_delay_ns: NotNegative | None = None  # propagation delay of the ACK direction; None: half of the RTT
    program: Programs | None = None
    drop_cost_permille: Positive | None = None
    datagrams: Several[Datagrams] = ()  # groups of open-loop traffic of a file's `groups`, or beside TCP flows
    # Of one repetition.
    repetition: Positive = 1
    extra_delays_ns: Several[int] = ()  # of each flow, in addition to RTT; empty: none
    # RTT of a packet that belongs to no flow. With ACK delays of groups it can be shorter than every flow's RTT.
    idle_rtt_ns: NotNegative = Field(default_factory=lambda given: given["rtt_ns"])
    paths: Several[Path] = ()
    link_of_flows: Several[NotNegative] = ()  # the number of each long flow's shared link, from 1; 0: none
    links_bps: Several[Positive] = ()
    machines: dict[str, str] | None = None  # of each part of a run on several machines
    tc_at: str | None = None  # where netem delays, on a testbed
    imported: Imported | None = None

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if self.traffic == OPEN_LOOP and not self.datagrams and self.open_loop is None:
            raise ValueError("traffic open-loop needs load, sizes, arrivals and datagram_flows")
        if max(self.link_of_flows, default=0) > len(self.links_bps):
            raise ValueError("link_of_flows must be indices into links_bps: 1 is the first link, 0 means no link")
        return self

    @property
    def groups(self) -> tuple[Long | Finite | Datagrams, ...]:
        """All groups, by `number`. Groups without a number come in the order long, finite, datagrams."""
        return tuple(sorted((*self.long, *self.finite, *self.datagrams), key=lambda group: group.number or 0))

    @property
    def tcp_groups(self) -> tuple[Long | Finite, ...]:
        return (*self.long, *self.finite)

    @property
    def open_loop(self) -> Datagrams | None:
        """The traffic, if all of it is open-loop and of one group."""
        if self.datagram_flows is None or self.load is None or self.sizes is None or self.arrivals is None:
            return None
        return Datagrams(flows=self.datagram_flows, load=self.load, sizes=self.sizes, arrivals=self.arrivals)

    @property
    def all_datagrams(self) -> tuple[Datagrams, ...]:
        """The groups of open-loop traffic, beside others or alone."""
        return (*self.datagrams, *([self.open_loop] if self.open_loop else []))

    @property
    def flows(self) -> int:
        """Number of long flows and of 5-tuples of open-loop traffic."""
        return sum(group.flows for group in self.long) + sum(group.flows for group in self.all_datagrams)

    def ecn_of(self, group: Group) -> bool:
        """Whether the TCP flows of the group ask for ECN."""
        ecn = group.ecn or self.ecn
        return ecn == "on" if ecn else self.mode in MARKING_MODES

    def without_texts(self) -> Self:
        """Without the texts of the users' own congestion controls, which a run has as files."""
        if self.congestion_sources is None:
            return self
        sources = (Source(name=each.name, file=each.file, sha256=each.sha256) for each in self.congestion_sources)
        return self.model_copy(update={"congestion_sources": tuple(sources)})

    @property
    def packet_ns(self) -> float:
        """Time of a full packet on the bottleneck link."""
        return self.wire_bytes * 8e9 / self.rate_bps

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
        return frozenset(self.imported.unknown_postcard_fields if self.imported else ())
