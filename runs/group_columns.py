# SPDX-License-Identifier: MIT
"""Columns of the run table for the groups of a run: their RTTs, links and ECN, and each group in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controlplane.policy import MARKING_MODES
from lib import units


def of_spec(spec: Mapping[str, Any], imported: bool) -> dict[str, Any]:
    """Values by column. None: the run has no such value, or the value is unknown."""
    groups = _groups(spec)
    numbered = [group for group in groups if group.get("number") is not None]
    links = [value for group in (spec, *numbered) if isinstance(value := group.get("access_links"), int)]
    no_tcp = not spec.get("groups") and not spec.get("transfers")
    ecn = spec.get("ecn", "on" if spec.get("mode") in MARKING_MODES else "off")
    of_groups = [str(group.get("ecn") or ecn) for group in numbered if _is_tcp(group)]
    return {
        "rtts_ns": ",".join(map(str, _rtts_ns(spec, numbered))) or None,
        "access_links": sum(links) or None,
        "ecn": None if imported or no_tcp else ",".join(dict.fromkeys(of_groups)) or ecn,
        "groups": " + ".join(map(_text, numbered)) or None,
    }


def _groups(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """All groups of spec.yaml, of every kind, sorted by their number."""
    lists = [value for key in ("groups", "transfers", "datagrams") if isinstance(value := spec.get(key), list)]
    groups = [group for of_kind in lists for group in of_kind if isinstance(group, dict)]
    return sorted(groups, key=lambda group: number if isinstance(number := group.get("number"), int) else 0)


def _is_tcp(group: Mapping[str, Any]) -> bool:
    return "cc" in group


def _rtts_ns(spec: Mapping[str, Any], numbered: list[Mapping[str, Any]]) -> list[int]:
    """The distinct RTTs of RTTS and of all groups, sorted; empty if the run has neither RTTS nor groups."""
    listed = spec.get("rtts_ns")
    for group in numbered:
        listed = [*(listed or []), *(group.get("rtts_ns") or [group.get("rtt_ns")])]
    return sorted({rtt for rtt in listed or () if isinstance(rtt, int)})


def _text(group: Mapping[str, Any]) -> str:
    """A group as `20 cubic 20ms`, `300 users of reno 20ms,50ms` or `0.1 open-loop`."""
    if not _is_tcp(group):
        return f"{group.get('load')} open-loop"
    who = f"{group.get('flows')} {group.get('cc')}"
    if group.get("kind"):
        who = f"{group.get('users')} users of {group.get('cc')}"
        who = who if group.get("users") else f"{group.get('load')} of {group.get('cc')}"
    rtts = [rtt for rtt in group.get("rtts_ns") or [group.get("rtt_ns")] if isinstance(rtt, int)]
    return f"{who} {','.join(units.show(rtt, 'time') for rtt in rtts)}".rstrip()
