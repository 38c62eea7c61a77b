# SPDX-License-Identifier: MIT
"""Checks that packets reached the bottleneck through access links of the rate in spec.yaml. A long flow has its own
link or a shared one; a finite flow has the shared link of its path.
"""

from __future__ import annotations

import numpy as np

from analysis.measure.finite_flow_paths import access_link_of_flows
from analysis.measure.group_results import NO_GROUP, group_of_entries
from analysis.read.load import Run
from analysis.read.postcards import wire_bytes
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
    rates = rate_bps[queue["flow"]]
    rows = np.flatnonzero(rates > 0)
    of_row = link[queue["flow"][rows]].astype(np.int64)
    order = np.argsort(of_row, kind="stable")
    rows, of_row = rows[order], of_row[order]
    gap_ns = np.diff(queue["enqueue_mono_ns"][rows].astype(np.int64))
    least_ns = wire_bytes(queue["packet_bytes"][rows[1:]]) * 8 * 10**9 // rates[rows[1:]]
    close = np.flatnonzero((np.diff(of_row) == 0) & (gap_ns < least_ns))
    if not len(close):
        return []
    first = close[0]
    return [
        f"access: {len(close)} packets arrived too soon after the previous packet of their {whose} (first: "
        f"{gap_ns[first]} ns instead of at least {least_ns[first]} ns): their links did not have the "
        f"{rates[rows[first + 1]]} bit/s of spec.yaml"
    ]
