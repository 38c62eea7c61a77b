# SPDX-License-Identifier: MIT
"""Independent models of a port with several queues: lists and exact fractions, nothing shared with the switch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from .core_driver import wire_bits

Waiting = Sequence[Sequence[int]]  # of each queue: the bytes of its packets, the oldest first
Pick = Callable[[Waiting], int | None]  # the queue that takes the free link; None: no packet waits


@dataclass(frozen=True)
class Arrival:
    at_ns: int
    size: int
    queue: int


@dataclass(frozen=True)
class Departure:
    """A packet in the order of departures, with the length that its queue had before and after it."""

    index: int  # of its arrival
    at_ns: int
    found_packets: int
    found_bytes: int
    left_packets: int


def strict(waiting: Waiting) -> int | None:
    return max((number for number, queue in enumerate(waiting) if queue), default=None)


def round_robin(quanta: Sequence[int]) -> Pick:
    """Deficit round robin: each visit to a queue with packets adds its quantum, and ends when the queue's next packet
    is larger than what is left. A queue without packets has nothing left.
    """
    waiting: Waiting = []

    def service() -> Iterator[int | None]:
        left = [0] * len(quanta)
        while True:
            for number, quantum in enumerate(quanta):
                left[number] += quantum if waiting[number] else -left[number]
                while waiting[number] and waiting[number][0] <= left[number]:
                    left[number] -= waiting[number][0]
                    yield number
                    if not waiting[number]:
                        left[number] = 0
                while not any(waiting):
                    yield None

    served = service()

    def pick(now_waiting: Waiting) -> int | None:
        nonlocal waiting
        waiting = now_waiting
        return next(served)

    return pick


class FlowQueues:
    """RFC 8290, section 4.2, as a Pick: a queue that comes into use is served before those that had their quantum."""

    def __init__(self, quanta: Sequence[int]) -> None:
        self.quanta = quanta
        self.credit = [0] * len(quanta)
        self.new: list[int] = []
        self.old: list[int] = []

    def came(self, queue: int) -> None:
        if queue not in self.new + self.old:
            self.credit[queue] = self.quanta[queue]
            self.new.append(queue)

    def sent(self, queue: int, size: int) -> None:
        self.credit[queue] -= size

    def __call__(self, waiting: Waiting) -> int | None:
        while self.new or self.old:
            served = self.new or self.old
            queue = served[0]
            if self.credit[queue] > 0 and waiting[queue]:
                return queue
            was_new = bool(self.new)
            served.pop(0)
            if self.credit[queue] <= 0:
                self.credit[queue] += self.quanta[queue]
                self.old.append(queue)
            elif was_new:
                self.old.append(queue)
        return None


def shared_link(
    arrivals: Sequence[Arrival], queues: int, rate_bps: int, pick: Pick, limit: int, drops: Callable[[int], bool]
) -> list[Departure]:
    """All departures from a link of `rate_bps`. Each queue holds `limit` packets. A packet for which `drops` is true
    leaves the queue when its time on the link is over, but the link's time is that of the next packet.
    """
    waiting: list[list[int]] = [[] for _ in range(queues)]  # indexes of arrivals
    found: dict[int, tuple[int, int]] = {}
    done: list[Departure] = []
    link_free = Fraction(0)
    on_link: tuple[int, int, Fraction] | None = None  # queue, departure, exact end

    def start(now_ns: int) -> None:
        nonlocal on_link
        chosen = pick([[arrivals[index].size for index in queue] for queue in waiting])
        on_link = None
        if chosen is not None:
            packet = arrivals[waiting[chosen][0]]
            end = max(link_free, Fraction(packet.at_ns)) + Fraction(wire_bits(packet.size) * 10**9, rate_bps)
            on_link = (chosen, now_ns, Fraction(now_ns)) if end < now_ns else (chosen, int(end), end)

    def leave(queue: int, at_ns: int, end: Fraction) -> None:
        nonlocal link_free
        index = waiting[queue].pop(0)
        done.append(Departure(index, at_ns, *found[index], len(waiting[queue])))
        if not drops(index):
            link_free = end
            if isinstance(pick, FlowQueues):
                pick.sent(queue, arrivals[index].size)
        start(at_ns)

    for index, arrival in enumerate(arrivals):
        while on_link and on_link[1] <= arrival.at_ns:
            leave(*on_link)
        own = waiting[arrival.queue]
        if len(own) < limit:
            found[index] = len(own), sum(arrivals[other].size for other in own)
            own.append(index)
            if isinstance(pick, FlowQueues):
                pick.came(arrival.queue)
            if not on_link:
                start(arrival.at_ns)
    while on_link:
        leave(*on_link)
    return done


def paced(arrivals: Sequence[Arrival], rates_pps: Sequence[int], limit: int) -> list[Departure]:
    """simple_switch's queues: a packet leaves 1 / rate after the packet before it in its queue, and not before it
    came. Of packets that wait for the same ns, the highest queue's leaves first.
    """
    last = [0] * len(rates_pps)
    waiting: list[tuple[int, int, int, int, int]] = []  # departure, -queue, index, found packets and bytes
    done: list[Departure] = []

    def leave_until(end_ns: int) -> None:
        while waiting and min(waiting)[0] <= end_ns:
            first = at_ns, queue, index, packets, size = min(waiting)
            waiting.remove(first)
            done.append(Departure(index, at_ns, packets, size, sum(other[1] == queue for other in waiting)))

    for index, arrival in enumerate(arrivals):
        leave_until(arrival.at_ns)
        own = [arrivals[entry[2]].size for entry in waiting if entry[1] == -arrival.queue]
        if len(own) < limit:
            gap_ns = 10**9 // rates_pps[arrival.queue] if rates_pps[arrival.queue] else 0
            last[arrival.queue] = max(arrival.at_ns, last[arrival.queue] + gap_ns)
            waiting.append((last[arrival.queue], -arrival.queue, index, len(own), sum(own)))
    leave_until(2**62)
    return done
