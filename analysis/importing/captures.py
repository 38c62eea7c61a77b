# SPDX-License-Identifier: MIT
"""Reads postcards from pcap and pcapng files: bufferscope's own (wire/postcard.def, UDP 5577) and those of the artifact
of Spang et al. (wire/artifact_postcard.def, UDP 4444). Our own postcards carry the switch's clock, so the capture's
clock does not place them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
import polars as pl

from analysis.arithmetic.unwrap import SWITCH_TIME_BITS, switch_steps
from analysis.importing.fields import Cards
from analysis.importing.text import CARDS_UNKNOWN, TOFINO_CELL_BYTES
from analysis.read.columns import Column, ColumnFile, Columns, rows_of, slabs
from analysis.read.flows import PROTOCOL_NUMBERS
from captures.reader import Capture
from lib.errors import InputError
from wire import wire

CARD = wire.POSTCARD.const
TURN = 1 << SWITCH_TIME_BITS  # ns until the switch's clock wraps around: 78 h
DEPTHS = {"depth_packets", "depth_bytes"}
SAME = ("ingress_port", "egress_port", "tcp_seq", "tcp_ack", "src_port", "dst_port")  # in the artifact's postcards
MOST_BEFORE = 1_000_000  # packets before the first postcard of a capture of postcards
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
    cards: Cards  # without their rows
    columns: Callable[[Columns, np.ndarray], Columns]  # from the fields and the capture times


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


def read(path: Path, directory: Path) -> CaptureContents:
    """Our postcards if there are any, else the artifact's, in the file's order. `mono_ns` are capture times.
    Raises NoPostcardsError if there are neither, InputError.
    """
    ours = _contents(path, OURS, directory)
    if ours.cards.rows:
        return ours
    theirs = _contents(path, ARTIFACT, directory)
    if theirs.cards.rows:
        return theirs
    short, others = ours.cut_short + theirs.cut_short, ours.others + ours.malformed - theirs.cut_short
    damage = "" if ours.damage is None else f" ({ours.damage.removeprefix(f'{path}: ')})"
    raise NoPostcardsError(
        f"{path}: has no whole postcard{damage}: {short} postcards were captured with too few bytes, and {others} "
        f"packets are not postcards; allowed: bufferscope's postcards, to UDP port {OURS.port}, of version "
        f"{OURS.value}, or the artifact's, to UDP port {ARTIFACT.port}; captures of a router's packets are BEFORE "
        "and AFTER (docs/your-capture.md)"
    )


def has_postcards(path: Path) -> bool:
    """Whether a postcard, whole or not, is among the first MOST_BEFORE packets. Raises InputError."""
    seen = 0
    batches = Capture(path).batches()
    try:
        for packets in batches:
            is_datagram = packets["ip_protocol"] == PROTOCOL_NUMBERS["udp"]
            for kind in (OURS, ARTIFACT):
                of_kind = is_datagram & (packets["dst_port"] == kind.port)
                if (of_kind & (packets["payload_bytes"] == kind.datagram_bytes)).any():
                    return True
            seen += len(packets)
            if seen >= MOST_BEFORE:
                break
        return not seen
    finally:
        batches.close()  # type: ignore[attr-defined]


def placed(cards: Cards, directory: Path) -> int:
    """Leaves copies of our own postcards out, sets `mono_ns` to the switch's clock: the postcard's departure, and
    returns the number of copies: a capture on two interfaces, or two captures, can have a datagram twice. Other
    postcards stay as they are.

    The high bits of the switch's time are unknown: each switch's first postcard is put into its clock's first turn.
    """
    if not cards.turn_ns:
        return 0
    copies = cards.again(directory, "enqueue_switch_ns", 1)["row"]
    if len(copies):
        cards.leave_out(directory, copies)
    last: dict[int, tuple[np.uint64, int]] = {}  # of each switch: its time, and without turns
    least: dict[int, int] = {}
    for piece in cards.pieces:
        for rows in slabs(len(piece["mono_ns"])):
            part = rows_of({name: piece[name] for name in ("switch_id", "enqueue_switch_ns", "sojourn_ns")}, rows)
            came = np.empty(len(part["switch_id"]), dtype=np.int64)
            for switch in np.unique(part["switch_id"]).tolist():
                mine = part["switch_id"] == switch
                times = part["enqueue_switch_ns"][mine]
                before, before_ns = last.get(switch, (times[0], int(times[0])))
                came[mine] = unwrapped = before_ns + np.cumsum(switch_steps(np.append(before, times)))
                last[switch] = times[-1], int(unwrapped[-1])
                least[switch] = min(int(unwrapped.min()), least.get(switch, TURN))
            cast(Column, piece["mono_ns"]).write(rows.start, came + part["sojourn_ns"].astype(np.int64))
    for switch, ns in least.items():  # an earlier postcard can come later in the file
        cards.shift(-(ns // TURN * TURN), switch)
    units = (part["depth_unit"] for part in cards.queue().parts("depth_unit"))
    cards.unknown = DEPTHS if any((part != CARD["POSTCARD_DEPTH_EXACT"]).any() for part in units) else set()
    return len(copies)


def _contents(path: Path, kind: PostcardKind, directory: Path) -> CaptureContents:
    """The postcards of one kind, and the counts of the other packets."""
    layout = kind.layout
    narrow = {name: f"u{max(1 << (bits - 1).bit_length(), 8) // 8}" for name, bits in layout.fields if bits <= 64}

    def columns(fields: dict[str, np.ndarray], real_ns: np.ndarray) -> Columns:
        values = kind.columns({name: part.astype(narrow.get(name, "u8")) for name, part in fields.items()}, real_ns)
        content = {name: part for name, part in values.items() if name not in ("mono_ns", "enqueue_switch_ns")}
        return values | {"digest": pl.DataFrame(content).hash_rows().to_numpy()}

    file = ColumnFile(directory)
    file.append(columns(layout.columns(np.zeros((0, layout.length), dtype=np.uint8)), np.zeros(0, dtype=np.int64)))
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
        file.append(columns(rows_of(fields, good), packets["real_ns"][rows[good]].view(np.int64)))
        short, other = int((has_length & ~is_whole).sum()), int((~to_port).sum())
        cut_short, others = cut_short + short, others + other
        malformed += len(packets) - other - short - int(good.sum())
    cards = replace(kind.cards, pieces=[file.columns()])
    return CaptureContents(cards, others, malformed, cut_short, capture.damage)


def _our_columns(fields: Columns, real_ns: np.ndarray) -> Columns:
    del fields["version"]
    return fields | {"mono_ns": real_ns}


def _artifact_columns(fields: Columns, real_ns: np.ndarray) -> Columns:
    """In our columns. Times are capture times, shortly after the packet left the queue. Every packet counts as TCP, as
    in the published program; the unknown flags ECT and CE_MARKED are 0.
    """
    has = CARD["POSTCARD_HAS_IP"] | CARD["POSTCARD_HAS_PORTS"] | CARD["POSTCARD_HAS_TCP"]
    return {
        "mono_ns": real_ns, "enqueue_switch_ns": real_ns,
        "flags": np.where(fields["drop_control"] != 0, has | CARD["POSTCARD_DROPPED"], has),
        **{name: fields[name] for name in SAME},
        "ip_protocol": np.full(len(real_ns), PROTOCOL_NUMBERS["tcp"]),
        "depth_cells": fields["departure_depth_cells"],
        "depth_unit": np.full(len(real_ns), CARD["POSTCARD_DEPTH_CELLS"]),
        **{f"{end}_addr_hi": np.zeros(len(real_ns), dtype=np.uint64) for end in ("src", "dst")},
        **{f"{end}_addr_lo": IPV4_MAPPED | fields[f"{end}_addr"] for end in ("src", "dst")},
    }  # fmt: skip


OURS = PostcardKind(
    wire.POSTCARD, CARD["POSTCARD_UDP_PORT"], wire.POSTCARD.length, "version", CARD["POSTCARD_VERSION"],
    Cards([], turn_ns=TURN), _our_columns,
)  # fmt: skip
ARTIFACT = PostcardKind(
    wire.ARTIFACT_POSTCARD, wire.ARTIFACT_POSTCARD.const["ARTIFACT_POSTCARD_UDP_PORT"],
    wire.ARTIFACT_POSTCARD.length + wire.ARTIFACT_POSTCARD.const["ARTIFACT_POSTCARD_PADDING_BYTES"],
    "is_mirrored", 1, Cards([], set(CARDS_UNKNOWN) - {"ingress_port"}, TOFINO_CELL_BYTES), _artifact_columns,
)  # fmt: skip
