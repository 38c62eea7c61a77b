# SPDX-License-Identifier: MIT
"""Columns of the run table for the groups of a run: their settings, and each group in a few words."""

from __future__ import annotations

from typing import Any

from lib import units
from model.experiment import Experiment
from model.groups import Datagrams, Finite, Long


def of_experiment(spec: Experiment) -> dict[str, Any]:
    """Values by column. None: the run has no such value, or the value is unknown."""
    own = spec.flow_groups if spec.has_own_settings else ()
    links = {group.number: group.access_links or 0 for group in spec.with_settings}
    asks = dict.fromkeys("on" if spec.ecn_of(group) else "off" for group in spec.tcp_groups)
    rtts_ns = {*(spec.shared.rtts_ns or ()), *(rtt_ns for group in own for rtt_ns in _rtts_of(group))}
    return {
        "rtts_ns": ",".join(map(str, sorted(rtts_ns))) or None,
        "access_links": sum(links.values()) or None,
        "ecn": None if spec.imported else ",".join(asks) or None,
        "groups": " + ".join(_text(group) for group in spec.flow_groups if own or group.times_ns) or None,
        "rtt_spread_ns": spec.rtt_spread_ns,
        "access_bps": spec.shared.access_bps,
        "window_packets": spec.shared.window_packets,
        "ack_delay_ns": spec.shared.ack_delay_ns,
        "pacing": spec.shared.pacing or (None if spec.imported else "off"),
    }


def _rtts_of(group: Long | Finite | Datagrams) -> tuple[int, ...]:
    return group.rtts_ns or ((group.rtt_ns,) if group.rtt_ns else ())


def _text(group: Long | Finite | Datagrams) -> str:
    """A group as `20 cubic 20ms from 5s until 9s`, `300 users of reno 20ms,50ms` or `0.1 open-loop`."""
    who = f"{group.load} open-loop" if isinstance(group, Datagrams) else f"{group.flows} {group.cc}"
    if isinstance(group, Finite):
        who = f"{group.users} users of {group.cc}" if group.users else f"{group.load} of {group.cc}"
    times = {"from": group.start_ns, "until": group.stop_ns}
    said = [who, ",".join(units.show(rtt_ns, "time") for rtt_ns in _rtts_of(group))]
    said += [f"{name} {units.show(ns, 'time')}" for name, ns in times.items() if ns]
    return " ".join(word for word in said if word)
