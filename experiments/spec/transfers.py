# SPDX-License-Identifier: MIT
"""Finite flows of an experiment: the words of a user (TRAFFIC, SIZES, LOAD, USERS, THINK), and their resolved form.
hosts/traffic/draw_words.py reads the words of distributions.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from hosts.traffic import draws
from hosts.traffic.draw_words import Drawn, in_base_units, read_distribution
from hosts.traffic.transfers import KINDS
from lib.frames import IPV4_BYTES, TCP_BYTES, TIMESTAMP_OPTION_BYTES
from lib.keys import Wrong
from model.groups import LONG, OPEN_LOOP, PROGRAM, TRAFFIC, Finite

DEFAULT_LOAD = Fraction(4, 5)
FINITE, CLOSED_LOOP = KINDS
TCP = (LONG, *KINDS)
MOST_TRANSFERS = 2_000_000  # in a run: each has a record and a row
DEFAULT_USERS = 100
DEFAULT_THINK = "exponential:1s"
DEFAULT_SIZES = "pareto:80kB:1.5"
# On the wire, data direction: a SYN with all its options, the ACK of the SYN-ACK, the FIN, the ACK of the peer's FIN.
# An upper bound: a flow longer than the first window sends its FIN with its last segment.
CONNECTION_WIRE_BYTES = 98 + 90 + 90 + 90
HEADER_BYTES = IPV4_BYTES + TCP_BYTES + TIMESTAMP_OPTION_BYTES


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


def resolve(spec: Any, cc: str | None, wire_bytes: int, wrong: Wrong, settings: Mapping[str, Any]) -> list[Finite]:
    """The groups of finite flows of `spec` (experiments/spec/keys.py). Without FINITE_CC their congestion control is
    `cc`. If CC names several, `cc` is None, and a missing FINITE_CC is an error: calls `wrong` with the key and the
    problem. `settings` are those of Group.
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
    common = {
        "cc": cc, "sizes_given": sizes_given.text, "sizes": sizes,
        "mean_size_bytes": drawn.mean, "mean_wire_bytes": wire,
    }  # fmt: skip
    groups = []
    for kind in names:
        if kind == "finite":
            load = float(DEFAULT_LOAD if spec.load is None else spec.load)
            gap_ns = 8 * wire * 1e9 / (load * spec.rate.bps)
            of_kind = {"load": load, "arrivals": spec.arrivals or "poisson", "mean_gap_ns": gap_ns}
        else:
            think = in_base_units(spec.think or read_distribution("time")(DEFAULT_THINK), mss_bytes)
            of_kind = {
                "users": spec.users or DEFAULT_USERS, "think": think, "mean_think_ns": draws.distribution(think).mean,
                "think_from": spec.think_from or "end", **({"path_of": spec.path_of} if spec.path_of else {}),
            }  # fmt: skip
        groups.append(Finite.model_validate({"kind": kind, **common, **of_kind, **settings}))
    return groups


def refuse_too_many(groups: tuple[Finite, ...], traffic_ns: int, wrong: Wrong) -> None:
    """Calls `wrong` if all groups together make more flows than a run can have."""
    flows = sum(group.flows((group.stop_ns or traffic_ns) - (group.start_ns or 0)) for group in groups)
    if flows <= MOST_TRANSFERS:
        return
    problem = f"{flows:,.0f} flows in the {traffic_ns / 1e9:g} s of traffic; allowed: {MOST_TRANSFERS:,} in a run"
    if len({group.number for group in groups}) > 1:
        wrong("groups", f"makes about {problem}")
    else:
        wrong("sizes" if groups[0].kind == "finite" else "users", f"makes about {problem}")
