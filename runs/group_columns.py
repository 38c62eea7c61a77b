# SPDX-License-Identifier: MIT
"""Columns of the run table for the groups of a run: their RTTs, links and ECN, and each group in a few words."""

from __future__ import annotations

from typing import Any

from lib import units
from model.experiment import Experiment
from model.groups import Datagrams, Finite, Long


def of_experiment(spec: Experiment) -> dict[str, Any]:
    """Values by column. None: the run has no such value, or the value is unknown."""
    numbered = [group for group in spec.groups if group.number is not None]
    links = [group.access_links or 0 for group in (spec, *numbered)]
    of_tcp = [group for group in numbered if not isinstance(group, Datagrams)] or spec.tcp_groups
    asks = dict.fromkeys("on" if spec.ecn_of(group) else "off" for group in of_tcp)
    return {
        "rtts_ns": ",".join(map(str, _rtts_ns(spec, numbered))) or None,
        "access_links": sum(links) or None,
        "ecn": None if spec.imported else ",".join(asks) or None,
        "groups": " + ".join(map(_text, numbered)) or None,
    }


def _rtts_ns(spec: Experiment, numbered: list[Long | Finite | Datagrams]) -> list[int]:
    """The distinct RTTs of RTTS and of all groups, sorted; empty if the run has neither RTTS nor groups."""
    return sorted({*(spec.rtts_ns or ()), *(rtt_ns for group in numbered for rtt_ns in _rtts_of(group))})


def _rtts_of(group: Long | Finite | Datagrams) -> tuple[int, ...]:
    return group.rtts_ns or ((group.rtt_ns,) if group.rtt_ns else ())


def _text(group: Long | Finite | Datagrams) -> str:
    """A group as `20 cubic 20ms`, `300 users of reno 20ms,50ms` or `0.1 open-loop`."""
    if isinstance(group, Datagrams):
        return f"{group.load} open-loop"
    who = f"{group.flows} {group.cc}"
    if isinstance(group, Finite):
        who = f"{group.users} users of {group.cc}" if group.users else f"{group.load} of {group.cc}"
    return f"{who} {','.join(units.show(rtt_ns, 'time') for rtt_ns in _rtts_of(group))}".rstrip()
