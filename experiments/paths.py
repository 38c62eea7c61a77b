# SPDX-License-Identifier: MIT
"""Paths of finite flows: classes of RTTs (RTTS, RTT_SPREAD) and shared access links (ACCESS_LINKS).

The switch cannot know 2,000,000 5-tuples beforehand. So a path is a source address of the sender, with a delay and an
access link in the switch; the addresses of one access link share it. Flow or user k takes path k mod their number, in
an order that SEED deals (hosts/traffic/transfers.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from experiments.transfers import LONG, OPEN_LOOP, finite_kinds, kinds
from lib import units
from lib.units import Quantity

SPREAD_CLASSES = 16  # of RTT_SPREAD, for finite flows
MOST_RTTS = 64
MOST_ACCESS_LINKS = 64  # CORE_SHARED_LINKS of the switch
MOST_PATHS = 200  # addresses of one subnet
ADDRESS_PREFIX, FIRST_ADDRESS = "10.77.0.", 16  # beside the addresses of experiments/topology.py


class Path(NamedTuple):
    """`access_link` is its number, from 1; 0: none."""

    src_addr: str
    rtt_ns: int
    access_link: int


def read_rtts(read_one: Callable[[object], Quantity]) -> Callable[[object], tuple[Quantity, ...]]:
    """A list of RTTs; `read_one` reads each."""

    def read(value: object) -> tuple[Quantity, ...]:
        words = value.split(",") if isinstance(value, str) else []
        if not 2 <= len(words) <= MOST_RTTS:
            raise ValueError(f"is no list of RTTs; allowed: 2 to {MOST_RTTS} with commas, as in 30ms,50ms,120ms")
        result = []
        for word in map(str.strip, words):
            try:
                result.append(read_one(word))
            except ValueError as error:
                raise ValueError(f"has {word!r}, which {error}") from None
        return tuple(result)

    return read


def rtts_ns(spec: Any) -> list[int] | None:
    """RTTS as given. Here and below, `spec` is of experiments/spec.py, which imports this module."""
    return None if spec.rtts is None else [units.whole(rtt) for rtt in spec.rtts]


def refuse(spec: Any, given: Mapping[str, object], wrong: Callable[[str, str], None]) -> None:
    """Calls `wrong` for keys that contradict each other."""
    if spec.rtts is not None:
        for key in ("rtt", "rtt_spread"):
            if key in given:
                wrong(
                    "rtts",
                    f"has every RTT, {key.upper()} is given too; allowed: one of them (RTT is the least of RTTS)",
                )
    if spec.access_links is None:
        return
    if spec.access is None:
        wrong("access_links", "needs their rate; allowed: with ACCESS=25mbit or another rate")
    classes = len(spec.rtts) if spec.rtts else SPREAD_CLASSES if spec.rtt_spread.amount else 1
    if classes * spec.access_links > MOST_PATHS:
        wrong("access_links", f"and {classes} RTTs make {classes * spec.access_links} paths; allowed: {MOST_PATHS}")


def refuse_access(spec: Any, wrong: Callable[[str, str], None]) -> None:
    """Calls `wrong` if the experiment cannot have access links. Targets without links: capabilities.py."""
    if spec.access is None:
        return
    if spec.traffic == OPEN_LOOP:
        wrong("access", "would change the drawn arrivals that TRAFFIC=open-loop is held against theory with; allowed: "
              "with TCP flows only")  # fmt: skip
    elif LONG in kinds(spec.traffic) and finite_kinds(spec.traffic):
        wrong("access", "is a link of each long flow, or ACCESS_LINKS of finite flows; allowed: with long flows alone, "
              "or without long flows")  # fmt: skip
    elif finite_kinds(spec.traffic) and spec.access_links is None:
        wrong("access", f"is the rate of links that finite flows share, their number is missing; allowed: with "
              f"ACCESS_LINKS=1 to {MOST_ACCESS_LINKS}")  # fmt: skip
    elif spec.switch == "ns3":
        wrong("access", "is not simulated with SWITCH=ns3; allowed: process, driver")


def paths(spec: Any) -> tuple[Path, ...]:
    """The paths of the finite flows of `spec` (experiments/resolve.py); none if all have RTT and no access link."""
    if not spec.transfers:
        return ()
    rtts = spec.rtts_ns or [spec.rtt_ns]
    if spec.rtts_ns is None and spec.rtt_spread_ns:
        steps = SPREAD_CLASSES - 1
        rtts = [spec.rtt_ns + spec.rtt_spread_ns * step // steps for step in range(SPREAD_CLASSES)]
    if len(rtts) == 1 and not spec.access_links:
        return ()
    links = range(1, spec.access_links + 1) if spec.access_links else (0,)
    pairs = [(rtt_ns, link) for rtt_ns in rtts for link in links]
    return tuple(Path(f"{ADDRESS_PREFIX}{FIRST_ADDRESS + number}", *pair) for number, pair in enumerate(pairs))
