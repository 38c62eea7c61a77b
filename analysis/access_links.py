# SPDX-License-Identifier: MIT
"""Whether flows came to the bottleneck through links with the rate that spec.yaml asks for: each long flow through its
own link, finite flows through the shared link of their path.
"""

from __future__ import annotations

import numpy as np

from analysis.load import Run
from analysis.metrics import wire_bytes
from analysis.paths import access_link_of_flows
from analysis.raw import Columns


def access_reasons(run: Run, queue: Columns) -> list[str]:
    """A line if packets of a link arrived closer than their transmission time on it, in whole ns."""
    access_bps = run.spec.get("access_bps")
    if not access_bps:
        return []
    if run.spec.get("access_links"):
        link, whose = access_link_of_flows(run)[queue["flow"]], "access link"
        rows = np.flatnonzero(link > 0)
    else:
        link, whose = queue["flow"], "flow"
        rows = np.flatnonzero(np.isin(queue["flow"], [entry["flow"] for entry in run.traffic if entry["flow"] >= 0]))
    rows = rows[np.argsort(link[rows], kind="stable")]
    gap_ns = np.diff(queue["enqueue_mono_ns"][rows].astype(np.int64))
    least_ns = wire_bytes(queue["packet_bytes"][rows[1:]]) * 8 * 10**9 // access_bps
    close = np.flatnonzero((np.diff(link[rows].astype(np.int64)) == 0) & (gap_ns < least_ns))
    if not len(close):
        return []
    first = close[0]
    return [
        f"access: {len(close)} packets arrived too soon after the one before of their {whose} (first: {gap_ns[first]} "
        f"ns instead of {least_ns[first]} ns at the least): their links were not of {access_bps} bit/s, as in spec.yaml"
    ]
