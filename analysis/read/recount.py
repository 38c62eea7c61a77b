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

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import numpy as np

from analysis.arithmetic.by_flow import Groups
from analysis.arithmetic.counted import Counted
from analysis.arithmetic.sequence import Unwrapped
from analysis.read.columns import Column, Columns, filed, parts, rows_of, slabs, sort_file, sums_before
from analysis.read.documents import Switch
from analysis.read.postcards import dropped, wire_bytes
from controlplane.policy import Unit
from lib.frames import ETHERNET_BYTES
from model.experiment import Experiment
from wire import wire

CARD = wire.POSTCARD.const
DEFLECTION_NS = 500  # from the refusal of a packet to its stamp, at most; p4src/README.md estimates 100
RATE_TOLERANCE = 2e-4  # largest relative error of a link's rate by the switch's clock: twice IEEE 802.3's 100 ppm
PART_SHIFT = 48  # numbers of postcards since a restart are below
HALF_PART = 1 << PART_SHIFT - 1  # those of packets before the first one are negative
CANDIDATE_BITS = 36  # low bits of an int64 that hold a row number; a depth is above them


@dataclass
class Recount:
    """The result of a recount."""

    cell_bytes: int | None = None  # None: switch.json does not say, and nothing is compared
    full_packet_cells: int | None = None
    errors_cells: Counted = field(default_factory=Counted)  # |reported - recounted| of each admitted packet
    first_depth_cells: int = 0  # reported by the first packet: cells of earlier packets, which have no postcards
    gaps_mono_ns: list[tuple[int, int]] = field(default_factory=list)  # spans in which depths may be too low
    lost_packets: int = 0  # within the gaps
    delay_ns: tuple[int, int] | None = None  # from the start of a transmission to the postcard's receipt: least, most
    # `gap_ns` from the start of a transmission to the start of the next one, if the next packet was waiting, and its
    # `bytes` on the link; None: there are several queues
    gaps: Columns | None = None


def in_cells(spec: Experiment) -> bool:
    """Whether the run's target counts only cells."""
    return spec.capabilities is not None and Unit.PACKETS not in spec.capabilities.depth_units


def recount(cards: Columns, spec: Experiment, switch: Switch, directory: Path) -> Recount:
    """Fills `depth_packets` and `depth_bytes` of the bottleneck's postcards (of all, if switch.json names none), sets
    `depth_unit` accordingly, and extends `sojourn_ns` to the end of the transmission. In place; `cards` has the columns
    of analysis.switch_clock.
    """
    cell_bytes, extra_bytes = switch.cell_bytes, switch.queued_extra_bytes or 0
    result, ports = Recount(), set[int]()
    if cell_bytes:
        full = spec.mtu_bytes + ETHERNET_BYTES + extra_bytes
        result.cell_bytes, result.full_packet_cells = cell_bytes, -(-full // cell_bytes)
    for part in parts(cards, "rx_mono_ns", "enqueue_mono_ns", "sojourn_ns", "egress_port"):
        delay = part["rx_mono_ns"] - part["enqueue_mono_ns"] - part["sojourn_ns"]
        least, most = result.delay_ns or (int(delay[0]), int(delay[0]))
        result.delay_ns = min(int(delay.min()), least), max(int(delay.max()), most)
        ports.update(np.unique(part["egress_port"]).tolist())
    bottleneck = switch.bottleneck_port
    for port in sorted(ports) if bottleneck is None else [bottleneck] * bool(ports):
        queue = _Queue(cards, port, spec.rate_bps, directory)
        if cell_bytes and len(queue.rows):
            result.first_depth_cells = max(result.first_depth_cells, int(queue.columns["depth_cells"][0]))
            for error in queue.errors(cell_bytes, extra_bytes, directory):
                result.errors_cells.add(error)
        gaps, lost = queue.gaps()
        result.gaps_mono_ns += gaps
        result.lost_packets += lost
        queue.fill(cards)
        if bottleneck is not None:
            result.gaps = filed(directory, queue.back_to_back())
    return result


class _Queue:
    """The admitted packets of one queue, in the order of their numbers, which is the order of departures. A restarted
    switch numbers from 0 again. Times are those of `timeline_ns`.
    """

    def __init__(self, cards: Columns, port: int, rate_bps: int, directory: Path) -> None:
        self._port = port
        self.columns = columns = filed(directory, self._packets(cards, rate_bps))
        sort_file(directory, columns, "number")
        self.rows = columns["row"]
        ended = came_before = np.iinfo(np.int64).min
        for rows in slabs(len(self.rows)):
            part = rows_of(columns, slice(rows.start, rows.stop + 1))  # and the first of the next slab
            came, begins, ends = part["came"], part["begins"], part["ends"]
            late = begins[1:] - ends[:-1]
            allowed = 1 + (ends - begins)[:-1] * RATE_TOLERANCE
            follows = (late <= 0) | ((late <= allowed) & (begins[1:] > came[1:]))
            ends[:-1][follows] = begins[1:][follows]
            count = rows.stop - rows.start
            self._write("sojourn", rows, (ends - came)[:count])
            ends = np.maximum.accumulate(np.append(ended, ends[:count]))
            arrivals = np.maximum.accumulate(np.append(came_before, came[:count]))
            ended, came_before = ends[-1], arrivals[-1]
            self._write("ends", rows, ends[1:])
            self._write("arrivals", rows, arrivals[1:])  # ascending: a queue is first in, first out
        self._bytes_before = sums_before(columns["bytes"], directory)
        for rows in slabs(len(self.rows)):
            row = np.arange(rows.start, rows.stop)
            gone = np.minimum(np.searchsorted(columns["ends"], columns["arrivals"][rows], side="right"), row)
            self._write("gone", rows, gone)
            self._write("packets_before", rows, row - gone)
            self._write("bytes_before", rows, self._bytes_before[rows] - self._bytes_before[gone])

    def _packets(self, cards: Columns, rate_bps: int) -> Iterator[Columns]:
        unwrapped = Unwrapped(1 << 8)  # as many parts as `clock_part` has room for
        for part in self._of_port(cards, False, "card_seq", "clock_part", "timeline_ns", "sojourn_ns", "packet_bytes",
                                  "enqueue_mono_ns", "depth_cells"):  # fmt: skip
            groups = Groups.of(part["clock_part"])
            number = np.empty(len(part["row"]), dtype=np.int64)
            number[groups.rows] = unwrapped.add(groups, part["card_seq"][groups.rows])
            begins = part["timeline_ns"] + part["sojourn_ns"]
            link_bytes = wire_bytes(part["packet_bytes"])
            link_bytes[dropped(part)] = 0
            more = ("sojourn", "arrivals", "gone", "packets_before", "bytes_before")
            yield {
                "number": (part["clock_part"].astype(np.int64) << PART_SHIFT) + number, "row": part["row"],
                "came": part["timeline_ns"], "begins": begins, "bytes": part["packet_bytes"].astype(np.int64),
                "link_bytes": link_bytes, "ends": begins + link_bytes * 8_000_000_000 // rate_bps,
                "placed": part["enqueue_mono_ns"], "depth_cells": part["depth_cells"].astype(np.int64),
                **dict.fromkeys(more, np.zeros_like(begins)),
            }  # fmt: skip

    def _of_port(self, cards: Columns, at_ingress: bool, *names: str) -> Iterator[Columns]:
        """The packets of the port that the traffic manager refused, or the others, and their rows in `cards`."""
        first = 0
        for part in parts(cards, "egress_port", "flags", *names):
            is_refused = (part["flags"] & CARD["POSTCARD_AT_INGRESS"]) != 0
            mine = np.flatnonzero((part["egress_port"] == self._port) & (is_refused == at_ingress))
            count, part = len(part["flags"]), rows_of(part, mine)
            yield part | {"row": first + mine}
            first += count

    def _write(self, name: str, rows: slice, values: np.ndarray) -> None:
        cast(Column, self.columns[name]).write(rows.start, values)

    def errors(self, cell_bytes: int, extra_bytes: int, directory: Path) -> Iterator[np.ndarray]:
        """|reported - recounted| depth in cells of each packet."""
        sizes = parts(self.columns, "bytes")
        cells = filed(directory, ({"cells": -(-(part["bytes"] + extra_bytes) // cell_bytes)} for part in sizes))[
            "cells"
        ]
        before = sums_before(cells, directory)
        for rows in slabs(len(self.rows)):
            depth = before[rows] - before[self.columns["gone"][rows]]
            yield np.abs(self.columns["depth_cells"][rows] - depth)

    def fill(self, cards: Columns) -> None:
        """Writes depths and sojourn times of the admitted packets, and depths of the refused ones."""
        exact = CARD["POSTCARD_DEPTH_EXACT"]
        for part in parts(self.columns, "row", "packets_before", "bytes_before", "sojourn"):
            row = part["row"]
            cards["depth_packets"][row], cards["depth_bytes"][row] = part["packets_before"], part["bytes_before"]
            cards["sojourn_ns"][row], cards["depth_unit"][row] = part["sojourn"], exact
        for part in self._of_port(cards, True, "timeline_ns"):
            if len(row := part["row"]):
                cards["depth_packets"][row], cards["depth_bytes"][row] = self._deepest(part["timeline_ns"])
                cards["depth_unit"][row] = exact

    def _deepest(self, until: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Depths in packets and in bytes of packets that were refused by these times."""
        since = until - DEFLECTION_NS
        arrivals, before = self.columns["arrivals"], self._bytes_before
        first, last = (np.searchsorted(arrivals, times, side="right") for times in (since, until))
        gone = np.minimum(np.searchsorted(self.columns["ends"], since, side="right"), first)
        deepest, deepest_bytes = first - gone, before[first] - before[gone]
        came_since = np.flatnonzero(last > first)
        if len(came_since):
            # The depth right after each packet's arrival. The low bits hold the packet's row, to look up its bytes.
            begin, end = int(first[came_since].min()), int(last[came_since].max())
            behind = (self.columns["packets_before"][begin:end] + 1 << CANDIDATE_BITS) | np.arange(begin, end)
            spans = np.stack((first[came_since], last[came_since]), axis=1).ravel() - begin
            most = np.maximum.reduceat(np.append(behind, 0), spans)[::2]
            deeper = most >> CANDIDATE_BITS > deepest[came_since]
            chosen, which = came_since[deeper], most[deeper] & ((1 << CANDIDATE_BITS) - 1)
            deepest[chosen] = most[deeper] >> CANDIDATE_BITS
            deepest_bytes[chosen] = self.columns["bytes_before"][which] + self.columns["bytes"][which]
        return deepest, deepest_bytes

    def _neighbours(self, *names: str) -> Iterator[Columns]:
        """The named columns, slab by slab, each slab with the first row of the next; not of less than two rows."""
        for rows in slabs(len(self.rows) - 1):
            yield rows_of({name: self.columns[name] for name in names}, slice(rows.start, rows.stop + 1))

    def back_to_back(self) -> Iterator[Columns]:
        """`gap_ns` from the start of each transmission to the start of the next, and its `bytes` on the link, where the
        next packet arrived before the transmission's end, and no packet between the two lacks a postcard.
        """
        yield {"gap_ns": self.rows[:0], "bytes": self.rows[:0]}
        for part in self._neighbours("number", "came", "begins", "ends", "link_bytes"):
            waited = (part["came"][1:] < part["ends"][:-1]) & (part["link_bytes"][:-1] > 0)
            waited &= np.diff(part["number"]) == 1
            yield {"gap_ns": np.diff(part["begins"])[waited], "bytes": part["link_bytes"][:-1][waited]}

    def gaps(self) -> tuple[list[tuple[int, int]], int]:
        """(spans on CLOCK_MONOTONIC in which packets without postcards may have been in the queue, number of these
        packets).
        """
        spans: list[tuple[int, int]] = []
        lost = 0
        for part in self._neighbours("number", "placed", "sojourn"):
            same_clock = np.diff(part["number"] + HALF_PART >> PART_SHIFT) == 0
            before = np.flatnonzero((np.diff(part["number"]) > 1) & same_clock)
            lost += int((np.diff(part["number"])[before] - 1).sum())
            since, until = part["placed"][before], part["placed"][before + 1] + part["sojourn"][before + 1]
            spans += zip(since.tolist(), until.tolist(), strict=True)
        return spans, lost
