# SPDX-License-Identifier: MIT
"""The groups of an experiment's traffic: long flows, finite flows, datagrams, programs. All values are in SI units."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from hosts.traffic import draws, transfers
from hosts.traffic.open_loop import MOST_FLOW_PACKETS, SIZES, is_sizes
from hosts.traffic.transfers import KINDS, PATH_OF, TransferGroup
from model.record import NotNegative, Positive, Record, Several, checked, one_of

LONG, CLOSED_LOOP, OPEN_LOOP, PROGRAM = "long", "closed-loop", "open-loop", "program"
TRAFFIC = (LONG, *KINDS, PROGRAM, OPEN_LOOP)
FINITE_FLOW_S = 10  # bound of the mean time that a finite flow is open, if the load is below 1


def _drawable(values: dict[str, Any]) -> dict[str, Any]:
    draws.distribution(values)
    return values


# A distribution with its parameters, as hosts/traffic/draws.py reads it.
Distribution = Annotated[dict[str, str | int | float | list[list[int | float]]], AfterValidator(_drawable)]
Load = Annotated[float, Field(gt=0, lt=1e6)]
PacketSizes = Annotated[
    str, checked(is_sizes, f"{', '.join(SIZES)}, or bursts:<n>p with n from 1 to {MOST_FLOW_PACKETS}")
]


class Group(Record):
    """The settings of a group. None: there is no such setting, or the source does not say, as of an import.

    `number` is the place of the group's description: groups of one number have the same settings and share their paths
    and access links. A spec without `groups` describes all its traffic at place 0. `start_ns` and `stop_ns` count from
    the start of the traffic; None: the group begins and ends with it. Datagrams have no other settings.
    """

    number: NotNegative = 0
    start_ns: Positive | None = None
    stop_ns: NotNegative | None = None
    rtt_ns: Positive | None = None  # the least
    rtt_spread_ns: NotNegative | None = None  # the largest less the least
    rtts_ns: Several[Positive] | None = None  # of classes of flows
    ack_delay_ns: NotNegative | None = None  # propagation delay of the ACK direction; None: half of the least RTT
    access_bps: Positive | None = None  # rate of each long flow's own link, or of each link that flows share
    access_links: Positive | None = None  # number of links that flows share
    servers: Positive | None = None  # number of paths of finite flows; None: one for each pair of RTT and access link
    window_packets: Positive | None = None
    pacing: str | None = None
    ecn: str | None = None  # None: on only with a marking MODE
    initcwnd: Positive | None = None  # None, also in the next field: as the run's `tcp`
    acks: str | None = None

    @property
    def times_ns(self) -> dict[str, int]:
        """The given ones of `start_ns` and `stop_ns`."""
        return {name: ns for name in ("start_ns", "stop_ns") if (ns := getattr(self, name)) is not None}


class Long(Group):
    """Long flows that share a congestion control. `flows` is their number."""

    kind: Literal["long"] = "long"

    cc: str
    flows: NotNegative


class Finite(Group):
    """Finite flows. `sizes` are bytes, `think` ns. Kind finite has `load`, `arrivals` and `mean_gap_ns`; kind
    closed-loop has `users`, `think`, `mean_think_ns`, `think_from` and `path_of`.
    """

    kind: Annotated[str, one_of(*KINDS)]
    cc: str
    sizes_given: str
    sizes: Distribution
    mean_size_bytes: float
    mean_wire_bytes: float  # of a flow, including its handshake and end
    load: float | None = None
    arrivals: str | None = None
    mean_gap_ns: float | None = None
    users: NotNegative = 0
    think: Distribution | None = None
    mean_think_ns: float | None = None
    think_from: str | None = None
    path_of: str = PATH_OF[0]

    def flows(self, duration_ns: int) -> float:
        """Number of flows that begin in `duration_ns`, if the network takes no time."""
        if self.mean_gap_ns is not None:
            return duration_ns / self.mean_gap_ns
        assert self.mean_think_ns is not None
        return self.users * duration_ns / self.mean_think_ns

    def open_flows(self, duration_ns: int) -> float:
        """The most flows that are open at the same time. With a load above 1 the excess flows stay open."""
        lasting = self.flows(min(FINITE_FLOW_S * 10**9, duration_ns))
        excess = max(0.0, 1 - 1 / self.load) * self.flows(duration_ns) if self.load else 0.0
        return max(lasting, excess) if self.think_from != "end" else self.users

    def offered_bps(self) -> float:
        """Bits per second on the wire that the group offers, if the network takes no time."""
        return self.flows(10**9) * 8 * self.mean_wire_bytes

    def plan(self, first_server_port: int, sources: tuple[str, ...]) -> dict[str, Any]:
        """The group in a plan of hosts/traffic."""
        common = {"kind": self.kind, "cc": self.cc, "first_server_port": first_server_port, "sizes": self.sizes}
        if sources:
            common["sources"] = list(sources)
        if self.kind == "finite":
            return {**common, "arrivals": self.arrivals, "mean_gap_ns": self.mean_gap_ns}
        paths = {"path_of": self.path_of} if self.path_of != PATH_OF[0] else {}
        return {**common, "users": self.users, "think": self.think, "think_from": self.think_from, **paths}

    def group(self, first_server_port: int) -> TransferGroup:
        """The group as hosts/traffic draws it."""
        return transfers.parse(self.plan(first_server_port, ()) | self.times_ns, "")


class Datagrams(Group):
    """Open-loop traffic. `flows` is its number of 5-tuples, `load` its share of RATE."""

    kind: Literal["open-loop"]
    cc: ClassVar[None] = None

    flows: Positive
    load: Load
    sizes: PacketSizes
    arrivals: str


class Programs(Group):
    """The user's own server and client, and the default congestion control of their TCP."""

    kind: Literal["program"]
    server: Several[str] = ()
    client: Several[str] = ()
    server_at: str = "sender"
    directory: str = ""
    port: Positive = 1
    cc: str | None = None


def _class_of(group: Any) -> str:
    kind = group.get("kind", LONG) if isinstance(group, dict) else getattr(group, "kind", "")
    return "finite" if kind in KINDS else str(kind)


AnyGroup = Annotated[
    Annotated[Long, Tag(LONG)] | Annotated[Finite, Tag("finite")] | Annotated[Datagrams, Tag(OPEN_LOOP)]
    | Annotated[Programs, Tag(PROGRAM)],
    Discriminator(
        _class_of, custom_error_type="kind", custom_error_message=f"has a kind that is not one of {', '.join(TRAFFIC)}"
    ),
]  # fmt: skip
