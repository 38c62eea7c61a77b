# SPDX-License-Identifier: MIT
"""Numbers 5-tuples in order of appearance.

A million packets belong to a handful of flows: tables hold flow numbers, and each 5-tuple is stored once. A lookup
finds the number by hash and compares the full 5-tuple, so two flows never share a number.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

import numpy as np

# Source and destination address as two 64-bit halves each, then protocol << 32 | source port << 16 | destination port.
WORDS = 5
# Odd 64-bit constants (the first digits of pi's fraction). Any would do: a hash collision only costs time.
_MULTIPLIERS = np.array(
    [0x243F6A8885A308D3, 0x13198A2E03707345, 0xA4093822299F31D1, 0x082EFA98EC4E6C89, 0x452821E638D01377],
    dtype=np.uint64,
)
MAX_FLOWS = 0xFFFF  # a flow number has 16 bits
PROTOCOL_NAMES = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmp6"}
PROTOCOL_NUMBERS = {name: number for number, name in PROTOCOL_NAMES.items()}


@dataclass(frozen=True)
class FiveTuple:
    """One direction of a connection. Addresses are IPv6 numbers; IPv4 ones are IPv4-mapped."""

    src: int
    dst: int
    protocol: int
    src_port: int
    dst_port: int

    @classmethod
    def from_words(cls, words: tuple[int, ...]) -> FiveTuple:
        src_hi, src_lo, dst_hi, dst_lo, rest = words
        return cls(src_hi << 64 | src_lo, dst_hi << 64 | dst_lo, rest >> 32 & 0xFF, rest >> 16 & 0xFFFF, rest & 0xFFFF)

    @classmethod
    def tcp(cls, src: str, dst: str, src_port: int, dst_port: int) -> FiveTuple:
        return cls.of("tcp", src, dst, src_port, dst_port)

    @classmethod
    def of(cls, protocol: str, src: str, dst: str, src_port: int, dst_port: int) -> FiveTuple:
        """From the text form of traffic.json. Raises ValueError for an invalid protocol, address or port."""
        if protocol not in PROTOCOL_NUMBERS:
            raise ValueError(f"protocol {protocol!r}: allowed are {', '.join(PROTOCOL_NUMBERS)}")
        if not (0 <= src_port <= 0xFFFF and 0 <= dst_port <= 0xFFFF):
            raise ValueError(f"ports {src_port}, {dst_port}: allowed are 0 to 65535")
        return cls(_number(src), _number(dst), PROTOCOL_NUMBERS[protocol], src_port, dst_port)

    @property
    def is_ipv4(self) -> bool:
        return self.src >> 32 == 0xFFFF

    def __str__(self) -> str:
        if not (self.src or self.dst or self.protocol):
            return "not IP"
        protocol = PROTOCOL_NAMES.get(self.protocol, f"protocol {self.protocol}")
        if not (self.src_port or self.dst_port):
            return f"{address_text(self.src)} > {address_text(self.dst)} {protocol}"
        src, dst = (f"[{t}]" if ":" in t else t for t in (address_text(self.src), address_text(self.dst)))
        return f"{src}:{self.src_port} > {dst}:{self.dst_port} {protocol}"


def _number(text: str) -> int:
    address = ipaddress.ip_address(text)
    return 0xFFFF << 32 | int(address) if address.version == 4 else int(address)


def address_text(number: int) -> str:
    """Dotted IPv4 for an IPv4-mapped address, else IPv6."""
    address = ipaddress.IPv6Address(number)
    return str(address.ipv4_mapped or address)


class FlowTable:
    """The 5-tuples of one file, numbered from 0. Not thread-safe."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, ...], int] = {}
        self._hashes = np.empty(0, dtype=np.uint64)  # sorted; _rows and _ids in the same order
        self._rows = np.empty((WORDS, 0), dtype=np.uint64)
        self._ids = np.empty(0, dtype=np.uint16)

    def __len__(self) -> int:
        return len(self._numbers)

    def tuples(self) -> list[FiveTuple]:
        """The 5-tuples by flow number."""
        return [FiveTuple.from_words(words) for words in self._numbers]

    def numbers(self, words: np.ndarray) -> np.ndarray:
        """Flow numbers (uint16) of the columns of `words` (uint64, WORDS x rows). New flows are added.

        Flows after the first MAX_FLOWS all get the number MAX_FLOWS, which bounds the memory that noise can take.
        """
        hashes = self._hash(words)
        ids, unknown = self._look_up(words, hashes)
        if len(unknown) and len(self) < MAX_FLOWS:
            self._add(words[:, unknown], hashes[unknown])
            ids, unknown = self._look_up(words, hashes)
        for row in unknown:  # after a hash collision, or beyond MAX_FLOWS
            ids[row] = self._numbers.get(_column(words, row), MAX_FLOWS)
        return ids

    @staticmethod
    def _hash(words: np.ndarray) -> np.ndarray:
        result = words[0] * _MULTIPLIERS[0]
        for word, multiplier in zip(words[1:], _MULTIPLIERS[1:], strict=True):
            result ^= (word ^ (result >> np.uint64(29))) * multiplier
        return result

    def _look_up(self, words: np.ndarray, hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Flow numbers, and the rows that have none (whose number in the first array is meaningless)."""
        if not len(self._hashes):
            return np.zeros(len(hashes), dtype=np.uint16), np.arange(len(hashes))
        at = np.searchsorted(self._hashes, hashes)
        at[at == len(self._hashes)] = 0
        is_known = np.ones(len(hashes), dtype=bool)
        for word, known in zip(words, self._rows, strict=True):
            is_known &= known[at] == word
        return self._ids[at], np.flatnonzero(~is_known)

    def _add(self, words: np.ndarray, hashes: np.ndarray) -> None:
        _, first, alike = np.unique(hashes, return_index=True, return_inverse=True)
        collides = (words[:, first[alike]] != words).any(axis=0)
        for row in [*np.sort(first), *np.flatnonzero(collides)]:
            if len(self._numbers) < MAX_FLOWS:
                self._numbers.setdefault(_column(words, row), len(self._numbers))
        rows = np.array(list(self._numbers), dtype=np.uint64).T
        self._hashes, first = np.unique(self._hash(rows), return_index=True)
        self._rows, self._ids = rows[:, first], first.astype(np.uint16)


def _column(words: np.ndarray, row: int) -> tuple[int, ...]:
    return tuple(words[:, row].tolist())
