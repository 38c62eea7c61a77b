# SPDX-License-Identifier: MIT
"""The rate of the bottleneck's link over time: constant, or by a schedule. With delivery opportunities all bits are
those of IP packets, else bits on the wire; a packet that shares opportunities with others counts at its departure.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from analysis.read.postcards import NEVER_NS, admissions, wire_bytes
from analysis.read.raw import Columns
from lib import link_trace, regular
from lib.errors import InputError
from lib.frames import ETHERNET_BYTES
from lib.link_dynamics import OPPORTUNITY_BYTES, RateSchedule
from lib.terminal import one_line
from model.experiment import Experiment
from runs.names import RATE_DIRECTORY

BINS = 400  # of a curve of the rate
WORK = 10**9  # per bit: a ns at 1 bit/s
OF_OPPORTUNITY = 8 * OPPORTUNITY_BYTES


@dataclass(frozen=True)
class LinkRate:
    """Before `start_ns` the rate is `rate_bps`. Times are ns on CLOCK_MONOTONIC."""

    rate_bps: int
    schedule: RateSchedule | None = None
    start_ns: int = 0

    def bits(self, start_ns: np.ndarray, length_ns: np.ndarray | int) -> np.ndarray:
        """The bits (float64) that a link which is never idle sends in `length_ns` from `start_ns` on."""
        if self.schedule is None:
            return self.rate_bps * length_ns / 1e9 + np.zeros(len(start_ns))
        ends = self._work(start_ns + length_ns, np.float64), self._work(start_ns, np.float64)
        return (ends[0] - ends[1]) / WORK

    def capacity_bits(self, start_ns: int, length_ns: int) -> float:
        """The same of one time."""
        return float(self.bits(np.array([start_ns]), length_ns)[0])

    def link_bytes(self, packet_bytes: np.ndarray) -> np.ndarray:
        """The bytes (int64) that frames take of the link."""
        if self.schedule and self.schedule.opportunities:
            return np.maximum(packet_bytes.astype(np.int64) - ETHERNET_BYTES, 1)
        return wire_bytes(packet_bytes)

    def curve(self, start_ns: int, end_ns: int, least_ns: int) -> tuple[np.ndarray, np.ndarray]:
        """(ns, bit/s) from which on the rate holds, from start to end: each step of a few, else means over at most BINS
        times of at least `least_ns`.
        """
        assert self.schedule
        times = self._times
        steps = times[(times > start_ns) & (times < end_ns)]
        if self.schedule.opportunities or len(steps) > BINS:
            bins = max(1, min(BINS, (end_ns - start_ns) // least_ns))
            edges = np.linspace(start_ns, end_ns, bins + 1).astype(np.int64)
            rates = self.bits(edges[:-1], np.diff(edges)) * 1e9 / np.maximum(np.diff(edges), 1)
        else:
            edges = np.array([start_ns, *steps, end_ns])
            rates = self._rate(edges[:-1]).astype(np.float64)
        return edges, np.append(rates, rates[-1:])

    def misspaced(self, queue: Columns) -> int:
        """Number of packets that did not leave exactly when the schedule lets them.

        A packet takes the link's work from its start to its departure. Work that is done before the ns of a departure
        ends, or bytes that a packet leaves of its opportunity, go to the next packet if it waits. So the sum of the
        differences between this and the packets' own work stays, in each busy period, below the work of one ns, or of
        the opportunity.
        """
        assert self.schedule
        wrong, before_ns, was_before, spent = 0, NEVER_NS, False, 0
        by_opportunity = self.schedule.opportunities
        for cards in admissions(queue, "packet_bytes"):
            came, left = cards["came_ns"], cards["left_ns"]
            if not len(left):
                continue
            free = np.append(before_ns, left[:-1])
            begins = np.maximum(came, free)
            starts = came >= free if by_opportunity else came > free  # a busy period
            asked = self.link_bytes(cards["packet_bytes"]) * (8 * WORK)
            more = (self._work(left, np.uint64) - self._work(begins, np.uint64)).view(np.int64) - asked
            # With opportunities, any time will do before the schedule begins.
            before = (begins < self.start_ns) & by_opportunity
            more[before] = 0
            starts |= np.append(was_before, before[:-1])
            first = np.maximum.accumulate(np.where(starts, np.arange(len(left)), -1))
            total = spent + np.cumsum(more)
            spare = np.where(first < 0, total, total - total[first] + more[first])
            if by_opportunity:
                of_ns = (self._work(left, np.uint64) - self._work(left - 1, np.uint64)).view(np.int64)
                bad = ((spare < 0) | (spare >= of_ns)) & ~before
            else:
                bad = (spare > 0) | (-spare >= np.maximum(self._rate(left), 1))
            wrong += int(np.count_nonzero(bad))
            before_ns, was_before, spent = int(left[-1]), bool(before[-1]), int(spare[-1])
        return wrong

    @cached_property
    def _times(self) -> np.ndarray:
        """Of the entries, on CLOCK_MONOTONIC."""
        assert self.schedule
        return np.array([at_ns for at_ns, _ in self.schedule.entries], dtype=np.int64) + self.start_ns

    @cached_property
    def _values(self) -> np.ndarray:
        assert self.schedule
        return np.array([value for _, value in self.schedule.entries], dtype=np.int64)

    def _rate(self, times_ns: np.ndarray) -> np.ndarray:
        """Of steps, in bit/s (int64)."""
        index = np.searchsorted(self._times, times_ns, side="right") - 1
        return np.where(index < 0, self.rate_bps, self._values[np.maximum(index, 0)])

    def _work(self, times_ns: np.ndarray, kind: type) -> np.ndarray:
        """The work done from the start to each time: in float64, or exact in uint64 modulo 2^64."""
        assert self.schedule
        values: np.ndarray = self._values.astype(kind)
        times = self._times
        if self.schedule.opportunities:
            before = np.concatenate(([kind(0)], np.cumsum(values)))
            turns, rest = np.divmod(np.maximum(times_ns - self.start_ns, 0), times[-1] - self.start_ns)
            done = before[np.searchsorted(times - self.start_ns, rest, side="right")]
            return (turns.astype(kind) * before[-1] + done) * kind(OF_OPPORTUNITY * WORK)
        before = np.concatenate(([kind(0)], np.cumsum(values[:-1] * np.diff(times).astype(kind))))
        index = np.searchsorted(times, times_ns, side="right") - 1
        since = (times_ns - times[np.maximum(index, 0)]).astype(kind)  # below 0 before the start
        return np.where(index < 0, kind(self.rate_bps) * since, before[index] + values[index] * since)


def of(spec: Experiment, directory: Path, start_ns: int) -> LinkRate:
    """The rate of a repetition's link. Raises InputError if the trace of its rate is missing or another one."""
    if not spec.rate_trace:
        return LinkRate(spec.rate_bps, spec.rate_schedule, start_ns)
    path = directory / RATE_DIRECTORY / Path(spec.rate_trace.file).name
    try:
        text = regular.read_text(path)
        if hashlib.sha256(text.encode()).hexdigest() != spec.rate_trace.sha256:
            raise ValueError("its SHA-256 is not that in spec.yaml")
        return LinkRate(spec.rate_bps, link_trace.parse(text), start_ns)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {one_line(error)}; restore it, it is a raw file") from None
