# SPDX-License-Identifier: MIT
"""An independent model of one queue and its link: exact fractions, a list, nothing shared with the switch."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from .core_driver import wire_bits

Rate = int | Callable[[Fraction, int], Fraction]


@dataclass(frozen=True)
class Fate:
    """The fate of one packet. departure_ns is None for a packet that was refused on arrival."""

    arrival_ns: int
    depth_packets: int
    depth_bytes: int
    departure_ns: int | None
    dropped: bool


def fifo(
    packets: Iterable[tuple[int, int]],
    rate: Rate,
    admits: Callable[[int, int, int], bool] = lambda index, packets, bytes: True,
    drops_at_egress: Callable[[int], bool] = lambda index: False,
) -> list[Fate]:
    """The fate of each of `packets`, (arrival ns, frame bytes) by arrival, in a FIFO queue. `rate` is the link's in
    bit/s, or a function of a transmission's start (ns) and wire bits that returns its end.

    departure = max(arrival, end of the previous transmission) + wire bits / rate, rounded down to a ns for events and
    kept exactly for the next packet. A packet counts as queued for arrivals before the ns of its departure. A packet
    that egress drops takes no link time. The next packet may then be overdue; it departs at the ns of the drop.
    """
    link_free = Fraction(0)
    last_event_ns = 0
    queue: list[tuple[int, int]] = []  # (departure ns, bytes) of admitted packets
    fates = []
    for index, (arrival_ns, length) in enumerate(packets):
        queue = [entry for entry in queue if entry[0] > arrival_ns]
        depth_packets, depth_bytes = len(queue), sum(size for _, size in queue)
        if not admits(index, depth_packets, depth_bytes):
            fates.append(Fate(arrival_ns, depth_packets, depth_bytes, None, True))
            continue
        start, bits = max(Fraction(arrival_ns), link_free), wire_bits(length)
        end = start + Fraction(bits * 10**9, rate) if isinstance(rate, int) else rate(start, bits)
        departure_ns = int(end)
        if departure_ns < last_event_ns:
            departure_ns = last_event_ns
            end = Fraction(departure_ns)
        last_event_ns = departure_ns
        dropped = drops_at_egress(index)
        if not dropped:
            link_free = end
        queue.append((departure_ns, length))
        fates.append(Fate(arrival_ns, depth_packets, depth_bytes, departure_ns, dropped))
    return fates


def stepped(steps: Sequence[tuple[int, int]]) -> Callable[[Fraction, int], Fraction]:
    """A link with these steps, (ns, bit/s): the end of a transmission by its start and bits."""

    def end(start: Fraction, bits: int) -> Fraction:
        left, at = Fraction(bits * 10**9), start
        for (_, rate_bps), (to_ns, _) in pairwise(steps):
            if at < to_ns:
                if left <= rate_bps * (to_ns - at):
                    return at + left / rate_bps
                left -= rate_bps * (to_ns - at)
                at = Fraction(to_ns)
        return at + left / steps[-1][1]

    return end


def mahimahi(packets: Iterable[tuple[int, int]], trace_ms: Sequence[int], start_ns: int) -> list[int]:
    """The departure (ns) of each of `packets`, (arrival ns, frame bytes) by arrival: what LinkQueue::rationalize of
    Mahimahi does, one opportunity of 1500 bytes of IP packets after the other.
    """
    arriving, waiting, departures = deque(packets), deque[int](), []
    base_ns = start_ns
    while True:
        for opportunity_ms in trace_ms:
            now_ns = base_ns + opportunity_ms * 10**6
            while arriving and arriving[0][0] < now_ns:
                waiting.append(arriving.popleft()[1] - 14)
            room = 1500
            while room and waiting:
                sent = min(room, waiting[0])
                waiting[0] -= sent
                room -= sent
                if not waiting[0]:
                    waiting.popleft()
                    departures.append(now_ns)
            if not arriving and not waiting:
                return departures
        base_ns += trace_ms[-1] * 10**6
