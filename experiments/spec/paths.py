# SPDX-License-Identifier: MIT
"""Paths of finite flows: classes of RTTs (RTTS, RTT_SPREAD) and shared access links (ACCESS_LINKS). Long flows share
access links, too: long flow k takes link k mod the number of links. With `groups`, k counts the flows of a group.

The switch cannot know 2,000,000 5-tuples beforehand. So a path is a source address of the sender, with a delay and an
access link in the switch; several addresses can share an access link. By default each pair of RTT and link is a path.
SERVERS gives the number of paths instead. Finite flow or user k takes path k mod this number, in an order that SEED
deals; with PATH_OF=transfer each flow of a user draws a path (hosts/traffic/transfers.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ipaddress import IPv4Address
from typing import Any

from experiments.spec.transfers import LONG, finite_kinds, kinds
from lib.keys import Wrong
from lib.quantities import Time
from model.experiment import Path
from model.record import given_only

SPREAD_CLASSES = 16  # of RTT_SPREAD, for finite flows
MOST_RTTS = 64
MOST_ACCESS_LINKS = 1000  # the switch has more: CORE_SHARED_LINKS
MOST_PATHS = 1000  # the traffic program accepts more: MOST_SOURCES of hosts/traffic/transfers.py
FIRST_ADDRESS = IPv4Address("10.77.0.16")  # beside the addresses of experiments/spec/topology.py


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


def rtts_ns(spec: Any) -> list[int] | None:
    """RTTS as given. In this function, `refuse` and `refuse_access`, `spec` is a Spec of experiments/spec/keys.py,
    which imports this module; in all other functions it is a Resolved (experiments/spec/resolved.py).
    """
    return None if spec.rtts is None else [rtt.ns for rtt in spec.rtts]


def refuse(spec: Any, given: Mapping[str, object], wrong: Wrong) -> None:
    """Calls `wrong` for keys that contradict each other."""
    if spec.rtts is not None:
        for key in ("rtt", "rtt_spread"):
            if key in given:
                wrong(
                    "rtts",
                    f"has every RTT; {key.upper()} is given too; allowed: one of them (RTT is the least of RTTS)",
                )
    classes = len(spec.rtts) if spec.rtts else SPREAD_CLASSES if spec.rtt_spread.amount else 1
    least = max(classes, spec.access_links or 1)
    if spec.servers is not None and finite_kinds(spec.traffic) and spec.servers < least:
        wrong("servers", f"leaves RTTs or access links without a path; allowed: {least} to {MOST_PATHS}, for "
              f"{classes} RTTs and {spec.access_links or 'no'} access links")  # fmt: skip
    if spec.access_links is None:
        return
    if spec.access is None:
        wrong("access_links", "needs the links' rate; allowed: with ACCESS=25mbit or another rate")
    if finite_kinds(spec.traffic) and spec.servers is None and classes * spec.access_links > MOST_PATHS:
        wrong("access_links", f"and {classes} RTTs make {classes * spec.access_links} paths; allowed: {MOST_PATHS}, or "
              "a number of SERVERS that share RTTs and links")  # fmt: skip


def refuse_access(spec: Any, wrong: Wrong) -> None:
    """Calls `wrong` if the experiment cannot have access links. Targets without links: capabilities.py."""
    if spec.access is None:
        return
    if LONG in kinds(spec.traffic) and finite_kinds(spec.traffic) and spec.access_links is None:
        wrong("access", "would be a link of each long flow, and finite flows share links; allowed: with ACCESS_LINKS, "
              "with only long flows, or a file with groups")  # fmt: skip
    elif finite_kinds(spec.traffic) and spec.access_links is None:
        wrong("access", f"is the rate of links that finite flows share; their number is missing; allowed: with "
              f"ACCESS_LINKS=1 to {MOST_ACCESS_LINKS}")  # fmt: skip


def paths(spec: Any) -> tuple[Path, ...]:
    """All paths of the finite flows of `spec`."""
    return tuple(path for group in _by_group(spec) for path in group)


def of_group(spec: Any, number: int) -> tuple[Path, ...]:
    """The paths of group `number` of `spec.finite`. Without `groups` all groups share their paths. Empty if all
    flows have the run's RTT and no access link.
    """
    by_group = _by_group(spec)
    return by_group[number] if len(by_group) > 1 else by_group[0]


def refuse_groups(spec: Any, wrong: Wrong) -> None:
    """Calls `wrong` if the groups of a file have too many paths or links together."""
    if all(group.number is None for group in (*spec.finite, *spec.long)):
        return
    if (count := len(paths(spec))) > MOST_PATHS:
        wrong("groups", f"makes {count} paths of finite flows (RTTs times access links); allowed: {MOST_PATHS}")
    if (count := len(links_bps(spec))) > MOST_ACCESS_LINKS:
        wrong("groups", f"makes {count} access links; allowed: {MOST_ACCESS_LINKS}")


def links_bps(spec: Any) -> dict[int, int]:
    """Number and rate of each shared access link: those of finite flows, then those of long flows."""
    links: dict[int, int] = {}
    for settings in (*_settings(spec), *_settings_of_long(spec)):
        for _ in range(settings.access_links or 0):
            links[len(links) + 1] = settings.access_bps or 0
    return links


def link_of_flows(spec: Any) -> list[int]:
    """The shared access link of each long flow, by the flow's number; empty if no long flow has one."""
    first = 1 + sum(settings.access_links or 0 for settings in _settings(spec))
    result: list[int] = []
    if any(not group.is_own for group in spec.long):
        flows = sum(group.flows for group in spec.long)
        result = [1 + number % spec.access_links if spec.access_links else 0 for number in range(flows)]
    else:
        for group in spec.long:
            links = group.access_links or 0
            result += [first + number % links if links else 0 for number in range(group.flows)]
            first += links
    return result if any(result) else []


def _settings_of_long(spec: Any) -> list[Any]:
    """The holders of links for long flows only: each group of a file, or a run without finite flows."""
    if any(group.is_own for group in spec.long):
        return list(spec.long)
    return [spec] if spec.long and not spec.finite else []


def _settings(spec: Any) -> list[Any]:
    """The holders of the RTTs and links of finite flows: each group of a file, or the run for all groups."""
    if not spec.finite:
        return []
    return list(spec.finite) if spec.finite[0].is_own else [spec]


def _by_group(spec: Any) -> list[tuple[Path, ...]]:
    groups: list[tuple[Path, ...]] = []
    count = links_before = 0
    for settings in _settings(spec) or [None]:
        own_ns = settings.ack_delay_ns if settings and settings is not spec else None
        pairs = _pairs(settings, links_before) if settings else []
        if [(spec.forth_extra_ns(rtt_ns, own_ns), link) for rtt_ns, link in pairs] == [(0, 0)]:
            pairs = []  # the bottleneck link has the delay of the whole group
        own = given_only({"ack_delay_ns": own_ns})
        groups.append(tuple(
            Path(src_addr=_address(count + number), rtt_ns=rtt_ns, access_link=link, **own)
            for number, (rtt_ns, link) in enumerate(pairs)
        ))  # fmt: skip
        count += len(pairs)
        links_before += (settings.access_links or 0) if settings else 0
    return groups


def _pairs(settings: Any, links_before: int) -> list[tuple[int, int]]:
    """RTT and access link of each path."""
    rtts = settings.rtts_ns or [settings.rtt_ns]
    if settings.rtts_ns is None and settings.rtt_spread_ns:
        steps = SPREAD_CLASSES - 1
        rtts = [settings.rtt_ns + settings.rtt_spread_ns * step // steps for step in range(SPREAD_CLASSES)]
    links = range(links_before + 1, links_before + settings.access_links + 1) if settings.access_links else (0,)
    if settings.servers:
        return [(rtts[server % len(rtts)], links[server % len(links)]) for server in range(settings.servers)]
    return [(rtt_ns, link) for rtt_ns in rtts for link in links]


def _address(number: int) -> str:
    return str(FIRST_ADDRESS + number)
