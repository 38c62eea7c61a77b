# SPDX-License-Identifier: MIT
"""The traffic of a run in a few words, from its spec. Imports nothing large: every experiment prints this text before
it runs, and large imports would delay the start.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from analysis.amounts import si
from analysis.spec_groups import in_order
from hosts.traffic.open_loop import flow_packets

ACKS = {"each": "an ACK for each segment", "delayed": "delayed ACKs"}
Spec = dict[str, Any]
Group = dict[str, Any]


def traffic_text(spec: Spec) -> str:
    """The traffic in a few words."""
    if spec.get("load") is not None and not spec.get("datagrams"):
        return f"{spec['load']:g} of the rate open-loop ({sizes_text(spec['sizes'])}, {spec['arrivals']})"
    programs = [programs_text(spec["program"])] if spec.get("program") else []
    return " + ".join([*map(group_text, in_order(spec)), *programs])


def group_text(group: Group) -> str:
    """A group in a few words, with its own settings."""
    if "kind" in group:
        text = transfers_text(group)
    elif "cc" in group:
        text = f"{group.get('flows')} {group['cc']}"
    else:
        text = f"{group.get('load'):g} of the rate in UDP ({sizes_text(group['sizes'])}, {group.get('arrivals')})"
    settings = []
    if group.get("rtt_ns"):
        rtts = group.get("rtts_ns") or [group["rtt_ns"]]
        least, most = min(rtts), max(*rtts, group["rtt_ns"] + (group.get("rtt_spread_ns") or 0))
        settings.append(si(least / 1e9, "s") if least == most else f"{si(least / 1e9, 's')} to {si(most / 1e9, 's')}")
    settings += [f"ACKs {si(group['ack_delay_ns'] / 1e9, 's')}"] if group.get("ack_delay_ns") is not None else []
    settings += [f"access {si(group['access_bps'], 'b/s')}"] if group.get("access_bps") else []
    settings += [f"window {group['window_packets']}"] if group.get("window_packets") else []
    settings += [f"paced {group['pacing']}"] if group.get("pacing") else []
    settings += [f"ECN {group['ecn']}"] if group.get("ecn") else []
    settings += [f"initial window {group['initcwnd']}"] if group.get("initcwnd") else []
    settings += [ACKS[group["acks"]]] if group.get("acks") else []
    return f"{text} [{', '.join(settings)}]" if settings else text


def sizes_text(sizes: str) -> str:
    """The sizes of open-loop traffic in a few words."""
    packets = flow_packets(sizes)
    return f"{sizes} packets" if packets is None else f"slow-start bursts of {packets}-packet flows"


def transfers_text(group: Group) -> str:
    """A group of finite flows in a few words."""
    if group["kind"] == "closed-loop":
        return f"{group.get('users')} users of {group['cc']} ({group.get('sizes_given')})"
    return f"{group.get('load') or 0:g} of the rate in {group['cc']} flows ({group.get('sizes_given')})"


def programs_text(program: dict[str, Any]) -> str:
    """The user's own programs in a few words: for each, its name and its first argument. The argument may be an
    interpreter's script; an option is left out.
    """
    words = ([word for word in program.get(key, ())[:2] if not word.startswith("-")] for key in ("server", "client"))
    server, client = (" ".join(PurePath(word).name for word in two) for two in words)
    return f"{client} from {server}" if program.get("server_at") == "sender" else f"{client} to {server}"
