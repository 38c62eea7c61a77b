# SPDX-License-Identifier: MIT
"""Depths in packets and bytes of a switch that counts cells (Tofino), recounted from its postcards: a packet is in the
queue from its enqueue time until its last bit left. Depths in cells, as the switch reported them, are kept as well.

Such a switch stamps the start of each packet's transmission. If the next packet is waiting, the transmission ends when
the next transmission begins; otherwise it takes wire bits / rate. A packet that egress drops takes no link time. A
packet that the traffic manager refuses gets its stamp up to DEFLECTION_NS later, in the queue for refused packets. Its
depth is the largest depth in the DEFLECTION_NS before the stamp.

If a postcard is lost, depths are too low while its packet was in the queue. Postcards of one queue are numbered in the
order of departure, so the lost packet arrived after the packet numbered before it, and left before the packet numbered
after it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from analysis.arithmetic.unwrap import group_starts, unwrap32
from analysis.read.documents import Switch
from analysis.read.postcards import dropped, wire_bytes
from analysis.read.raw import Columns
from controlplane.policy import Unit
from lib.frames import ETHERNET_BYTES
from model.experiment import Experiment
from wire import wire

CARD = wire.POSTCARD.const
DEFLECTION_NS = 500  # from the refusal of a packet to its stamp, at most; p4src/README.md estimates 100
RATE_TOLERANCE = 2e-4  # largest relative error of a link's rate by the switch's clock: twice IEEE 802.3's 100 ppm
CANDIDATE_BITS = 36  # low bits of an int64 that hold a row number; a depth is above them


@dataclass
class Recount:
    """The result of a recount."""

    cell_bytes: int | None = None  # None: switch.json does not say, and nothing is compared
    full_packet_cells: int | None = None
    # |reported - recounted| of each admitted packet
    errors_cells: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    first_depth_cells: int = 0  # reported by the first packet: cells of earlier packets, which have no postcards
    gaps_mono_ns: list[tuple[int, int]] = field(default_factory=list)  # spans in which depths may be too low
    lost_packets: int = 0  # within the gaps
    delay_ns: tuple[int, int] | None = None  # from the start of a transmission to the postcard's receipt: least, most
    # from the start of a transmission to the start of the next one, if the next packet was waiting
    gaps_ns: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    ideal_gaps_ns: np.ndarray = field(default_factory=lambda: np.zeros(0))  # by the rate
    gap_bytes: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # on the link


def in_cells(spec: Experiment) -> bool:
    """Whether the run's target counts only cells."""
    return spec.capabilities is not None and Unit.PACKETS not in spec.capabilities.depth_units


def recount(cards: Columns, spec: Experiment, switch: Switch) -> Recount:
    """Fills `depth_packets` and `depth_bytes` of the bottleneck's postcards (of all, if switch.json names none), sets
    `depth_unit` accordingly, and extends `sojourn_ns` to the end of the transmission. In place; `cards` has the columns
    of analysis.switch_clock.
    """
    cell_bytes, extra_bytes = switch.cell_bytes, switch.queued_extra_bytes or 0
    result = Recount()
    if cell_bytes:
        full = spec.mtu_bytes + ETHERNET_BYTES + extra_bytes
        result.cell_bytes, result.full_packet_cells = cell_bytes, -(-full // cell_bytes)
    delay = cards["rx_mono_ns"] - cards["enqueue_mono_ns"] - cards["sojourn_ns"]
    if len(delay):
        result.delay_ns = int(delay.min()), int(delay.max())
    at_ingress = (cards["flags"] & CARD["POSTCARD_AT_INGRESS"]) != 0
    errors = []
    bottleneck = switch.bottleneck_port
    for port in np.unique(cards["egress_port"]).tolist() if bottleneck is None else [bottleneck]:
        of_port = cards["egress_port"] == port
        queue = _Queue(cards, np.flatnonzero(of_port & ~at_ingress), spec.rate_bps)
        if cell_bytes and len(queue.rows):
            reported_cells = cards["depth_cells"][queue.rows].astype(np.int64)
            errors.append(np.abs(reported_cells - queue.depth(-(-(queue.bytes + extra_bytes) // cell_bytes))))
            result.first_depth_cells = max(result.first_depth_cells, int(reported_cells[0]))
        gaps, lost = queue.gaps(cards)
        result.gaps_mono_ns += gaps
        result.lost_packets += lost
        queue.fill(cards, np.flatnonzero(of_port & at_ingress))
        cards["depth_unit"][of_port] = CARD["POSTCARD_DEPTH_EXACT"]
        if bottleneck is not None:
            result.gaps_ns, result.gap_bytes = queue.back_to_back()
            result.ideal_gaps_ns = result.gap_bytes * (8e9 / spec.rate_bps)
    result.errors_cells = np.concatenate([result.errors_cells, *errors])
    return result


class _Queue:
    """The admitted packets of one queue, in the order of their numbers, which is the order of departures. A restarted
    switch numbers from 0 again. Times are those of `timeline_ns`.
    """

    def __init__(self, cards: Columns, rows: np.ndarray, rate_bps: int) -> None:
        part = cards["clock_part"][rows]
        in_parts = np.argsort(part, kind="stable")
        rows, part = rows[in_parts], part[in_parts]
        number = unwrap32(cards["card_seq"][rows], group_starts(part))
        order = np.lexsort((number, part))
        self.rows, self.number, self.part = rows[order], number[order], part[order]
        self.follows = (np.diff(self.number) == 1) & (np.diff(self.part) == 0)  # no postcard is lost between the two
        self.came = cards["timeline_ns"][self.rows]
        self.bytes = cards["packet_bytes"][self.rows].astype(np.int64)
        self.begins = self.came + cards["sojourn_ns"][self.rows]
        self.link_bytes = wire_bytes(cards["packet_bytes"][self.rows])
        self.link_bytes[dropped(cards)[self.rows]] = 0
        ends = self.begins + self.link_bytes * 8_000_000_000 // rate_bps
        late = self.begins[1:] - ends[:-1]
        allowed = 1 + np.diff(np.stack((self.begins, ends)), axis=0)[0, :-1] * RATE_TOLERANCE
        follows = (late <= 0) | ((late <= allowed) & (self.begins[1:] > self.came[1:]))
        ends[:-1][follows] = self.begins[1:][follows]
        self.sojourn = ends - self.came
        self.ends = np.maximum.accumulate(ends) if len(ends) else ends
        came = np.maximum.accumulate(self.came) if len(ends) else self.came
        self.arrivals = came  # ascending: a queue is first in, first out
        self.gone = np.minimum(np.searchsorted(self.ends, came, side="right"), np.arange(len(came)))

    def depth(self, sizes: np.ndarray) -> np.ndarray:
        """For each packet the sum of `sizes` over the packets that arrived before it and had not left the queue."""
        before = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
        return before[:-1] - before[self.gone]

    def fill(self, cards: Columns, refused: np.ndarray) -> None:
        """Writes depths and sojourn times of the admitted packets, and depths of the `refused` ones."""
        packets, in_bytes = self.depth(np.ones_like(self.bytes)), self.depth(self.bytes)
        cards["depth_packets"][self.rows], cards["depth_bytes"][self.rows] = packets, in_bytes
        cards["sojourn_ns"][self.rows] = self.sojourn
        if not len(refused):
            return
        until = cards["timeline_ns"][refused]
        since = until - DEFLECTION_NS
        first, last = (np.searchsorted(self.arrivals, times, side="right") for times in (since, until))
        gone = np.minimum(np.searchsorted(self.ends, since, side="right"), first)
        before = np.concatenate(([0], np.cumsum(self.bytes)))
        deepest, deepest_bytes = first - gone, before[first] - before[gone]
        came_since = np.flatnonzero(last > first)
        if len(came_since):
            # The depth right after each packet's arrival. The low bits hold the packet's row, to look up its bytes.
            behind = (packets + 1 << CANDIDATE_BITS) | np.arange(len(packets))
            spans = np.stack((first[came_since], last[came_since]), axis=1).ravel()
            most = np.maximum.reduceat(np.append(behind, 0), spans)[::2]
            deeper = most >> CANDIDATE_BITS > deepest[came_since]
            chosen, which = came_since[deeper], most[deeper] & ((1 << CANDIDATE_BITS) - 1)
            deepest[chosen] = most[deeper] >> CANDIDATE_BITS
            deepest_bytes[chosen] = in_bytes[which] + self.bytes[which]
        cards["depth_packets"][refused], cards["depth_bytes"][refused] = deepest, deepest_bytes

    def back_to_back(self) -> tuple[np.ndarray, np.ndarray]:
        """(ns from the start of each transmission to the start of the next, its bytes on the link) where the next
        packet arrived before the transmission's end, and no packet between the two lacks a postcard.
        """
        waited = (self.came[1:] < self.ends[:-1]) & (self.link_bytes[:-1] > 0) & self.follows
        return np.diff(self.begins)[waited], self.link_bytes[:-1][waited]

    def gaps(self, cards: Columns) -> tuple[list[tuple[int, int]], int]:
        """(spans on CLOCK_MONOTONIC in which packets without postcards may have been in the queue, number of these
        packets).
        """
        before = np.flatnonzero((np.diff(self.number) > 1) & (np.diff(self.part) == 0))
        lost = int((np.diff(self.number)[before] - 1).sum())
        placed = cards["enqueue_mono_ns"][self.rows]
        since, until = placed[before], placed[before + 1] + self.sojourn[before + 1]
        return list(zip(since.tolist(), until.tolist(), strict=True)), lost
