# SPDX-License-Identifier: MIT
"""Compares the clock of the trace with the clock of the switch's times, over a whole run in real time.

No packet comes to the queue before a trace record in which it was not sent yet. No ACK comes back sooner than the
links' delays after its packet began to leave. A difference between the two clocks breaks one of these rules for some
packet as soon as it exceeds the time between a packet and its nearest record: if the trace is ahead, the first, else
the second. If the switch's clock cannot be read, switch_clock.py infers it from the same rules, and its misfit is the
difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from analysis.arithmetic.by_flow import Groups
from analysis.arithmetic.sequence import Unwrapped
from analysis.arithmetic.unwrap import near32
from analysis.join.join import time_slabs
from analysis.measure.wall_clock import CLOCK_SLACK_NS
from analysis.read.columns import joined, parts, rows_of
from analysis.read.load import Run
from analysis.read.postcards import has_data
from analysis.read.raw import Columns, known
from analysis.read.switch_clock import DELAY_TOLERANCE, MOST_FLOWS, is_free

PACKET = ("enqueue_mono_ns", "sojourn_ns")
LEAST = np.iinfo(np.int64).min


def difference_ns(run: Run, cards: Columns) -> int:
    """By how much the trace's clock is at least ahead of that of the switch of `cards` (negative: behind); 0 if they
    agree.
    """
    # With netem at the sender's egress the delay comes before the queue: after the queue, no least delay is known.
    links_ns = 0 if run.experiment.tc_at == "sender-egress" else run.experiment.idle_rtt_ns
    ahead = behind = 0
    for packets, records, sent in _neighbours(run, cards, "snd_nxt"):
        is_before = sent < len(packets["seq"])  # a packet that was not sent yet
        early_ns = records["mono_ns"][is_before] - packets["enqueue_mono_ns"][sent[is_before]]
        ahead = max(ahead, int(early_ns.max(initial=0)))
    for packets, records, acked in _neighbours(run, cards, "snd_una"):
        least_ns = packets["enqueue_mono_ns"] + packets["sojourn_ns"] + links_ns - int(links_ns * DELAY_TOLERANCE)
        early_ns = np.maximum.accumulate(least_ns)[acked[acked > 0] - 1] - records["mono_ns"][acked > 0]
        behind = max(behind, int(early_ns.max(initial=0)))
    return ahead if ahead >= behind else -behind


def _neighbours(run: Run, cards: Columns, column: str) -> Iterator[tuple[Columns, Columns, np.ndarray]]:
    """Of the MOST_FLOWS flows with the most packets, in slabs of time: data packets that go beyond all earlier ones,
    with ascending `seq`; trace records that have `column`, a sequence number, of which `seq` is the highest so far;
    and for each record the number of these packets that begin before its `seq`. Packets and records come again as long
    as later ones can become their neighbours.
    """
    packets = _Side(cards, "tcp_seq", has_data, len(run.flows) + 1, "packet_bytes", "flags", *PACKET)
    records = _Side(run.tcp, column, lambda tcp: known(tcp, column), len(run.flows) + 1, "unknown_fields", "mono_ns")
    traced = np.flatnonzero((records.left > 0) & (packets.left > 0))
    flows = np.sort(traced[np.argsort(-packets.left[traced], kind="stable")][:MOST_FLOWS])
    ahead = near32(records.first, packets.first) - records.first
    kept = [side.of_flows(slice(0), flows) for side in (packets, records)]
    for slab in time_slabs(cards["enqueue_mono_ns"], run.tcp["mono_ns"]):
        new = [side.of_flows(rows, flows) for side, rows in zip((packets, records), slab, strict=True)]
        for at, flow in enumerate(flows.tolist()):
            beyond = rows_of(new[0][at], new[0][at]["seq"] > new[0][at]["earlier"])
            new[1][at]["seq"] = np.maximum(new[1][at]["seq"], new[1][at]["earlier"]) + ahead[flow]
            sent, seen = joined(kept[0][at], beyond), joined(kept[1][at], new[1][at])
            before = np.searchsorted(sent["seq"], seen["seq"])
            yield sent, seen, before
            reached = before[-1] if len(before) else 0
            kept[0][at] = rows_of(sent, slice(reached if records.left[flow] else len(sent["seq"]), None))
            is_other = np.diff(seen["seq"], prepend=LEAST, append=LEAST) != 0
            is_open = (before == len(sent["seq"])) & (is_other[1:] | is_other[:-1]) & (packets.left[flow] > 0)
            kept[1][at] = rows_of(seen, is_open)


class _Side:
    """The data packets, or the trace records, in slabs."""

    def __init__(
        self, table: Columns, number: str, chosen: Callable[[Columns], np.ndarray], flows: int, *names: str
    ) -> None:
        self._table, self._number, self._chosen = (
            {name: table[name] for name in ("flow", number, *names)},
            number,
            chosen,
        )
        self.left, self.first = np.zeros((2, flows), dtype=np.int64)  # of each flow: rows to come; its first number
        for part in parts(self._table, *self._table):
            part = rows_of(part, chosen(part))
            new = self.left[part["flow"]] == 0
            of, at = np.unique(part["flow"][new], return_index=True)
            self.first[of] = part[number][new][at]
            self.left += np.bincount(part["flow"], minlength=flows)
        self._numbers, self._highest = Unwrapped(flows), np.full(flows, LEAST)

    def of_flows(self, rows: slice, flows: np.ndarray) -> list[Columns]:
        """These rows of each of some flows (ascending), with `seq`, the number unwrapped, and `earlier`, the highest
        before it.
        """
        part = rows_of(self._table, rows)
        part = rows_of(part, self._chosen(part) & np.isin(part["flow"], flows))
        groups = Groups.of(part["flow"])
        part = rows_of(part, groups.rows)
        part["seq"] = self._numbers.add(groups, part[self._number])
        self.left[groups.flow] -= groups.ends - groups.starts
        result = []
        for flow, first, last in zip(flows, *np.searchsorted(part["flow"], (flows, flows + 1)), strict=True):
            of_flow = rows_of(part, slice(first, last))
            highest = np.maximum.accumulate(np.append(self._highest[flow], of_flow["seq"]))
            self._highest[flow] = highest[-1]
            result.append(of_flow | {"earlier": highest[:-1]})
        return result


def reasons(run: Run, cards: Columns) -> list[str]:
    """One line if the clocks of the trace and of one queue's `cards` differ; none in virtual time, and of two captures,
    where there is one clock.
    """
    imported = run.experiment.imported
    if run.experiment.in_virtual_time or is_free(run.experiment) or (imported and imported.taps):
        return []
    difference = difference_ns(run, cards)
    if abs(difference) <= CLOCK_SLACK_NS:
        return []
    where = "ahead of" if difference > 0 else "behind"
    return [
        f"clocks: the trace's clock is {abs(difference) / 1e3:.0f} us or more {where} the switch's; allowed are "
        f"{CLOCK_SLACK_NS / 1e3:.0f} us: windows do not belong to the packets beside them"
    ]
