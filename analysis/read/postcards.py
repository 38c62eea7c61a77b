# SPDX-License-Identifier: MIT
"""Packets from columns of postcards: masks of dropped and admitted packets, bytes on the link."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from analysis.read.columns import Columns, in_order, parts, rows_of
from lib.frames import ETHERNET_BYTES, IPV6_BYTES, LEAST_FRAME_BYTES, LONGEST_TCP_BYTES, WIRE_EXTRA_BYTES
from wire import wire

CARD = wire.POSTCARD.const
NEVER_NS = -(1 << 62)  # before all times
POLICY_VALUE = "policy_value"  # the column in place of the threshold if a policy of the user's decides
NO_DATA_BYTES = ETHERNET_BYTES + IPV6_BYTES + LONGEST_TCP_BYTES  # any longer frame without IP options carries data


def dropped(queue: Columns) -> np.ndarray:
    """Mask of the packets that were dropped, at ingress or at egress."""
    return (queue["flags"] & CARD["POSTCARD_DROPPED"]) != 0


def admitted(queue: Columns) -> np.ndarray:
    """Mask of the packets that entered the queue: all but those dropped at ingress."""
    at_ingress = np.uint8(CARD["POSTCARD_DROPPED"] | CARD["POSTCARD_AT_INGRESS"])
    return (queue["flags"] & at_ingress) != at_ingress


def admissions(queue: Columns, *names: str, came: str = "enqueue_mono_ns") -> Iterator[Columns]:
    """The named columns of the packets that entered the queue, in the order of their departures, slab by slab; with
    `came_ns` from the column `came`, and `left_ns`.
    """

    def entered(cards: Columns) -> Columns:
        cards = rows_of(cards, admitted(cards))
        came_ns = cards[came].astype(np.int64)
        return cards | {"came_ns": came_ns, "left_ns": came_ns + cards["sojourn_ns"]}

    return in_order(map(entered, parts(queue, "flags", came, "sojourn_ns", *names)), "left_ns", "came_ns")


def has_data(cards: Columns) -> np.ndarray:
    """Mask of the TCP packets that surely carry data."""
    return ((cards["flags"] & CARD["POSTCARD_HAS_TCP"]) != 0) & (cards["packet_bytes"] > NO_DATA_BYTES)


def wire_bytes(packet_bytes: np.ndarray) -> np.ndarray:
    """Bytes that frames take on the link (int64): at least 60, and 24 more for FCS, preamble and gap."""
    return np.maximum(packet_bytes, LEAST_FRAME_BYTES).astype(np.int64) + WIRE_EXTRA_BYTES


def queue_keys(cards: Columns) -> np.ndarray:
    """A number (uint64) for the queue of each postcard: its switch, egress port and queue. A column that the source of
    an imported run lacks is 0.
    """
    keys = cards["egress_port"].astype(np.uint64) << np.uint64(8)
    for name, shift in (("switch_id", 24), ("queue_id", 0)):
        if name in cards:
            keys |= cards[name].astype(np.uint64) << np.uint64(shift)
    return keys


def busiest(keys: Iterable[np.ndarray]) -> tuple[int, dict[int, int]]:
    """The queue with the most postcards, of two such queues the one with the lower key (0: no postcards), and the
    number of postcards of each queue; from the keys of postcards, slab by slab.
    """
    counts: Counter[int] = Counter()
    for part in keys:
        counts.update(dict(zip(*(values.tolist() for values in np.unique(part, return_counts=True)), strict=True)))
    return max(counts, key=lambda key: (counts[key], -key), default=0), counts


class PostcardArrivals:
    """Finds loaded postcards by their numbers, for readers that go through the raw file again."""

    def __init__(self, cards: Columns) -> None:
        self._ports = np.unique(_ports(cards))
        key = self._key(cards)
        order = np.argsort(key, kind="stable")
        self._keys, self._rows = key[order], order

    def rows(self, cards: Columns) -> np.ndarray:
        """Rows of the loaded postcards with the numbers of `cards`; the first row if two postcards share a number."""
        return self._rows[np.searchsorted(self._keys, self._key(cards))]

    def _key(self, cards: Columns) -> np.ndarray:
        """A number for each postcard of a run: its switch and port, whether ingress made it, its number."""
        at_ingress = (cards["flags"].astype(np.uint64) & np.uint64(CARD["POSTCARD_AT_INGRESS"])) != 0
        key = np.searchsorted(self._ports, _ports(cards)).astype(np.uint64) << np.uint64(33)
        return key | at_ingress.astype(np.uint64) << np.uint64(32) | cards["card_seq"].astype(np.uint64)


def _ports(cards: Columns) -> np.ndarray:
    """A number for the switch and egress port of each postcard, by which switches number postcards."""
    return cards["switch_id"].astype(np.uint64) << np.uint64(16) | cards["egress_port"].astype(np.uint64)


def misspaced(queue: Columns, rate_bps: int, times: str = "enqueue_mono_ns") -> int:
    """Number of packets whose transmission did not take exactly wire bits / rate. `times` names the column of arrival
    times in the switch's own ns.

    The switch counts whole ns and carries the remainder while the link is busy. A transmission takes the quotient of
    wire bits and rate, or 1 ns more if there is a remainder. Over a busy period the sum of the extra ns equals the sum
    of the remainders, to within 1 ns.
    """
    wrong, before, spare = 0, NEVER_NS, 0
    for cards in admissions(queue, "packet_bytes", came=times):
        came, left = cards["came_ns"], cards["left_ns"]
        if not len(left):
            continue
        quotient, remainder = np.divmod(wire_bytes(cards["packet_bytes"]) * 8_000_000_000, rate_bps)
        free = np.append(before, left[:-1])
        idle = came > free
        more = left - np.maximum(came, free) - quotient
        bad = (more < 0) | (more > ~idle & (remainder > 0))
        # The carry after each packet, counted from the start of its busy period, or from the last wrong packet in it.
        more[bad] = 0
        chain = np.maximum.accumulate(np.where(idle | bad, np.arange(len(left)), -1))
        carry = spare + np.cumsum(remainder - more * rate_bps)
        drift = np.where(chain < 0, carry, carry - carry[chain])
        wrong += int(np.count_nonzero(bad | (np.abs(drift) > rate_bps)))
        before, spare = int(left[-1]), int(drift[-1])
    return wrong
