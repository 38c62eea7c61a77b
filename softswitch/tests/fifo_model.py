# SPDX-License-Identifier: MIT
"""An independent model of one queue and its link: exact fractions, a list, nothing shared with the switch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from .core_driver import wire_bits


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
    rate_bps: int,
    admits: Callable[[int, int, int], bool] = lambda index, packets, bytes: True,
    drops_at_egress: Callable[[int], bool] = lambda index: False,
) -> list[Fate]:
    """The fate of each of `packets`, (arrival ns, frame bytes) by arrival, in a FIFO queue with a link of rate_bps.

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
        end = max(Fraction(arrival_ns), link_free) + Fraction(wire_bits(length) * 10**9, rate_bps)
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
