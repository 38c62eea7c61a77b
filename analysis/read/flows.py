# SPDX-License-Identifier: MIT
"""Numbers 5-tuples in order of appearance.

A million packets belong to a handful of flows, or to hundreds of thousands. So tables hold flow numbers, and each
5-tuple is stored once. A hash table with linear probing finds the numbers of all rows at once and compares full
5-tuples, so the first MAX_FLOWS flows have different numbers. All later flows share one number.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import overload

import numpy as np

# Source and destination address as two 64-bit halves each, then protocol << 32 | source port << 16 | destination port.
WORDS = 5
# The first digits of pi's fraction, made odd. Any odd 64-bit constants would do: a hash collision only costs time.
_MULTIPLIERS = np.array(
    [0x243F6A8885A308D3, 0x13198A2E03707345, 0xA4093822299F31D1, 0x082EFA98EC4E6C89, 0x452821E638D01377],
    dtype=np.uint64,
)
MAX_FLOWS = (1 << 24) - 1  # bounds the memory for 5-tuples that are noise; each takes 48 to 112 bytes
_FREE = -1  # marks a free slot of the hash table
_LEAST_SLOTS_BITS = 10
PROTOCOL_NAMES = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmp6"}
PROTOCOL_NUMBERS = {name: number for number, name in PROTOCOL_NAMES.items()}


@dataclass(frozen=True)
class FiveTuple:
    """One direction of a connection. Addresses are 128-bit numbers; an IPv4 address is IPv4-mapped."""

    src: int
    dst: int
    protocol: int
    src_port: int
    dst_port: int

    @classmethod
    def from_words(cls, words: tuple[int, ...]) -> FiveTuple:
        src_hi, src_lo, dst_hi, dst_lo, rest = words
        return cls(src_hi << 64 | src_lo, dst_hi << 64 | dst_lo, rest >> 32 & 0xFF, rest >> 16 & 0xFFFF, rest & 0xFFFF)

    def words(self) -> tuple[int, ...]:
        """The inverse of `from_words`."""
        low = (1 << 64) - 1
        rest = self.protocol << 32 | self.src_port << 16 | self.dst_port
        return self.src >> 64, self.src & low, self.dst >> 64, self.dst & low, rest

    @classmethod
    def tcp(cls, src: str, dst: str, src_port: int, dst_port: int) -> FiveTuple:
        return cls.of("tcp", src, dst, src_port, dst_port)

    @classmethod
    def of(cls, protocol: str, src: str, dst: str, src_port: int, dst_port: int) -> FiveTuple:
        """A 5-tuple from the text form of traffic.json. Raises ValueError for a bad protocol, address or port."""
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


@dataclass(frozen=True)
class Flow:
    """A flow of the experiment."""

    id: int
    cc: str | None  # its congestion control; None for UDP
    five_tuple: FiveTuple
    number: int  # in the columns "flow"; -1: no packet or record
    received_bps: float | None = None  # mean goodput at the receiver over the whole run, as iperf3 reported it
    silent: bool = False  # the schedule has no datagram of this flow
    program: bool = False  # of the user's own program, so no plan has it

    @property
    def is_tcp(self) -> bool:
        return self.five_tuple.protocol == PROTOCOL_NUMBERS["tcp"]


def flow_type(flows: int) -> type[np.unsignedinteger]:
    """The type of the numbers of `flows` flows: 16 bits up to 65,535 flows, else 32 bits."""
    return np.uint16 if flows <= 0xFFFF else np.uint32


@lru_cache(maxsize=1 << 16)
def _number(text: str) -> int:
    address = ipaddress.ip_address(text)
    return 0xFFFF << 32 | int(address) if address.version == 4 else int(address)


@lru_cache(maxsize=1 << 16)
def address_text(number: int) -> str:
    """Dotted IPv4 for an IPv4-mapped address, else IPv6."""
    address = ipaddress.IPv6Address(number)
    return str(address.ipv4_mapped or address)


class Flows(Sequence[FiveTuple]):
    """5-tuples by flow number. `words` are the columns that FlowTable.numbers takes."""

    def __init__(self, words: np.ndarray | None = None) -> None:
        self.words = np.empty((WORDS, 0), dtype=np.uint64) if words is None else words

    def __len__(self) -> int:
        return self.words.shape[1]

    @overload
    def __getitem__(self, number: int) -> FiveTuple: ...
    @overload
    def __getitem__(self, number: slice) -> Flows: ...
    def __getitem__(self, number: int | slice) -> FiveTuple | Flows:
        if isinstance(number, slice):
            return Flows(self.words[:, number])
        return FiveTuple.from_words(tuple(self.words[:, number].tolist()))

    def __iter__(self) -> Iterator[FiveTuple]:
        return map(FiveTuple.from_words, zip(*self.words.tolist(), strict=True))

    @property
    def is_ipv4(self) -> np.ndarray:
        """Mask of the flows whose source address is IPv4-mapped."""
        return (self.words[0] == 0) & (self.words[1] >> np.uint64(32) == 0xFFFF)

    def texts(self) -> list[str]:
        return [str(flow) for flow in self]


def flow_words(rows: Mapping[str, np.ndarray] | np.ndarray, protocol: np.ndarray | int, src: str = "src",
               dst: str = "dst") -> np.ndarray:  # fmt: skip
    """The input of FlowTable.numbers and find, of the way from `src` to `dst`, from columns or records."""
    words = np.empty((WORDS, len(rows["src_port"])), dtype=np.uint64)
    for row, name in enumerate((f"{src}_addr_hi", f"{src}_addr_lo", f"{dst}_addr_hi", f"{dst}_addr_lo")):
        words[row] = rows[name]
    words[4] = protocol
    words[4] = words[4] << np.uint64(32) | rows[f"{src}_port"].astype(np.uint64) << np.uint64(16) | rows[f"{dst}_port"]
    return words


class FlowTable:
    """5-tuples, numbered from 0 in order of appearance. Not thread-safe.

    Flow n is column n of `_words`. A slot of the hash table holds a flow number. The table is at most half full: it is
    rebuilt with more slots when needed, in amortized constant time per flow.
    """

    def __init__(self) -> None:
        self._count = 0
        self._words = np.empty((WORDS, 0), dtype=np.uint64)
        self._bits = _LEAST_SLOTS_BITS
        self._slots = np.full(1 << self._bits, _FREE, dtype=np.int32)

    def __len__(self) -> int:
        return self._count

    def tuples(self) -> Flows:
        """The 5-tuples by flow number."""
        return Flows(self._words[:, : self._count])

    def numbers(self, words: np.ndarray) -> np.ndarray:
        """Flow numbers (uint32) of the columns of `words` (uint64, WORDS x rows). New flows are added.

        Flows after the first MAX_FLOWS all get the number MAX_FLOWS.
        """
        hashes = _hash(words)
        numbers = self._look_up(words, hashes)
        unknown = np.flatnonzero(numbers == _FREE)
        if len(unknown) and self._count < MAX_FLOWS:
            self._add(words[:, unknown], hashes[unknown])
            numbers[unknown] = self._look_up(words[:, unknown], hashes[unknown])
        numbers[numbers == _FREE] = MAX_FLOWS
        return numbers.astype(np.uint32)

    def find(self, words: np.ndarray) -> np.ndarray:
        """The flow number (int32) of each column of `words`, -1 for a flow that is not in the table."""
        return self._look_up(words, _hash(words))

    def _home(self, hashes: np.ndarray) -> np.ndarray:
        """The slot where the search for each hash begins."""
        return (hashes >> np.uint64(64 - self._bits)).astype(np.intp)

    def _look_up(self, words: np.ndarray, hashes: np.ndarray) -> np.ndarray:
        """The number of each column of `words`, or _FREE."""
        slots = self._home(hashes)
        numbers = self._slots[slots]
        wrong = np.flatnonzero(self._differ(numbers, words))
        while len(wrong):  # another flow has the slot: try the next
            slots[wrong] = (slots[wrong] + 1) % len(self._slots)
            numbers[wrong] = self._slots[slots[wrong]]
            wrong = wrong[self._differ(numbers[wrong], words[:, wrong])]
        return numbers

    def _differ(self, numbers: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Whether each number belongs to a flow other than the column of `words`; false for _FREE."""
        if not self._count:
            return np.zeros(len(numbers), dtype=bool)
        differ = np.zeros(len(numbers), dtype=bool)
        for known, word in zip(self._words, words, strict=True):
            differ |= known[numbers] != word
        return differ & (numbers != _FREE)

    def _add(self, words: np.ndarray, hashes: np.ndarray) -> None:
        """Adds the distinct columns of `words`, none of which is in the table."""
        new = _first_of_each(words, hashes)[: MAX_FLOWS - self._count]
        count = self._count + len(new)
        if count > self._words.shape[1]:
            grown = np.zeros((WORDS, 2 * count), dtype=np.uint64)
            grown[:, : self._count] = self._words[:, : self._count]
            self._words = grown
        added = np.arange(self._count, count, dtype=np.int32)
        self._words[:, self._count : count] = words[:, new]
        self._count = count
        if 2 * count > len(self._slots):
            self._bits = (4 * count).bit_length()
            self._slots = np.full(1 << self._bits, _FREE, dtype=np.int32)
            self._place(np.arange(count, dtype=np.int32), _hash(self._words[:, :count]))
        else:
            self._place(added, hashes[new])

    def _place(self, numbers: np.ndarray, hashes: np.ndarray) -> None:
        """Puts each number into the first free slot from its home."""
        slots = self._home(hashes)
        while len(numbers):
            free = self._slots[slots] == _FREE
            self._slots[slots[free]] = numbers[free]  # NumPy keeps the last number; the others try the next slot
            left = self._slots[slots] != numbers
            numbers, slots = numbers[left], (slots[left] + 1) % len(self._slots)


def _hash(words: np.ndarray) -> np.ndarray:
    result = words[0] * _MULTIPLIERS[0]
    for word, multiplier in zip(words[1:], _MULTIPLIERS[1:], strict=True):
        result ^= (word ^ (result >> np.uint64(29))) * multiplier
    return result


def _first_of_each(words: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    """The index of the first of each set of equal columns of `words`, ascending."""
    _, first, alike = np.unique(hashes, return_index=True, return_inverse=True)
    if (words[:, first[alike]] != words).any():  # different columns have the same hash
        _, first = np.unique(words, axis=1, return_index=True)
    return np.sort(first)
