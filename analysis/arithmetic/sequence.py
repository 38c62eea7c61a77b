# SPDX-License-Identifier: MIT
"""TCP's sequence space as the queue sees it: header lengths, retransmissions, reordering, new bytes.

The packets come in slabs, in the order of arrival. Each class keeps what later slabs need of each flow, so its memory
depends on the number of flows, of holes and of a slab's rows, not on the number of packets. Rows of a slab are sorted
by flow, then by arrival (by_flow.Groups). Flows are numbers below a limit that the constructors get.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from analysis.arithmetic.by_flow import Axis, Groups
from lib.frames import ETHERNET_BYTES, IPV4_BYTES, IPV6_BYTES, TCP_BYTES, TIMESTAMP_OPTION_BYTES

MIN_HEADER_BYTES, MAX_HEADER_BYTES = ETHERNET_BYTES + IPV4_BYTES + TCP_BYTES, 255
_SIZES = MAX_HEADER_BYTES + 1
BELOW_FIRST = 1 << 40  # so many bytes before a flow's first packet count as not yet seen


class Unwrapped:
    """32-bit numbers of each flow as int64. The first of a flow keeps its value (RFC 9293, 3.4). Each other one is
    unwrapped relative to the flow's number before it: the step is shorter than 2^31, forwards or backwards.
    """

    def __init__(self, flows: int) -> None:
        self.seen = np.zeros(flows, dtype=bool)
        self.last = np.zeros(flows, dtype=np.int64)

    def add(self, groups: Groups, values: np.ndarray) -> np.ndarray:
        """The numbers (uint32) of a slab, unwrapped."""
        steps = np.empty(len(values), dtype=np.int64)
        if not len(values):
            return steps
        steps[1:] = np.diff(values).view(np.int32)
        first, last = values[groups.starts], self.last[groups.flow]
        forward = (first - last.astype(np.uint32)).view(np.int32)
        steps[groups.starts] = begin = np.where(self.seen[groups.flow], last + forward, first.astype(np.int64))
        result = np.cumsum(steps)  # over all groups; the sums of earlier groups are subtracted
        result -= groups.spread(result[groups.starts] - begin)
        self.seen[groups.flow], self.last[groups.flow] = True, result[groups.ends - 1]
        return result


class HeaderBytes:
    """Ethernet, IP and TCP header bytes of each flow's data packets. Postcards do not carry the length of TCP options.

    A packet's payload is the step to the next sequence number, and its header is the rest of the frame. The result is
    the flow's most frequent header length: retransmissions and gaps give rarer values. A flow without a usable step is
    assumed to carry timestamps, the default of Linux.
    """

    def __init__(self, flows: int) -> None:
        self.seen = np.zeros(flows, dtype=bool)
        self._seq = np.zeros(flows, dtype=np.uint32)  # of the flow's last packet, as the next two
        self._frame_bytes = np.zeros(flows, dtype=np.int64)
        self._has_data = np.zeros(flows, dtype=bool)
        self._keys, self._counts = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)

    def add(self, groups: Groups, seq: np.ndarray, frame_bytes: np.ndarray, control: np.ndarray) -> None:
        """The packets of a slab: sequence number (uint32), length of the frame, whether it is a SYN or a FIN."""
        if not len(seq):
            return
        starts, flow = groups.starts, groups.flow
        before_seq, before_bytes, usable = (np.empty_like(values) for values in (seq, frame_bytes, ~control))
        before_seq[1:], before_bytes[1:], usable[1:] = seq[:-1], frame_bytes[:-1], ~control[:-1]
        before_seq[starts], before_bytes[starts] = self._seq[flow], self._frame_bytes[flow]
        usable[starts] = self._has_data[flow]
        step = (seq - before_seq).view(np.int32)
        header = before_bytes - step
        usable &= (step >= 0) & (header >= MIN_HEADER_BYTES) & (header <= MAX_HEADER_BYTES)
        keys, counts = np.unique((groups.spread(flow.astype(np.int64)) * _SIZES + header)[usable], return_counts=True)
        self._keys, place = np.unique(np.concatenate((self._keys, keys)), return_inverse=True)
        total = np.zeros(len(self._keys), dtype=np.int64)
        np.add.at(total, place, np.concatenate((self._counts, counts)))
        self._counts = total
        last = groups.ends - 1
        self._seq[flow], self._frame_bytes[flow], self._has_data[flow] = seq[last], frame_bytes[last], ~control[last]
        self.seen[flow] = True

    def result(self, is_ipv4: np.ndarray) -> np.ndarray:
        """By flow number (int64); 0 for flows without packets. Of equally frequent lengths the shortest."""
        assumed = ETHERNET_BYTES + np.where(is_ipv4, IPV4_BYTES, IPV6_BYTES) + TCP_BYTES + TIMESTAMP_OPTION_BYTES
        result = np.where(self.seen, assumed, 0)
        order = np.lexsort((-(self._keys % _SIZES), self._counts))  # the most frequent, then the shortest, comes last
        result[self._keys[order] // _SIZES] = self._keys[order] % _SIZES
        return result


def _none() -> np.ndarray:
    return np.empty(0, dtype=np.int64)


@dataclass
class Covered:
    """Which bytes of the slab's packets came for the first time."""

    new_bytes: np.ndarray  # int64, of each packet
    late: np.ndarray  # mask of the packets that start below the furthest byte of an earlier packet
    fills: np.ndarray  # mask of the late packets whose first byte came for the first time
    skipped: int  # number of packets that left a hole


@dataclass
class Coverage:
    """The bytes of each flow that have come so far: all below the furthest one, but for holes."""

    flows: int
    seen: np.ndarray = field(init=False)
    furthest: np.ndarray = field(init=False)
    _flow: np.ndarray = field(default_factory=_none)  # of each hole
    _start: np.ndarray = field(default_factory=_none)
    _end: np.ndarray = field(default_factory=_none)

    def __post_init__(self) -> None:
        self.seen, self.furthest = np.zeros(self.flows, dtype=bool), np.zeros(self.flows, dtype=np.int64)

    def add(self, groups: Groups, start: np.ndarray, end: np.ndarray) -> Covered:
        """The packets of a slab: their first byte, and the byte after their last one (int64, unwrapped)."""
        if not len(start):
            return Covered(end - start, np.zeros(0, dtype=bool), np.zeros(0, dtype=bool), 0)
        flow, starts = groups.flow, groups.starts
        begin = np.where(self.seen[flow], self.furthest[flow], start[starts])
        low = np.minimum(np.minimum.reduceat(start, starts), begin)
        axis = Axis.of(low, np.maximum(np.maximum.reduceat(end, starts), begin))
        group = groups.number
        before = axis.at(group, np.concatenate((begin[:1], end[:-1])))
        before[starts] = axis.at(np.arange(len(starts)), begin)
        np.maximum.accumulate(before, out=before)
        before -= axis.offset[group]
        self._holes_below(flow[~self.seen[flow]], begin[~self.seen[flow]])
        self.seen[flow], self.furthest[flow] = True, np.maximum(before, end)[groups.ends - 1]

        jumps = np.flatnonzero(start > before)
        self._add_holes(flow[group[jumps]], before[jumps], start[jumps])
        late = (start < before) & (end > start)
        new_bytes = np.maximum(end - np.maximum(start, before), 0)
        fills = np.zeros(len(start), dtype=bool)
        rows = np.flatnonzero(late)
        if len(rows):
            filled, fills[rows] = self._fill(flow[group[rows]], start[rows], end[rows])
            new_bytes[rows] += filled
        return Covered(new_bytes, late, fills, len(jumps))

    def _holes_below(self, flow: np.ndarray, first: np.ndarray) -> None:
        """The bytes before a flow's first packet are a hole, too."""
        self._add_holes(flow, first - BELOW_FIRST, first)

    def _add_holes(self, flow: np.ndarray, start: np.ndarray, end: np.ndarray) -> None:
        if len(flow):
            self._flow = np.concatenate((self._flow, flow.astype(np.int64)))
            self._start, self._end = np.concatenate((self._start, start)), np.concatenate((self._end, end))

    def _fill(self, flow: np.ndarray, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(bytes of holes that each packet fills, mask of those that fill the byte at their start). The packets are
        sorted by flow, then by arrival. A byte is filled by the first packet that has it.
        """
        flows, group = np.unique(flow, return_inverse=True)
        place = np.minimum(np.searchsorted(flows, self._flow), len(flows) - 1)
        touched = flows[place] == self._flow
        place, hole_start, hole_end = place[touched], self._start[touched], self._end[touched]
        low, high = np.full(len(flows), np.iinfo(np.int64).max), np.full(len(flows), np.iinfo(np.int64).min)
        for at, values in ((group, start), (group, end), (place, hole_start), (place, hole_end)):
            np.minimum.at(low, at, values)
            np.maximum.at(high, at, values)
        axis = Axis.of(low, high)
        begins, ends = axis.at(place, hole_start), axis.at(place, hole_end)
        start, end = axis.at(group, start), axis.at(group, end)
        # Edges cut the axis into pieces; each lies inside or outside of a hole, of a packet.
        edges = np.unique(np.concatenate((begins, ends, start, end)))
        change = np.zeros(len(edges), dtype=np.int64)
        np.add.at(change, np.searchsorted(edges, begins), 1)
        np.add.at(change, np.searchsorted(edges, ends), -1)
        is_open, lengths = np.cumsum(change) > 0, np.diff(edges, append=edges[-1])
        first, last = np.searchsorted(edges, start), np.searchsorted(edges, end)
        packet = np.repeat(np.arange(len(start)), last - first)
        piece = np.arange(len(packet)) - np.repeat(np.cumsum(last - first) - last, last - first)
        packet, piece = packet[is_open[piece]], piece[is_open[piece]]
        filled, earliest = np.unique(piece, return_index=True)  # the first of equals is of the earliest packet
        by = packet[earliest]
        new_bytes = np.bincount(by, weights=lengths[filled], minlength=len(start)).astype(np.int64)
        fills = np.zeros(len(start), dtype=bool)
        fills[by[first[by] == filled]] = True
        is_open[filled] = False
        rest = np.flatnonzero(is_open)
        keep, of = ~touched, np.searchsorted(axis.offset + axis.low - 1, edges[rest], side="right") - 1
        self._flow, self._start, self._end = self._flow[keep], self._start[keep], self._end[keep]
        self._add_holes(flows[of], edges[rest] - axis.offset[of], edges[rest] + lengths[rest] - axis.offset[of])
        return new_bytes, fills
