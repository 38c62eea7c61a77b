# SPDX-License-Identifier: MIT
"""Paths of finite flows and shared access links: they follow from the settings of an experiment's groups.

The switch cannot know 2,000,000 5-tuples beforehand. So a path is a source address of the sender, with a delay and an
access link in the switch; several addresses can share an access link. By default each pair of RTT and link is a path.
SERVERS gives the number of paths instead. Finite flow or user k takes path k mod this number, in an order that SEED
deals; with PATH_OF=transfer each flow of a user draws a path (hosts/traffic/transfers.py). Long flow k takes link
k mod the number of links; k counts the long flows of groups with one number.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address

from model.experiment import Experiment
from model.groups import Finite, Group, Long

SPREAD_CLASSES = 16  # of RTT_SPREAD, for finite flows
FIRST_ADDRESS = IPv4Address("10.77.0.16")  # beside the addresses of experiments/spec/topology.py


@dataclass(frozen=True)
class Path:
    """A path of finite flows. `rtt_ns` is without queues. `access_link` is the number of the shared link, from 1; 0:
    none.
    """

    src_addr: str
    rtt_ns: int
    access_link: int
    ack_delay_ns: int | None


def by_number(experiment: Experiment) -> dict[int, tuple[Path, ...]]:
    """The paths of finite flows, by the number of their groups. A number without a path has the bottleneck's delay and
    no access link.
    """
    result: dict[int, tuple[Path, ...]] = {}
    count, first_link = 0, 1
    for number, settings in _by_number(experiment.finite).items():
        pairs = _pairs(settings, first_link)
        delays = [(experiment.forth_extra_ns(rtt_ns, settings.ack_delay_ns), link) for rtt_ns, link in pairs]
        pairs = pairs if delays != [(0, 0)] else []  # the bottleneck link has the delay of the whole group
        result[number] = tuple(
            Path(str(FIRST_ADDRESS + count + place), rtt_ns, link, settings.ack_delay_ns)
            for place, (rtt_ns, link) in enumerate(pairs)
        )
        count += len(pairs)
        first_link += settings.access_links or 0
    return result


def paths(experiment: Experiment) -> tuple[Path, ...]:
    """All paths of finite flows."""
    return tuple(path for of_number in by_number(experiment).values() for path in of_number)


def links_bps(experiment: Experiment) -> dict[int, int]:
    """Number and rate of each shared access link: those of finite flows, then those of long flows."""
    return {
        link: settings.access_bps or 0
        for first, settings in _first_links(experiment).values()
        for link in range(first, first + (settings.access_links or 0))
    }


def link_of_flows(experiment: Experiment) -> list[int]:
    """The shared access link of each long flow, by the flow's number; empty if no long flow has one."""
    result: list[int] = []
    of_number: dict[int, int] = {}  # flows so far
    firsts = _first_links(experiment)
    for group in experiment.long:
        before, links = of_number.get(group.number, 0), group.access_links
        first, _ = firsts[group.number]
        result += [first + place % links if links else 0 for place in range(before, before + group.flows)]
        of_number[group.number] = before + group.flows
    return result if any(result) else []


def _by_number(groups: Iterable[Long | Finite]) -> dict[int, Group]:
    """The settings of each number, in the order of the groups."""
    result: dict[int, Group] = {}
    for group in groups:
        result.setdefault(group.number, group)
    return result


def _first_links(experiment: Experiment) -> dict[int, tuple[int, Group]]:
    """The first link and the settings of each number."""
    result: dict[int, tuple[int, Group]] = {}
    first = 1
    for number, settings in (_by_number(experiment.finite) | _by_number(experiment.long)).items():
        result[number] = first, settings
        first += settings.access_links or 0
    return result


def _pairs(settings: Group, first_link: int) -> list[tuple[int, int]]:
    """RTT and access link of each path."""
    least_ns = settings.rtt_ns or 0
    rtts: tuple[int, ...] = settings.rtts_ns or (least_ns,)
    if settings.rtts_ns is None and settings.rtt_spread_ns:
        steps = SPREAD_CLASSES - 1
        rtts = tuple(least_ns + settings.rtt_spread_ns * step // steps for step in range(SPREAD_CLASSES))
    links = range(first_link, first_link + settings.access_links) if settings.access_links else (0,)
    if settings.servers:
        return [(rtts[server % len(rtts)], links[server % len(links)]) for server in range(settings.servers)]
    return [(rtt_ns, link) for rtt_ns in rtts for link in links]
