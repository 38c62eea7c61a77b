# SPDX-License-Identifier: MIT
"""Which way packets of one capture went over the link. Whoever sends to somebody is on the other side of the link, so
the two sides are a colouring of hosts with two colours: of Ethernet addresses if the capture has them (two routers, or
two switches with their hosts), else of IP addresses. Groups that never talk to each other are coloured apart. Forward
is the way with more bytes, of each group: on a link that mostly delivers data, groups agree in it.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from analysis.read.columns import Columns

FORWARD, BACK, NEITHER = 0, 1, 2
MOST_PAIRS = 1 << 20  # of hosts; those beyond are on no side
GROUP_ADDRESS = np.uint64(1 << 40)  # the bit of Ethernet addresses of several hosts
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class Sides:
    """`add` all packets, `settle`, then ask for the `way` of packets."""

    def __init__(self) -> None:
        self.groups = 0  # that never talk to each other
        self.has_link_addresses = False
        self._bytes: Counter[tuple[int, int]] = Counter()  # by the hosts of a pair, from and to
        self._hosts = np.empty(0, dtype=np.uint64)
        self._colours = np.empty(0, dtype=np.uint8)

    def add(self, packets: Columns) -> None:
        src, dst = _hosts(packets)
        order = np.lexsort((dst, src))
        src, dst, sizes = src[order], dst[order], packets["ip_bytes"][order].astype(np.int64)
        if not len(src):
            return
        starts = np.flatnonzero((np.diff(src, prepend=~src[0]) != 0) | (np.diff(dst, prepend=~dst[0]) != 0))
        sums = np.add.reduceat(sizes, starts).tolist()
        for pair in zip(src[starts].tolist(), dst[starts].tolist(), sums, strict=True):
            if len(self._bytes) < MOST_PAIRS or pair[:2] in self._bytes:
                self._bytes[pair[:2]] += pair[2]
        self.has_link_addresses |= bool((packets["src_mac"] != packets["dst_mac"]).any())

    def settle(self) -> None:
        """Colours hosts, pairs with the most bytes first: those that contradict them later are on one side."""
        parent: dict[int, tuple[int, int]] = {}  # of a host: another of its group, and whether it is opposite

        def root(host: int) -> tuple[int, int]:
            path, parity = [], 0
            parent.setdefault(host, (host, 0))
            while parent[host][0] != host:
                path.append(host)
                host = parent[host][0]
            for each in reversed(path):
                parity ^= parent[each][1]
                parent[each] = (host, parity)
            return host, parity

        for (src, dst), _ in self._bytes.most_common():
            (one, one_parity), (other, other_parity) = root(src), root(dst)
            if one != other:
                parent[one] = (other, one_parity ^ other_parity ^ 1)
        heavier: Counter[int] = Counter()  # bytes from hosts of parity 0, less those from parity 1, by group
        for (src, dst), amount in self._bytes.items():
            group, parity = root(src)
            if root(dst)[1] != parity:
                heavier[group] += amount if parity == 0 else -amount
        self.groups = len(heavier)
        hosts = np.array(sorted(parent), dtype=np.uint64)
        colours = [root(host)[1] ^ (heavier[root(host)[0]] < 0) for host in hosts.tolist()]
        self._hosts, self._colours = hosts, np.array(colours, dtype=np.uint8)

    def way(self, packets: Columns) -> np.ndarray:
        """FORWARD, BACK or NEITHER of each packet (uint8)."""
        src, dst = (self._colour(hosts) for hosts in _hosts(packets))
        return np.where((src > 1) | (dst > 1) | (src == dst), NEITHER, src).astype(np.uint8)

    def _colour(self, hosts: np.ndarray) -> np.ndarray:
        at = np.minimum(np.searchsorted(self._hosts, hosts), len(self._hosts) - 1)
        return np.where(self._hosts[at] == hosts, self._colours[at], 2)


def _hosts(packets: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (uint64) of senders and receivers. A packet to several hosts has none of them as its receiver, but a
    number of its own for each sender.
    """
    ends = []
    has_mac = packets["src_mac"] != packets["dst_mac"]
    for end in ("src", "dst"):
        address = (packets[f"{end}_addr_hi"] * _MULTIPLIER) ^ packets[f"{end}_addr_lo"]
        address = (address ^ (address >> np.uint64(31))) * _MULTIPLIER
        ends.append(np.where(has_mac, packets[f"{end}_mac"], address | np.uint64(1 << 63)))
    several = has_mac & (packets["dst_mac"] & GROUP_ADDRESS != 0)
    return ends[0], np.where(several, ends[0] | np.uint64(1 << 62), ends[1])
