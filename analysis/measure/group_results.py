# SPDX-License-Identifier: MIT
"""Groups of flows of a run: the group of each flow, and the summary's `groups` with the results of each group.

Groups have the order of Experiment.groups.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from analysis.measure import finite_flows
from analysis.measure.metrics import (
    CARD,
    NO_GROUP,
    Columns,
    Goodput,
    Window,
    cards_in,
    group_of_entries,
    jain_index,
)
from analysis.read.load import Run
from analysis.wording.formats import si
from model.groups import Group

OWN = (
    "start_ns", "stop_ns", "rtt_ns", "rtt_spread_ns", "rtts_ns", "ack_delay_ns", "access_bps", "access_links",
    "servers", "window_packets", "pacing", "ecn", "initcwnd", "acks", "load", "users", "sizes_given", "sizes",
)  # fmt: skip


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


def timed_flows(run: Run, window: Window) -> list[tuple[np.ndarray, Window]]:
    """For each group with START or STOP: whether each flow number is of the group, and the part of the window in which
    the group was there.
    """
    timed = [(place, group) for place, group in enumerate(run.experiment.flow_groups) if group.times_ns]
    of_flow = group_of_flows(run) if timed else np.empty(0)
    return [(of_flow == place, window.of_group(group)) for place, group in timed]


def flow_rates_bps(run: Run, good: Goodput, window: Window) -> np.ndarray:
    """The goodput of each flow number in the part of the window in which its group was there (float64); NaN if there is
    no such part.
    """
    bits, seconds = np.zeros((2, len(run.flows) + 1))
    bits[:-1], seconds[:] = good.bits_per_flow, window.length_ns / 1e9
    for flows, part in timed_flows(run, window):
        bits[flows], seconds[flows] = np.append(good.bits_in(part), 0)[flows], part.length_ns / 1e9
    unknown = np.full(len(bits), np.nan if window.length_ns > 0 else 0.0)
    return np.divide(bits, seconds, out=unknown, where=seconds > 0)


def summarize(run: Run, queue: Columns, good: Goodput, window: Window) -> list[dict[str, Any]]:
    """One object per group; none if there is a single group without START and STOP. All results are of the part of the
    window in which the group was there. `share` is of the sum of all groups' goodputs then.
    """
    listed = run.experiment.flow_groups
    if len(listed) < 2 and not any(group.times_ns for group in listed):
        return []
    of_flow, entries = group_of_flows(run), group_of_entries(run)

    @cache
    def in_part(part: Window) -> tuple[np.ndarray, np.ndarray, list[float | None]]:
        """Arrivals, drops, marks and bytes on the link of each group in a part of the window (4 x groups); bits of each
        flow number; goodput of each group.
        """
        sums = np.zeros((4, len(listed) + 1), dtype=np.int64)  # the last: of no group, NO_GROUP
        for cards in cards_in(queue, part, "flow", "flags", "packet_bytes"):
            group, flags = of_flow[cards["flow"]], cards["flags"]
            weights = (1, flags & CARD["POSTCARD_DROPPED"] != 0, flags & CARD["POSTCARD_CE_MARKED"] != 0,
                       run.rate.link_bytes(cards["packet_bytes"]))  # fmt: skip
            for total, each in zip(sums, weights, strict=True):
                np.add.at(total, group, each)
        bits, seconds = np.append(good.bits_in(part), 0).astype(np.float64), part.length_ns / 1e9
        rates = [float(bits[of_flow == place].sum()) / seconds if seconds else None for place in range(len(listed))]
        return sums, bits, rates

    unsaid = set() if run.experiment.has_own_settings else {*Group.model_fields} - {"start_ns", "stop_ns"}
    result = []
    for place, asked in enumerate(listed):
        part = window.of_group(asked)
        sums, bits, goodputs = in_part(part)
        arrivals, drops, marks, link_bytes = sums[:, place].tolist()
        goodput, total = goodputs[place], sum(value or 0.0 for value in goodputs)
        own = asked.model_dump(mode="json", exclude=unsaid)
        flows = [entry.number for entry, index in zip(run.traffic, entries, strict=True) if index == place]
        capacity = run.experiment.rate_bps * (part.length_ns / 1e9)
        if run.rate.schedule:
            capacity = run.rate.capacity_bits(part.start_ns, part.length_ns)
        there = {"present_s": [(ns - window.traffic_start_ns) / 1e9 for ns in (part.start_ns, part.end_ns)]}
        result.append(
            {
                "kind": asked.kind,
                "cc": asked.cc,
                "flows": len(flows) if flows else int(np.count_nonzero(of_flow == place)),
                **{name: own[name] for name in OWN if own.get(name) is not None and not isinstance(own[name], dict)},
                **(there if asked.times_ns else {}),
                "goodput_bps": goodput,
                "share": goodput / total if goodput is not None and total else None,
                "jain_index": jain_index(bits[[flow for flow in flows if flow >= 0]]) if len(flows) > 1 else None,
                "offered_fraction": float(8 * link_bytes / capacity) if capacity else None,
                "arrivals": arrivals,
                "drops": drops,
                "drop_fraction": drops / arrivals if arrivals else None,
                "marks": marks,
            }
        )
    return result
