# SPDX-License-Identifier: MIT
"""Draws finite flows: when each begins, and how many bytes it sends. The same plan gives the same flows.

    finite       flows arrive at Poisson times, or evenly spaced (cbr), whatever the network does
    closed-loop  each user thinks, sends a flow, thinks again. `think_from` end: a think time begins when the user's
                 flow has ended. start: think times run from start to start, so a user's flows can overlap

For closed-loop flows `path_of` selects how source addresses are assigned. user: all flows of a user share an address.
transfer: each flow draws an address.

Sizes, arrivals, sources and every user have random streams of their own. So draw k of user u depends neither on the
network nor on other users. No two flows of a run have the same pair of ports, so a flow in TIME-WAIT blocks no later
flow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any, NamedTuple

from hosts.traffic import flow_settings
from hosts.traffic.draws import Distribution, distribution
from hosts.traffic.flow_settings import NO_SETTINGS, FlowSettings
from hosts.traffic.plan_reader import an_object, record

KINDS = ("finite", "closed-loop")
ARRIVALS = ("poisson", "cbr")
THINK_FROM = ("end", "start")
PATH_OF = ("user", "transfer")
FIRST_CLIENT_PORT, CLIENT_PORTS = 2_000, 18_000  # below the ports of long flows
MOST_USERS = 100_000


class Transfer(NamedTuple):
    """One finite flow. `offset_ns` counts from the start of the traffic or, if `user` has an earlier flow, from the end
    of that flow.
    """

    offset_ns: int
    size_bytes: int
    user: int  # 0: none
    source: int  # index in the group's sources


@dataclass(frozen=True)
class TransferGroup:
    """Flows of one kind. `arrivals` and `mean_gap_ns` are for the kind finite; `users`, `think`, `think_from` and
    `path_of` are for the kind closed-loop.
    """

    kind: str
    cc: str
    first_server_port: int
    sizes: Distribution
    arrivals: str = ARRIVALS[0]
    mean_gap_ns: float = 1.0
    users: int = 0
    think: Distribution | None = None
    think_from: str = THINK_FROM[0]
    sources: tuple[str, ...] = ()  # client addresses, assigned in turn or by `path_of`; empty: the host's address
    settings: FlowSettings = NO_SETTINGS
    path_of: str = PATH_OF[0]


def parse(content: Any, where: str, default: FlowSettings = NO_SETTINGS) -> TransferGroup:
    """The group in an object of a plan. `default` has settings that the group omits. Raises PlanError, DrawError."""
    values = an_object(content, where)
    settings = flow_settings.take(values, where, default)
    sizes, think = distribution(values.pop("sizes", None)), values.pop("think", None)
    return record(TransferGroup, values, where, sizes=sizes, think=distribution(think) if think else None,
                  settings=settings)  # fmt: skip


def draw(group: TransferGroup, number: int, span_ns: tuple[int, int], seed: int) -> Iterator[Transfer]:
    """The flows of group `number` that can begin within `span_ns`, (begin, end). Users are numbered from 1 in each
    group. The draws do not depend on the begin.
    """
    if group.kind == "finite":
        return _arriving(group, number, span_ns, seed)
    dealt = _dealt_sources(group, number, seed)
    return (
        transfer
        for user in range(group.users)
        for transfer in _of_user(group, number, user, span_ns, seed, dealt[user % len(dealt)])
    )


def _dealt_sources(group: TransferGroup, number: int, seed: int) -> list[int]:
    """The sources, shuffled by the seed. Flow or user k takes entry k mod the number of sources, so all sources are
    used evenly.
    """
    dealt = list(range(max(1, len(group.sources))))
    Random(f"sources {seed} {number}").shuffle(dealt)
    return dealt


def _size(group: TransferGroup, random: Random) -> int:
    return max(1, math.ceil(group.sizes.quantile(random.random())))


def _arriving(group: TransferGroup, number: int, span_ns: tuple[int, int], seed: int) -> Iterator[Transfer]:
    sizes, gaps = Random(f"sizes {seed} {number}"), Random(f"arrivals {seed} {number}")
    dealt = _dealt_sources(group, number, seed)
    at_ns = 0.0
    for index in count():
        at_ns += -group.mean_gap_ns * math.log1p(-gaps.random()) if group.arrivals == "poisson" else group.mean_gap_ns
        if at_ns >= span_ns[1] - span_ns[0]:
            return
        yield Transfer(span_ns[0] + int(at_ns), _size(group, sizes), 0, dealt[index % len(dealt)])


def _of_user(
    group: TransferGroup, number: int, user: int, span_ns: tuple[int, int], seed: int, source: int
) -> Iterator[Transfer]:
    """The flows of one user. The first flow begins after a think time. With `think_from` end the number of flows is an
    upper bound: all that would begin within the duration if transfers took no time. All flows use `source`, unless
    `path_of` is transfer.
    """
    assert group.think is not None
    random, sources = Random(f"user {seed} {number} {user}"), Random(f"sources of user {seed} {number} {user}")
    draws_source = group.path_of == "transfer" and len(group.sources) > 1
    waits = group.think_from == "end"
    begin_ns, end_ns = span_ns
    at_ns = first_ns = begin_ns  # the first flow's offset counts from the start of the traffic
    while True:
        think_ns = max(1, int(group.think.quantile(random.random())))
        at_ns += think_ns
        size = _size(group, random)
        if at_ns >= end_ns:
            return
        if draws_source:
            source = sources.randrange(len(group.sources))
        yield Transfer(first_ns + think_ns if waits else at_ns, size, user + 1 if waits else 0, source)
        first_ns = 0


def ports(index: int, group: TransferGroup) -> tuple[int, int]:
    """(client port, server port) of the group's flow number `index`."""
    return FIRST_CLIENT_PORT + index % CLIENT_PORTS, group.first_server_port + index // CLIENT_PORTS


def server_ports(flows: int) -> int:
    """Number of server ports of a group with so many flows; 1 at least, so that the receiver listens."""
    return max(1, -(-flows // CLIENT_PORTS))
