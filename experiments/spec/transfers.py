# SPDX-License-Identifier: MIT
"""The words of traffic (TRAFFIC, RTTS), and finite flows of an experiment made of words (SIZES, LOAD, USERS, THINK).
hosts/traffic/draw_words.py reads the words of distributions.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from hosts.traffic import draws
from hosts.traffic.draw_words import Drawn, in_base_units, read_distribution
from hosts.traffic.transfers import KINDS
from lib.frames import IPV4_BYTES, TCP_BYTES, TIMESTAMP_OPTION_BYTES
from lib.quantities import Time
from model.groups import LONG, OPEN_LOOP, PROGRAM, TRAFFIC

DEFAULT_LOAD = Fraction(4, 5)
FINITE, CLOSED_LOOP = KINDS
TCP = (LONG, *KINDS)
MOST_TRANSFERS = 2_000_000  # in a run: each has a record and a row
MOST_RTTS = 64
MOST_ACCESS_LINKS = 1000  # the switch has more: CORE_SHARED_LINKS
MOST_PATHS = 1000  # the traffic program accepts more: MOST_SOURCES of hosts/traffic/transfers.py
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


def read_rtts(read_one: Callable[[object], Time]) -> Callable[[object], tuple[Time, ...]]:
    """A list of RTTs; `read_one` reads each."""

    def read(value: object) -> tuple[Time, ...]:
        words = value.split(",") if isinstance(value, str) else []
        if not 2 <= len(words) <= MOST_RTTS:
            raise ValueError(f"is not a list of RTTs; allowed: 2 to {MOST_RTTS} with commas, as in 30ms,50ms,120ms")
        result = []
        for word in map(str.strip, words):
            try:
                result.append(read_one(word))
            except ValueError as error:
                raise ValueError(f"has {word!r}, which {error}") from None
        return tuple(result)

    return read


def resolve(keys: Any, kind: str, rate_bps: int, wire_bytes: int) -> dict[str, Any]:
    """The values of Finite of this kind, without settings and congestion control. `keys` is a Spec of
    experiments/spec/keys.py, which imports this module.
    """
    mss_bytes = keys.mtu - HEADER_BYTES
    given = keys.sizes if isinstance(keys.sizes, Drawn) else read_distribution("bytes", "packets")(DEFAULT_SIZES)
    sizes = in_base_units(given, mss_bytes)
    drawn = draws.distribution(sizes)
    wire = drawn.mean + drawn.mean_pieces(mss_bytes) * (wire_bytes - mss_bytes) + CONNECTION_WIRE_BYTES
    common = {
        "kind": kind, "sizes_given": given.text, "sizes": sizes, "mean_size_bytes": drawn.mean, "mean_wire_bytes": wire,
    }  # fmt: skip
    if kind == FINITE:
        load = float(DEFAULT_LOAD if keys.load is None else keys.load)
        gap_ns = 8 * wire * 1e9 / (load * rate_bps)
        return common | {"load": load, "arrivals": keys.arrivals or "poisson", "mean_gap_ns": gap_ns}
    think = in_base_units(keys.think or read_distribution("time")(DEFAULT_THINK), mss_bytes)
    return common | {
        "users": keys.users or DEFAULT_USERS, "think": think, "mean_think_ns": draws.distribution(think).mean,
        "think_from": keys.think_from or "end", **({"path_of": keys.path_of} if keys.path_of else {}),
    }  # fmt: skip
