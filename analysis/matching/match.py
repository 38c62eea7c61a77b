# SPDX-License-Identifier: MIT
"""Matches packets before a queue with packets behind it by the fields that a router does not change.

Both sides come in slabs, in the order of time, on one clock. The memory is that of the packets of `Limits.most_ns` on
each side and of some slabs. Packets with equal fields (a retransmission with the same IP id, datagrams without one)
are told apart by time and order: the packet that left is the one whose sojourn is nearest to that of the departure
before it, and equal packets leave in the order in which they arrived.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from analysis.read.columns import SLAB_ROWS, Columns, joined, rows_of
from analysis.read.postcards import NEVER_NS

# The columns of both sides that must be equal. A column that neither side has is not compared.
KEY = (
    "src_addr_hi", "src_addr_lo", "dst_addr_hi", "dst_addr_lo", "src_port", "dst_port", "ip_protocol", "ip_id",
    "tcp_seq", "tcp_ack", "tcp_flags", "payload_bytes", "options_digest",
)  # fmt: skip
# A program may write into the IP id. Packets that nothing else matches are compared without it.
KEYS = {"_key": KEY, "_key_without_id": tuple(name for name in KEY if name != "ip_id")}
ECN_CE = 3
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio, odd


class Limits(NamedTuple):
    """A departure lies in [arrival + least_ns, arrival + most_ns]. `least_ns` < 0 is for clocks that are not aligned
    yet. `until_ns`: the side behind was recorded until then; None: until its last packet. `keeps_id`: nobody on the way
    writes the IP id, so a packet with another id is another packet, such as a copy that TCP sent again.
    """

    most_ns: int
    least_ns: int = 0
    until_ns: int | None = None
    keeps_id: bool = False


class Matcher:
    """Iterates over (packets, only_behind), slab by slab.

    `packets`: columns of the packets before the queue, in the order of arrivals, with `departure_ns` (int64; NEVER_NS:
    it never came out), `dropped` and `marked` (bool: CE behind the queue, and not before). `only_behind`: columns of
    the packets that nobody saw before the queue. Either may be empty. The counts are complete after the last slab.
    """

    pairs = drops = marks = only_behind = 0
    ambiguous = 0  # departures with several equal arrivals
    changed = 0  # of the pairs: those whose IP id was changed
    undecided = 0  # of the drops: arrivals that may have left after the end of the recording

    def __init__(self, before: Iterable[Columns], behind: Iterable[Columns], limits: Limits) -> None:
        """Slabs with `time_ns` (int64), `ecn` (0 to 3) and columns of KEY; further columns of `before` pass through."""
        self._before, self._behind, self._limits = iter(before), behind, limits
        self._waiting: Columns = {}
        self._parts: list[Columns] = []  # read, and not yet at the end of those that wait
        self._rows, self._last_ns = 0, NEVER_NS  # of both
        self._more = True
        self._sojourn_ns: int | None = None  # of the last departure

    def __iter__(self) -> Iterator[tuple[Columns, Columns]]:
        last_ns = NEVER_NS
        nothing: Columns = {}
        for slab in self._behind:
            departures = slab
            while len(left_ns := departures["time_ns"]):
                yield from ((early, nothing) for early in self._read_until(left_ns))
                known = self._last_ns + self._limits.least_ns  # all arrivals of departures before that are read
                ready = int(np.searchsorted(left_ns, known)) if self._more else len(left_ns)
                now, departures = rows_of(departures, slice(ready)), rows_of(departures, slice(ready, None))
                last_ns = int(now["time_ns"][-1])
                self._join()
                alone = self._pair(now)
                self.only_behind += int(np.count_nonzero(alone))
                yield self._decided(last_ns - self._limits.most_ns), rows_of(now, alone)
        until_ns = last_ns if self._limits.until_ns is None else self._limits.until_ns
        while self._rows or self._more:
            self._join()
            if self._waiting:
                late = self._waiting["time_ns"] >= until_ns - self._limits.most_ns
                self.undecided += int(np.count_nonzero(late & (self._waiting["departure_ns"] == NEVER_NS)))
                yield self._decided(int(self._waiting["time_ns"][-1]) + 1), nothing
            self._read()

    def _read_until(self, left_ns: np.ndarray) -> Iterator[Columns]:
        """Reads the arrivals of these departures, or of the first of them if all would be more than SLAB_ROWS. Yields
        those that came too early for any.
        """
        first_ns, last_ns = (int(time) - self._limits.least_ns for time in left_ns[[0, -1]])
        while self._more and (self._last_ns <= first_ns or (self._last_ns <= last_ns and self._rows < SLAB_ROWS)):
            self._read()
            if self._rows >= SLAB_ROWS and self._first_ns() < int(left_ns[0]) - self._limits.most_ns:
                self._join()
                yield self._decided(int(left_ns[0]) - self._limits.most_ns)

    def _first_ns(self) -> int:
        return int((self._waiting or self._parts[0])["time_ns"][0])

    def _read(self) -> None:
        part = next(self._before, None)
        self._more = part is not None
        if part is None or not len(part["time_ns"]):
            return
        rows = len(part["time_ns"])
        of_pair = {"departure_ns": np.full(rows, NEVER_NS), "marked": np.zeros(rows, dtype=bool)}
        self._parts.append(part | {name: keys(part, fields) for name, fields in KEYS.items()} | of_pair)
        self._rows, self._last_ns = self._rows + rows, int(part["time_ns"][-1])

    def _join(self) -> None:
        if self._parts:
            self._waiting = joined(*([self._waiting] if self._waiting else []), *self._parts)
            self._parts = []

    def _decided(self, until_ns: int) -> Columns:
        """Takes the packets that arrived before `until_ns` from those that wait."""
        if not self._waiting:
            return {}
        count = int(np.searchsorted(self._waiting["time_ns"], until_ns))
        ready, self._waiting = rows_of(self._waiting, slice(count)), rows_of(self._waiting, slice(count, None))
        self._rows -= count
        if not self._rows:
            self._waiting = {}
        ready = {name: column for name, column in ready.items() if name not in KEYS}
        ready["dropped"] = ready["departure_ns"] == NEVER_NS
        self.drops += int(np.count_nonzero(ready["dropped"]))
        self.pairs += int(np.count_nonzero(~ready["dropped"]))
        self.marks += int(np.count_nonzero(ready["marked"]))
        return ready

    def _pair(self, departures: Columns) -> np.ndarray:
        """Gives departures to the packets that wait; returns a mask of the departures without one."""
        left_ns = departures["time_ns"]
        arrival = np.full(len(left_ns), -1)
        if not self._waiting:
            return arrival < 0
        for name, fields in KEYS.items():
            alone = np.flatnonzero(arrival < 0)
            if not len(alone) or (fields != KEY and self._limits.keeps_id):
                break
            self._pair_by(name, arrival, left_ns, alone, keys(rows_of(departures, alone), fields))
            paired = alone[arrival[alone] >= 0]
            rows = arrival[paired]
            self.changed += len(paired) if fields != KEY else 0
            self._waiting["departure_ns"][rows] = left_ns[paired]
            came_marked = self._waiting["ecn"][rows] == ECN_CE
            self._waiting["marked"][rows] = (departures["ecn"][paired] == ECN_CE) & ~came_marked
        paired = np.flatnonzero(arrival >= 0)
        if len(paired):
            self._sojourn_ns = int(left_ns[paired[-1]] - self._waiting["time_ns"][arrival[paired[-1]]])
        return arrival < 0

    def _pair_by(self, name: str, arrival: np.ndarray, left_ns: np.ndarray, alone: np.ndarray, of: np.ndarray) -> None:
        """Sets `arrival` of the departures `alone`, whose keys are `of`, to packets that wait with this key."""
        free = np.flatnonzero(self._waiting["departure_ns"] == NEVER_NS)
        free = free[np.argsort(self._waiting[name][free], kind="stable")]
        first, last = (np.searchsorted(self._waiting[name][free], of, side) for side in ("left", "right"))
        _, group, of_group = np.unique(of, return_inverse=True, return_counts=True)
        one = (last - first == 1) & (of_group[group] == 1)
        certain, rows = alone[one], free[first[one]]
        may_be = self._may_be(rows, left_ns[certain])
        arrival[certain[may_be]] = rows[may_be]
        several = np.flatnonzero((last > first) & ~one)
        self._tell_apart(arrival, left_ns, free, *(of[several] for of in (alone, first, last, group)))

    def _may_be(self, arrival: np.ndarray, left_ns: np.ndarray) -> np.ndarray:
        sojourn_ns = left_ns - self._waiting["time_ns"][arrival]
        return (sojourn_ns >= self._limits.least_ns) & (sojourn_ns <= self._limits.most_ns)

    def _tell_apart(
        self, arrival: np.ndarray, left_ns: np.ndarray, free: np.ndarray, several: np.ndarray,
        first: np.ndarray, last: np.ndarray, group: np.ndarray,
    ) -> None:  # fmt: skip
        """Chooses the arrivals of the departures `several`, which have equal fields with others. For each of these:
        `first` and `last` are the places in `free` of the first arrival with its fields and behind the last, `group` is
        a number for its fields.
        """
        came_ns, limits = self._waiting["time_ns"][free], self._limits
        certain = np.flatnonzero(arrival >= 0)
        sojourn_ns, of = self._sojourn_ns, -1  # of the departure before, and its row
        taken: dict[int, int] = {}  # behind the place of the last arrival with these fields
        each = (column.tolist() for column in (several, np.searchsorted(certain, several), first, last, group))
        for at, number, start, stop, fields in zip(*each, strict=True):
            left = int(left_ns[at])
            begin = bisect_left(came_ns, left - limits.most_ns, max(start, taken.get(fields, 0)), stop)
            end = bisect_right(came_ns, left - limits.least_ns, begin, stop)
            if begin == end:
                continue
            self.ambiguous += end - begin > 1
            if number and certain[number - 1] > of:
                before = certain[number - 1]
                sojourn_ns = int(left_ns[before] - self._waiting["time_ns"][arrival[before]])
            place = begin
            if sojourn_ns is not None:
                wanted = left - sojourn_ns
                later = min(bisect_left(came_ns, wanted, begin, end), end - 1)
                nearest = min(max(later - 1, begin), later, key=lambda row: abs(came_ns[row] - wanted))
                place = bisect_left(came_ns, came_ns[nearest], begin, end)
            arrival[at], taken[fields] = free[place], place + 1
            sojourn_ns, of = left - int(came_ns[place]), at


def keys(packets: Columns, fields: Sequence[str] = KEY) -> np.ndarray:
    """A number (uint64) for the fields of each packet. Different packets have the same one by chance only: among
    10^7 packets, once in 400,000 captures.
    """
    result = np.zeros(len(packets["time_ns"]), dtype=np.uint64)
    for name in fields:
        if name in packets:
            result = (result ^ packets[name].astype(np.uint64)) * _MULTIPLIER
            result ^= result >> np.uint64(29)
    return result
