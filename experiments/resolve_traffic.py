# SPDX-License-Identifier: MIT
"""Resolves the traffic of a spec: groups of long flows, and which keys mean anything with which kind of traffic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments import transfers
from experiments.spec import MAX_FLOWS, Group, Spec
from experiments.transfers import LONG, Drawn
from hosts.traffic.open_loop import BURSTS_FORM, SIZES
from lib import units
from lib.errors import BadValue
from lib.units import Quantity

DEFAULT_FLOWS = 16


def groups(spec: Spec, given: Mapping[str, object], errors: dict[str, BadValue], wrong: Any) -> tuple[Group, ...]:
    """The groups of long flows with their numbers. FLOWS is the number of a single group, by default 16."""
    if LONG not in transfers.kinds(spec.traffic):
        return ()
    given_groups = tuple(spec.cc)
    if len(given_groups) == 1 and given_groups[0].flows is None:
        return (Group(given_groups[0].cc, DEFAULT_FLOWS if spec.flows is None else spec.flows),)
    total = sum(group.flows for group in given_groups)
    if total > MAX_FLOWS:
        wrong("cc", f"has {total} flows; allowed: 1 to {MAX_FLOWS}, as FLOWS")
    elif spec.flows is not None and spec.flows != total and not errors.keys() & {"cc", "flows"}:
        wrong("flows", f"is not the sum of CC={given.get('cc')}, {total}; allowed: {total}, or no FLOWS at all")
    return given_groups


def check(
    spec: Spec, given: Mapping[str, object], generator: str | None, errors: dict[str, BadValue], wrong: Any
) -> None:
    """Refuses keys and values that have no meaning with this kind of traffic."""
    if "traffic" in errors:
        return
    transfers.refuse_keys(spec.traffic, given, wrong)
    open_loop = spec.traffic == transfers.OPEN_LOOP
    if "sizes" not in errors and spec.sizes is not None and open_loop == isinstance(spec.sizes, Drawn):
        if open_loop:
            wrong("sizes", f"is of flows; allowed with TRAFFIC=open-loop: {', '.join((*SIZES, BURSTS_FORM))}")
        else:
            wrong(
                "sizes",
                f"is of packets; allowed with TRAFFIC={spec.traffic}: fixed:14p, {transfers.DEFAULT_SIZES}, ...",
            )
    if LONG not in transfers.kinds(spec.traffic) and "cc" in given and "cc" not in errors and not open_loop:
        if any(group.flows for group in spec.cc):
            wrong("cc", f"gives numbers of long flows, TRAFFIC={spec.traffic} has none; allowed: a name, as in reno")
        elif spec.finite_cc:
            wrong("cc", "has no flows left, FINITE_CC names all; allowed: one of the two")
    spread = spec.start_spread and spec.start_spread.amount
    if spread and generator != "epoll" and not errors.keys() & {"start_spread", "generator"}:
        wrong("start_spread", f"has no meaning with GENERATOR={generator}; allowed: with GENERATOR=epoll only")


def one_cc(spec: Spec) -> str | None:
    """The congestion control of CC, if it names a single one."""
    return spec.cc[0].cc if len(spec.cc) == 1 else None


def time_ns(quantity: Quantity, rtt_ns: int) -> int:
    return units.nearest(quantity.amount * rtt_ns) if quantity.dimension == "rtt" else units.whole(quantity)


def start_spread_ns(quantity: Quantity | None, generator: str | None, rtt_ns: int) -> int:
    """By default one RTT. In virtual time, flows with one RTT that all begin in the same ns behave the same in every
    run: another SEED would give the same sample.
    """
    if quantity is None:
        return rtt_ns if generator == "epoll" else 0
    return time_ns(quantity, rtt_ns)
