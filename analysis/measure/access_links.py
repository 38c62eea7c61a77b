# SPDX-License-Identifier: MIT
"""Checks that packets reached the bottleneck through access links of the rate in spec.yaml. A long flow has its own
link or a shared one; a finite flow has the shared link of its path.
"""

from __future__ import annotations

import numpy as np

from analysis.arithmetic.by_flow import Groups
from analysis.measure.finite_flow_paths import access_link_of_flows
from analysis.measure.group_results import NO_GROUP, group_of_entries
from analysis.read.columns import parts, rows_of
from analysis.read.load import Run
from analysis.read.postcards import NEVER_NS, wire_bytes
from analysis.read.raw import Columns
from model.paths import link_of_flows, links_bps


def access_reasons(run: Run, queue: Columns) -> list[str]:
    """One line for shared links, and one for flows' own links, if the time between two packets of such a link was less
    than the second one's transmission time.
    """
    reasons = []
    if shared := links_bps(run.experiment):
        link = access_link_of_flows(run)
        for entry, number in zip(run.traffic, link_of_flows(run.experiment), strict=False):
            if entry.number >= 0:
                link[entry.number] = number
        rates = np.zeros(max(shared) + 1, dtype=np.int64)
        rates[list(shared)] = list(shared.values())
        reasons += _too_close(queue, link, rates[link], "access link")
    rates_bps = _own_rates_bps(run)
    if rates_bps.any():
        reasons += _too_close(queue, np.arange(len(rates_bps)), rates_bps, "flow")
    return reasons


def _own_rates_bps(run: Run) -> np.ndarray:
    """The rate of each flow number's own link (int64); 0: none."""
    rates = np.zeros(len(run.flows) + 1, dtype=np.int64)
    listed = run.experiment.flow_groups
    for entry, place in zip(run.traffic, group_of_entries(run), strict=True):
        if entry.number >= 0 and entry.is_tcp and not entry.program:
            group = None if place == NO_GROUP else listed[place]
            rates[entry.number] = 0 if group is None or group.access_links else group.access_bps or 0
    return rates


def _too_close(queue: Columns, link: np.ndarray, rate_bps: np.ndarray, whose: str) -> list[str]:
    """`link` and `rate_bps` have a value for each flow number; a rate of 0 means no link."""
    last_ns = np.full(int(link.max(initial=0)) + 1, NEVER_NS)
    close, first = 0, (len(last_ns), 0, 0, 0)  # of the lowest link: its number, gap, least gap, rate
    for cards in parts(queue, "flow", "enqueue_mono_ns", "packet_bytes"):
        cards = rows_of(cards, rate_bps[cards["flow"]] > 0)
        groups = Groups.of(link[cards["flow"]])
        cards = rows_of(cards, groups.rows)
        came, rates = cards["enqueue_mono_ns"].astype(np.int64), rate_bps[cards["flow"]]
        before_ns = np.append(NEVER_NS, came[:-1])[: len(came)]
        before_ns[groups.starts] = last_ns[groups.flow]
        last_ns[groups.flow] = came[groups.ends - 1]
        gap_ns, least_ns = came - before_ns, wire_bytes(cards["packet_bytes"]) * 8 * 10**9 // rates
        rows = np.flatnonzero(gap_ns < least_ns)
        close += len(rows)
        found = [(int(groups.spread(groups.flow)[row]), gap_ns[row], least_ns[row], rates[row]) for row in rows[:1]]
        first = min([first, *found], key=lambda one: one[0])
    if not close:
        return []
    _, gap, least, rate = first
    return [
        f"access: {close} packets arrived too soon after the previous packet of their {whose} (first: {gap} ns instead "
        f"of at least {least} ns): their links did not have the {rate} bit/s of spec.yaml"
    ]
