# SPDX-License-Identifier: MIT
"""Finds congestion controls that have stopped sending. A window of 0 does not stop the run, so the run itself ends
well.

With a window of 0 TCP still sends a probe at each retransmission timeout. Missing packets therefore do not reveal every
such algorithm, but windows in the trace do. Linux's own algorithms never go below 1. In ns-3 a window of 0 is usual in
fast recovery: PRR sets the window to the packets in flight plus the packets that may be sent, and both are 0 after a
lost retransmission.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from analysis.measure.metrics import Columns, Window, cards_in, windows_of_entries
from analysis.read.columns import parts
from analysis.read.load import Run
from analysis.read.raw import known

# The silence of a timeout (RFC 6298) and its first backoffs is shorter than these limits.
LEAST_SILENCE_NS = 10**9
LEAST_SILENCE_RTTS = 10
# Limit of the share of records with a window of 0, in the last part of the measurement. The limit is low, because an
# algorithm that sets the window to 0 at each ACK shows a window of 0 in only a third of the records: the window is 1 at
# the ACKs of probes.
MOST_ZERO_WINDOWS = 0.1
RECOVERY = 3  # ca_state, the same number in Linux and ns-3


def reasons(run: Run, queue: Columns, window: Window) -> list[str]:
    """One line for each congestion control whose flows sent nothing in the last part of the measurement, or often had
    a window of 0 there. The last part is half of the measurement, but not less than the limits above (nor more than
    the measurement). Of a group with START or STOP, the measurement is the part in which the group was there;
    a part shorter than the limits says nothing.
    """
    rtt_ns = run.experiment.rtt_ns + (run.experiment.rtt_spread_ns or 0)
    silence_ns = max(LEAST_SILENCE_NS, LEAST_SILENCE_RTTS * rtt_ns)
    flows: dict[tuple[str, Window], list[int]] = {}
    for entry, part in zip(run.traffic, windows_of_entries(run, window), strict=True):
        if entry.cc and entry.number >= 0 and part.length_ns >= min(window.length_ns, silence_ns):
            flows.setdefault((entry.cc, part), []).append(entry.number)
    if run.experiment.imported and not len(queue["flow"]):
        return []
    lines = []
    for (name, part), numbers in flows.items():
        part_ns = min(part.length_ns, max(part.length_ns // 2, silence_ns))
        begin_ns = part.end_ns - part_ns
        late = cards_in(queue, replace(part, start_ns=begin_ns), "flow")
        if not any(np.isin(numbers, cards["flow"]).any() for cards in late):
            lines.append(
                f"traffic: no flow of {name} sent anything in the last {part_ns / 1e9:.2f} s of the measurement: does "
                "its congestion window become 0?"
            )
            continue
        zero = _zero_windows(run, numbers, begin_ns, part.end_ns)
        if zero > MOST_ZERO_WINDOWS:
            lines.append(
                f"traffic: the congestion window of {name} was 0 in {zero:.0%} of the trace's records of the last "
                f"{part_ns / 1e9:.2f} s: it sent little but probes"
            )
    return lines


def _zero_windows(run: Run, numbers: list[int], begin_ns: int, end_ns: int) -> float:
    """The share of the flows' records that have a window of 0. In ns-3, records of fast recovery do not count."""
    inside = slice(*np.searchsorted(run.tcp["mono_ns"], (begin_ns, end_ns)).tolist())
    records = zeros = 0
    for tcp in parts(run.tcp, "flow", "cwnd_packets", "ca_state", "unknown_fields", rows=inside):
        rows = np.isin(tcp["flow"], numbers) & known(tcp, "cwnd_packets")
        if run.experiment.is_simulated:
            rows &= tcp["ca_state"] != RECOVERY
        records += int(np.count_nonzero(rows))
        zeros += int(np.count_nonzero(tcp["cwnd_packets"][rows] == 0))
    return zeros / records if records else 0.0
