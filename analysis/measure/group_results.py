# SPDX-License-Identifier: MIT
"""Groups of flows of a run: the group of each flow, and the summary's `groups` with the results of each group.

Groups have the order of Experiment.groups.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.measure import finite_flows
from analysis.measure.metrics import CARD, Columns, Goodput, Window, arrivals_in, jain_index
from analysis.read.load import Run
from analysis.read.postcards import wire_bytes
from analysis.wording.formats import si
from model.groups import Datagrams, Group, Long

NO_GROUP = -1
OWN = (
    "rtt_ns", "rtt_spread_ns", "rtts_ns", "ack_delay_ns", "access_bps", "access_links", "servers",
    "window_packets", "pacing", "ecn", "initcwnd", "acks", "load", "users", "sizes_given", "sizes",
)  # fmt: skip


def group_of_entries(run: Run) -> list[int]:
    """For each entry of Run.traffic, the index of its group in Experiment.groups; NO_GROUP for flows of the user's
    programs. traffic.json has long flows in the order of their groups, then the flows of datagrams.
    """
    listed = run.experiment.flow_groups
    whole: tuple[Long | Datagrams, ...] = (*run.experiment.long, *run.experiment.datagrams)
    places = [place for group in whole for place in [listed.index(group)] * group.flows]
    return [places[number] if number < len(places) else NO_GROUP for number in range(len(run.traffic))]


def flow_classes(run: Run) -> list[str]:
    """The class of each entry of Run.traffic, for figures: its congestion control, with its RTT if RTTS or groups give
    several. A spread of RTTs makes no classes.
    """
    spec, listed = run.experiment, run.experiment.flow_groups
    delays, several = spec.extra_delays_ns, bool(spec.shared.rtts_ns)
    several |= len({(group.rtt_ns, group.rtts_ns) for group in spec.tcp_groups}) > 1
    result = []
    for number, (entry, place) in enumerate(zip(run.traffic, group_of_entries(run), strict=True)):
        cc = str(entry.cc or "UDP")
        group = listed[place] if place != NO_GROUP else Group()
        classes = (several and not group.rtt_spread_ns) or bool(group.rtts_ns)
        known = classes and number < len(delays) and entry.is_tcp
        result.append(f"{cc} {si((spec.rtt_ns + delays[number]) / 1e9, 's')}" if known else cc)
    return result


def group_of_flows(run: Run) -> np.ndarray:
    """The index of the group of each flow number (int64); NO_GROUP for flows that belong to no group."""
    result = np.full(len(run.flows) + 1, NO_GROUP, dtype=np.int64)
    if run.flow_records is not None:
        listed = run.experiment.flow_groups
        places = np.array([*map(listed.index, run.experiment.finite), NO_GROUP], dtype=np.int64)
        result[run.flow_records["flow"]] = places[finite_flows.groups_of(run)]
    for entry, group in zip(run.traffic, group_of_entries(run), strict=True):
        if entry.number >= 0:
            result[entry.number] = group
    result[-1] = NO_GROUP  # the place of flows without packets
    return result


def summarize(run: Run, queue: Columns, good: Goodput, window: Window) -> list[dict[str, Any]]:
    """One object per group; none if there is a single group. `share` is of the sum of all groups' goodputs."""
    listed = run.experiment.flow_groups
    if len(listed) < 2:
        return []
    of_flow = group_of_flows(run)
    rows = arrivals_in(queue, window.start_ns, window.end_ns)
    group, flags = of_flow[queue["flow"][rows]], queue["flags"][rows]
    size = wire_bytes(queue["packet_bytes"][rows])
    seconds = window.length_ns / 1e9
    bits = np.zeros(len(of_flow))
    bits[: len(good.bits_per_flow)] = good.bits_per_flow
    goodputs = [float(bits[of_flow == place].sum()) / seconds if seconds else None for place in range(len(listed))]
    total = sum(value or 0.0 for value in goodputs)
    entries = group_of_entries(run)
    unsaid = set() if run.experiment.has_own_settings else {*Group.model_fields}
    result = []
    for place, asked in enumerate(listed):
        mine, own = group == place, asked.model_dump(mode="json", exclude=unsaid)
        arrivals = int(np.count_nonzero(mine))
        drops = int(np.count_nonzero(mine & ((flags & CARD["POSTCARD_DROPPED"]) != 0)))
        flows = [entry.number for entry, index in zip(run.traffic, entries, strict=True) if index == place]
        capacity = run.experiment.rate_bps * seconds
        goodput = goodputs[place]
        result.append(
            {
                "kind": asked.kind,
                "cc": asked.cc,
                "flows": len(flows) if flows else int(np.count_nonzero(of_flow == place)),
                **{name: own[name] for name in OWN if own.get(name) is not None and not isinstance(own[name], dict)},
                "goodput_bps": goodput,
                "share": goodput / total if goodput is not None and total else None,
                "jain_index": jain_index(bits[[flow for flow in flows if flow >= 0]]) if len(flows) > 1 else None,
                "offered_fraction": float(8 * int(size[mine].sum()) / capacity) if capacity else None,
                "arrivals": arrivals,
                "drops": drops,
                "drop_fraction": drops / arrivals if arrivals else None,
                "marks": int(np.count_nonzero(mine & ((flags & CARD["POSTCARD_CE_MARKED"]) != 0))),
            }
        )
    return result
