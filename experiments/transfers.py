# SPDX-License-Identifier: MIT
"""Finite flows of an experiment: the words of a user (TRAFFIC, SIZES, LOAD, USERS, THINK), and their resolved form.
hosts/traffic/draw_words.py reads the words of distributions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from experiments.traffic_groups import DEFAULT_LOAD, OwnSettings
from hosts.traffic import draws
from hosts.traffic.draw_words import Drawn, in_base_units, read_distribution
from hosts.traffic.transfers import KINDS, PATH_OF, TransferGroup
from lib import units
from lib.frames import IPV4_BYTES, TCP_BYTES, TIMESTAMP_OPTION_BYTES

LONG, PROGRAM, OPEN_LOOP = "long", "program", "open-loop"
TRAFFIC = (LONG, *KINDS, PROGRAM, OPEN_LOOP)
FINITE_FLOW_S = 10  # bound of the mean time that a finite flow is open, if the load is below 1
MOST_TRANSFERS = 2_000_000  # in a run: each has a record and a row
DEFAULT_USERS = 100
DEFAULT_THINK = "exponential:1s"
DEFAULT_SIZES = "pareto:80kB:1.5"
# On the wire, data direction: a SYN with all its options, the ACK of the SYN-ACK, the FIN, the ACK of the peer's FIN.
# An upper bound: a flow longer than the first window sends its FIN with its last segment.
CONNECTION_WIRE_BYTES = 98 + 90 + 90 + 90
HEADER_BYTES = IPV4_BYTES + TCP_BYTES + TIMESTAMP_OPTION_BYTES
Wrong = Callable[[str, str], None]


@dataclass(frozen=True)
class Transfers(OwnSettings):
    """A group of finite flows, resolved. `sizes` (bytes) and `think` (ns) are JSON objects, as hosts/traffic/draws.py
    reads them. Kind finite has `load`, `arrivals` and `mean_gap_ns`; kind closed-loop has `users`, `think`,
    `mean_think_ns`, `think_from` and `path_of`.
    """

    kind: str
    cc: str
    sizes_given: str
    sizes: Mapping[str, Any]
    mean_size_bytes: float
    mean_wire_bytes: float  # of a flow, including CONNECTION_WIRE_BYTES
    load: float | None = None
    arrivals: str | None = None
    mean_gap_ns: float | None = None
    users: int = 0
    think: Mapping[str, Any] | None = None
    mean_think_ns: float | None = None
    think_from: str | None = None
    path_of: str | None = None  # None: as PATH_OF[0], and not in spec.yaml

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
        paths = {"path_of": self.path_of} if self.path_of else {}
        return {**common, "users": self.users, "think": self.think, "think_from": self.think_from, **paths}

    def group(self, first_server_port: int) -> TransferGroup:
        """The group as hosts/traffic draws it."""
        return TransferGroup(
            self.kind, self.cc, first_server_port, draws.distribution(dict(self.sizes)), self.arrivals or "poisson",
            self.mean_gap_ns or 1.0, self.users, draws.distribution(dict(self.think)) if self.think else None,
            self.think_from or "end", path_of=self.path_of or PATH_OF[0],
        )  # fmt: skip


def read_traffic(value: object) -> str:
    """Reads one kind, or several with commas (long,finite). Returns them in the order of TRAFFIC. Raises ValueError."""
    words = [word.strip().lower() for word in value.split(",")] if isinstance(value, str) else []
    if not words or any(word not in TRAFFIC for word in words):
        raise ValueError(f"is not a kind of traffic; allowed: {', '.join(TRAFFIC)}, or several as in long,finite")
    if len(set(words)) < len(words):
        raise ValueError("names a kind twice; allowed: each once")
    if {OPEN_LOOP, PROGRAM} <= set(words):
        raise ValueError(f"mixes {OPEN_LOOP} with {PROGRAM}; allowed: either of them, alone or beside TCP flows")
    return ",".join(kind for kind in TRAFFIC if kind in words)


def kinds(traffic: str) -> list[str]:
    return traffic.split(",")


def finite_kinds(traffic: str) -> list[str]:
    return [kind for kind in kinds(traffic) if kind in KINDS]


def resolve(
    spec: Any, cc: str | None, wire_bytes: int, wrong: Wrong, own: Mapping[str, Any] = MappingProxyType({})
) -> list[Transfers]:
    """The groups of finite flows of `spec` (experiments/spec.py). Without FINITE_CC their congestion control is `cc`.
    If CC names several, `cc` is None, and a missing FINITE_CC is an error: calls `wrong` with the key and the problem.
    `own` are settings of the group.
    """
    names = finite_kinds(spec.traffic)
    if not names:
        return []
    mss_bytes = spec.mtu - HEADER_BYTES
    cc = spec.finite_cc or cc
    if cc is None:
        wrong("finite_cc", "is missing; CC names several; allowed: the congestion control of the finite flows")
        cc = "cubic"
    sizes_given = spec.sizes if isinstance(spec.sizes, Drawn) else read_distribution("bytes", "packets")(DEFAULT_SIZES)
    sizes = in_base_units(sizes_given, mss_bytes)
    drawn = draws.distribution(sizes)
    wire = drawn.mean + drawn.mean_pieces(mss_bytes) * (wire_bytes - mss_bytes) + CONNECTION_WIRE_BYTES
    common = (cc, sizes_given.text, sizes, drawn.mean, wire)
    groups = []
    for kind in names:
        if kind == "finite":
            load = float(DEFAULT_LOAD if spec.load is None else spec.load)
            gap_ns = 8 * wire * 1e9 / (load * units.whole(spec.rate))
            group = Transfers(kind, *common, load=load, arrivals=spec.arrivals or "poisson", mean_gap_ns=gap_ns, **own)
        else:
            think = in_base_units(spec.think or read_distribution("time")(DEFAULT_THINK), mss_bytes)
            group = Transfers(
                kind, *common, users=spec.users or DEFAULT_USERS, think=think,
                mean_think_ns=draws.distribution(think).mean, think_from=spec.think_from or "end",
                path_of=None if spec.path_of == PATH_OF[0] else spec.path_of, **own,
            )  # fmt: skip
        groups.append(group)
    return groups


def refuse_too_many(groups: tuple[Transfers, ...], traffic_ns: int, wrong: Wrong) -> None:
    """Calls `wrong` if all groups together make more flows than a run can have."""
    flows = sum(group.flows(traffic_ns) for group in groups)
    if flows <= MOST_TRANSFERS:
        return
    problem = f"{flows:,.0f} flows in the {traffic_ns / 1e9:g} s of traffic; allowed: {MOST_TRANSFERS:,} in a run"
    if groups[0].number is not None:
        wrong("groups", f"makes about {problem}")
    else:
        wrong("sizes" if groups[0].kind == "finite" else "users", f"makes about {problem}")


# Key -> the kinds of traffic that have the key.
KEYS_OF_KINDS = {
    "flows": (LONG, OPEN_LOOP),
    "start_spread": (LONG,),
    "rtt_spread": (LONG, *KINDS),
    "rtts": (LONG, *KINDS),
    "access_links": (LONG, *KINDS),
    "generator": (LONG, *KINDS),
    "cc": (LONG, *KINDS, PROGRAM),
    "finite_cc": KINDS,
    "load": ("finite", OPEN_LOOP),
    "sizes": (*KINDS, OPEN_LOOP),
    "arrivals": ("finite", OPEN_LOOP),
    "users": ("closed-loop",),
    "think": ("closed-loop",),
    "think_from": ("closed-loop",),
    "path_of": ("closed-loop",),
    "servers": KINDS,
}


def refuse_keys(traffic: str, given: Mapping[str, object], wrong: Wrong) -> None:
    """Refuses keys that have no meaning with this traffic."""
    for key, of_kinds in KEYS_OF_KINDS.items():
        if key in given and not set(kinds(traffic)) & set(of_kinds):
            wrong(key, f"has no meaning with TRAFFIC={traffic}; allowed: with TRAFFIC={' or '.join(of_kinds)} only")
