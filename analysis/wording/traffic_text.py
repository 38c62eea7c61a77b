# SPDX-License-Identifier: MIT
"""The traffic of a run in a few words, from its spec. Imports nothing large: every experiment prints this text before
it runs, and large imports would delay the start.
"""

from __future__ import annotations

from pathlib import PurePath

from analysis.wording.formats import si
from hosts.traffic.open_loop import flow_packets
from model.experiment import Experiment
from model.groups import CLOSED_LOOP, Datagrams, Finite, Long, Programs

ACKS = {"each": "an ACK for each segment", "delayed": "delayed ACKs"}


def traffic_text(spec: Experiment) -> str:
    """The traffic in a few words."""
    if alone := spec.open_loop:
        return f"{alone.load:g} of the rate open-loop ({sizes_text(alone.sizes)}, {alone.arrivals})"
    programs = [programs_text(spec.program)] if spec.program else []
    return " + ".join([*(group_text(group, spec.has_own_settings) for group in spec.flow_groups), *programs])


def group_text(group: Long | Finite | Datagrams, with_settings: bool) -> str:
    """A group in a few words, with its times, perhaps with its settings."""
    if isinstance(group, Finite):
        text = transfers_text(group)
    elif isinstance(group, Long):
        text = f"{group.flows} {group.cc}"
    else:
        text = f"{group.load:g} of the rate in UDP ({sizes_text(group.sizes)}, {group.arrivals})"
    settings = [f"from {si(group.start_ns / 1e9, 's')}"] if group.start_ns else []
    settings += [f"until {si(group.stop_ns / 1e9, 's')}"] if group.stop_ns else []
    settings += _settings(group) if with_settings else []
    return f"{text} [{', '.join(settings)}]" if settings else text


def _settings(group: Long | Finite | Datagrams) -> list[str]:
    """The settings of TCP and of the path."""
    if isinstance(group, Datagrams):
        return []
    settings = []
    if group.rtt_ns:
        rtts = group.rtts_ns or (group.rtt_ns,)
        least, most = min(rtts), max(*rtts, group.rtt_ns + (group.rtt_spread_ns or 0))
        settings.append(si(least / 1e9, "s") if least == most else f"{si(least / 1e9, 's')} to {si(most / 1e9, 's')}")
    settings += [] if group.ack_delay_ns is None else [f"ACKs {si(group.ack_delay_ns / 1e9, 's')}"]
    settings += [f"access {si(group.access_bps, 'b/s')}"] if group.access_bps else []
    settings += [f"window {group.window_packets}"] if group.window_packets else []
    settings += [f"paced {group.pacing}"] if group.pacing else []
    settings += [f"ECN {group.ecn}"] if group.ecn else []
    settings += [f"initial window {group.initcwnd}"] if group.initcwnd else []
    return settings + ([ACKS[group.acks]] if group.acks else [])


def sizes_text(sizes: str) -> str:
    """The sizes of open-loop traffic in a few words."""
    packets = flow_packets(sizes)
    return f"{sizes} packets" if packets is None else f"slow-start bursts of {packets}-packet flows"


def transfers_text(group: Finite) -> str:
    """A group of finite flows in a few words."""
    if group.kind == CLOSED_LOOP:
        return f"{group.users} users of {group.cc} ({group.sizes_given})"
    return f"{group.load or 0:g} of the rate in {group.cc} flows ({group.sizes_given})"


def programs_text(program: Programs) -> str:
    """The user's own programs in a few words: for each, its name and its first argument. The argument may be an
    interpreter's script; an option is left out.
    """
    words = ([word for word in given[:2] if not word.startswith("-")] for given in (program.server, program.client))
    server, client = (" ".join(PurePath(word).name for word in two) for two in words)
    return f"{client} from {server}" if program.server_at == "sender" else f"{client} to {server}"
