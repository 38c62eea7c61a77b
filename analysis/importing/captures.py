# SPDX-License-Identifier: MIT
"""Reads postcards from pcap and pcapng files: bufferscope's own (wire/postcard.def, UDP 5577) and those of the artifact
of Spang et al. (wire/artifact_postcard.def, UDP 4444). Our own postcards carry the switch's clock, so the capture's
clock does not place them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from analysis.arithmetic.unwrap import SWITCH_TIME_BITS, switch_steps
from analysis.importing.fields import Addresses, Cards
from analysis.importing.text import CARDS_UNKNOWN, TOFINO_CELL_BYTES
from analysis.read.flows import PROTOCOL_NUMBERS
from analysis.read.postcards import busiest, queue_keys
from captures.reader import Capture
from lib.errors import InputError
from wire import wire

CARD = wire.POSTCARD.const
TURN = 1 << SWITCH_TIME_BITS  # ns until the switch's clock wraps around: 78 h
NUMBERED = ("switch_id", "egress_port", "flags", "enqueue_switch_ns", "card_seq")  # copies agree in these, at least
DEPTHS = {"depth_packets", "depth_bytes"}
IPV4_MAPPED = np.uint64(0xFFFF << 32)
HAS_PORTS = wire.CAPTURED_PACKET.const["CAPTURED_HAS_PORTS"]


@dataclass(frozen=True)
class PostcardKind:
    """The datagrams to one UDP port that are postcards: those of `datagram_bytes` with `value` in the field `mark`."""

    layout: wire.Format
    port: int
    datagram_bytes: int
    mark: str
    value: int
    cards: Callable[[dict[str, np.ndarray], np.ndarray], Cards]  # from the fields and the capture times


@dataclass
class CaptureContents:
    """The content of a capture."""

    cards: Cards
    others: int  # packets that are not sent to a collector
    malformed: int  # datagrams to a collector that are not one postcard of a known version
    cut_short: int  # postcards of which the capture kept too few bytes
    damage: str | None  # one line if the capture could not be read to its end


class NoPostcardsError(InputError):
    """A capture without a whole postcard."""


def read(path: Path) -> CaptureContents:
    """Our postcards if there are any, else the artifact's, in the file's order. `mono_ns` are capture times.
    Raises NoPostcardsError if there are neither, InputError.
    """
    ours = _contents(path, OURS)
    if len(ours.cards.columns["mono_ns"]):
        return ours
    theirs = _contents(path, ARTIFACT)
    if len(theirs.cards.columns["mono_ns"]):
        return theirs
    short, others = ours.cut_short + theirs.cut_short, ours.others + ours.malformed - theirs.cut_short
    damage = "" if ours.damage is None else f" ({ours.damage.removeprefix(f'{path}: ')})"
    raise NoPostcardsError(
        f"{path}: has no whole postcard{damage}: {short} postcards were captured with too few bytes, and {others} "
        f"packets are not postcards; allowed: bufferscope's postcards, to UDP port {OURS.port}, of version "
        f"{OURS.value}, or the artifact's, to UDP port {ARTIFACT.port}; captures of a router's packets are BEFORE "
        "and AFTER (docs/your-capture.md)"
    )


def placed(cards: Cards) -> tuple[Cards, int]:
    """Our own postcards without copies, with `mono_ns` on the switch's clock: the postcard's departure. Also the number
    of copies: a capture on two interfaces, or two captures, can have a datagram twice. Other postcards as they are.

    The high bits of the switch's time are unknown: each switch's first postcard is put into its clock's first turn.
    """
    if not cards.turn_ns:
        return cards, 0
    columns, ends = cards.columns, cards.addresses
    order = np.lexsort([columns[name] for name in NUMBERED])
    same = np.ones(max(len(order) - 1, 0), dtype=bool)
    for values in (*(columns[name] for name in columns if name != "mono_ns"), *vars(ends).values()):
        equal = values[order[1:]] == values[order[:-1]]
        same &= equal if equal.ndim == 1 else equal.all(axis=1)
    kept = np.ones(len(order), dtype=bool)
    kept[order[1:][same]] = False
    whole = replace(cards.only(kept), unknown=set())
    columns = whole.columns
    for switch in np.unique(columns["switch_id"]):
        rows = columns["switch_id"] == switch
        came = columns["enqueue_switch_ns"][rows].astype(np.int64)
        came[1:] = came[0] + np.cumsum(switch_steps(came))
        came -= came.min() // TURN * TURN  # an earlier postcard can come later in the file
        columns["mono_ns"][rows] = came + columns["sojourn_ns"][rows].astype(np.int64)
    depth_units = columns["depth_unit"][busiest(queue_keys(columns))]
    if (depth_units != CARD["POSTCARD_DEPTH_EXACT"]).any():
        whole.unknown |= DEPTHS
    return whole, len(kept) - int(kept.sum())


def _contents(path: Path, kind: PostcardKind) -> CaptureContents:
    """The postcards of one kind, and the counts of the other packets."""
    layout = kind.layout
    narrow = {name: f"u{max(1 << (bits - 1).bit_length(), 8) // 8}" for name, bits in layout.fields if bits <= 64}

    def narrowed(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {name: values.astype(narrow.get(name, "u8")) for name, values in columns.items()}

    parts = [narrowed(layout.columns(np.zeros((0, layout.length), dtype=np.uint8)))]
    times = [np.zeros(0, dtype=np.int64)]
    others = malformed = cut_short = 0
    capture = Capture(path, layout.length)
    for packets in capture.batches():
        to_port = (packets["ip_protocol"] == PROTOCOL_NUMBERS["udp"]) & (packets["dst_port"] == kind.port)
        to_port &= packets["flags"] & HAS_PORTS != 0
        has_length = to_port & (packets["payload_bytes"] == kind.datagram_bytes) & (packets["fragment"] == 0)
        is_whole = packets["payload_captured"] == layout.length  # without the padding
        rows = np.flatnonzero(has_length & is_whole)
        fields = layout.columns(packets["payload"][rows])
        good = fields[kind.mark] == kind.value
        parts.append(narrowed({name: values[good] for name, values in fields.items()}))
        times.append(packets["real_ns"][rows[good]].view(np.int64))
        short, other = int((has_length & ~is_whole).sum()), int((~to_port).sum())
        cut_short, others = cut_short + short, others + other
        malformed += len(packets) - other - short - int(good.sum())
    fields = {name: np.concatenate([part.pop(name) for part in parts]) for name in list(parts[0])}
    cards = kind.cards(fields, np.concatenate(times))
    return CaptureContents(cards, others, malformed, cut_short, capture.damage)


def _our_cards(fields: dict[str, np.ndarray], real_ns: np.ndarray) -> Cards:
    del fields["version"]
    src, dst = (np.column_stack([fields.pop(f"{end}_addr_{half}") for half in ("hi", "lo")]) for end in ("src", "dst"))
    ends = Addresses(src, dst, fields.pop("src_port"), fields.pop("dst_port"))
    return Cards(fields | {"mono_ns": real_ns}, ends, turn_ns=TURN)


def _artifact_cards(fields: dict[str, np.ndarray], real_ns: np.ndarray) -> Cards:
    """In our columns. Times are capture times, shortly after the packet left the queue. Every packet counts as TCP, as
    in the published program; the unknown flags ECT and CE_MARKED are 0.
    """
    has = CARD["POSTCARD_HAS_IP"] | CARD["POSTCARD_HAS_PORTS"] | CARD["POSTCARD_HAS_TCP"]
    src, dst = (
        np.column_stack([np.zeros(len(real_ns), dtype=np.uint64), IPV4_MAPPED | fields[f"{end}_addr"]])
        for end in ("src", "dst")
    )
    columns = {
        "mono_ns": real_ns, "enqueue_switch_ns": real_ns,
        "flags": np.where(fields["drop_control"] != 0, has | CARD["POSTCARD_DROPPED"], has),
        **{name: fields[name] for name in ("ingress_port", "egress_port", "tcp_seq", "tcp_ack")},
        "ip_protocol": np.full(len(real_ns), PROTOCOL_NUMBERS["tcp"]),
        "depth_cells": fields["departure_depth_cells"],
        "depth_unit": np.full(len(real_ns), CARD["POSTCARD_DEPTH_CELLS"]),
    }  # fmt: skip
    ends = Addresses(src, dst, fields["src_port"], fields["dst_port"])
    return Cards(columns, ends, set(CARDS_UNKNOWN) - {"ingress_port"}, TOFINO_CELL_BYTES)


OURS = PostcardKind(
    wire.POSTCARD, CARD["POSTCARD_UDP_PORT"], wire.POSTCARD.length, "version", CARD["POSTCARD_VERSION"], _our_cards
)
ARTIFACT = PostcardKind(
    wire.ARTIFACT_POSTCARD, wire.ARTIFACT_POSTCARD.const["ARTIFACT_POSTCARD_UDP_PORT"],
    wire.ARTIFACT_POSTCARD.length + wire.ARTIFACT_POSTCARD.const["ARTIFACT_POSTCARD_PADDING_BYTES"],
    "is_mirrored", 1, _artifact_cards,
)  # fmt: skip
