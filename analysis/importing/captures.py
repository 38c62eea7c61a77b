# SPDX-License-Identifier: MIT
"""Reads postcards from pcap and pcapng files: bufferscope's own (wire/postcard.def, UDP 5577) and the artifact's
(analysis/artifact.py). Our own postcards carry the switch's clock, so the capture's clock does not place them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from analysis import artifact
from analysis.capture import MAGICS, Capture
from analysis.importing.fields import Addresses, Cards
from analysis.importing.text import CARDS_UNKNOWN, TOFINO_CELL_BYTES
from analysis.postcards import busiest, queue_keys
from analysis.unwrap import SWITCH_TIME_BITS, switch_steps
from lib.errors import InputError
from wire import wire

CARD = wire.POSTCARD.const
PORT = CARD["POSTCARD_UDP_PORT"]
VERSIONS = {1: wire.POSTCARD_1, CARD["POSTCARD_VERSION"]: wire.POSTCARD}
WORDS = {"src_addr", "dst_addr"}  # fields of 128 bits
TURN = 1 << SWITCH_TIME_BITS  # ns until the switch's clock wraps around: 78 h
NUMBERED = ("switch_id", "egress_port", "flags", "enqueue_switch_ns", "card_seq")  # copies agree in these, at least
DEPTHS = {"depth_packets", "depth_bytes"}


@dataclass
class CaptureContents:
    """The content of a capture."""

    cards: Cards
    others: int  # packets that are not sent to a collector
    malformed: int  # datagrams to a collector that are not one postcard of a known version
    cut_short: int  # postcards of which the capture kept too few bytes
    damage: str | None  # one line if the capture could not be read to its end


def is_capture(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) in MAGICS
    except OSError:
        return False


class NoPostcardsError(InputError):
    """A capture without a whole postcard."""


def read(path: Path) -> CaptureContents:
    """Our postcards if there are any, else the artifact's, in the file's order. `mono_ns` are capture times.
    Raises NoPostcardsError if there are neither, InputError.
    """
    bufferscopes = _bufferscopes(path)
    if len(bufferscopes.cards.columns["mono_ns"]):
        return bufferscopes
    imported = artifact.read(path)
    if not imported.postcards:
        short = bufferscopes.cut_short + imported.cut_short
        others = bufferscopes.others + bufferscopes.malformed - imported.cut_short
        damage = "" if bufferscopes.damage is None else f" ({bufferscopes.damage.removeprefix(f'{path}: ')})"
        raise NoPostcardsError(
            f"{path}: has no whole postcard{damage}: {short} postcards were captured with too few bytes, and {others} "
            f"packets are not postcards; allowed: bufferscope's postcards, to UDP port {PORT}, of version "
            f"{' or '.join(map(str, VERSIONS))}, or the artifact's, to UDP port {artifact.UDP_PORT}"
        )
    return CaptureContents(
        _of_artifact(imported), imported.other_packets, imported.not_postcards, imported.cut_short, imported.damage
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


def _bufferscopes(path: Path) -> CaptureContents:
    parts: list[dict[str, np.ndarray]] = []
    others = malformed = cut_short = 0
    with Capture(path) as capture:
        if capture.link_type not in artifact.LINK_LAYERS:
            raise InputError(
                f"{path}: link type {capture.link_type_name()} is not known here; allowed are Ethernet, Linux cooked, "
                "raw IP and BSD loopback"
            )
        for frames in capture.batches():
            at, payload_bytes, captured = artifact.udp_payloads(frames, PORT)
            good = np.zeros(len(at), dtype=bool)
            for version, layout in VERSIONS.items():
                rows = np.flatnonzero((payload_bytes == layout.length) & captured & ~good)
                cards = frames.rows[rows[:, None], at[rows][:, None] + np.arange(layout.length)]
                of_version = cards[:, 0] == version
                rows, cards = rows[of_version], cards[of_version]
                good[rows] = True
                parts.append(_columns(cards, layout) | {"mono_ns": frames.real_ns[rows]})
            short = np.isin(payload_bytes, [layout.length for layout in VERSIONS.values()]) & ~captured
            cut_short += int(np.count_nonzero(short))
            malformed += int(np.count_nonzero(~good & ~short & (payload_bytes != -1)))
            others += int(np.count_nonzero(payload_bytes == -1))
        damage = capture.damage
    empty = _columns(np.zeros((0, wire.POSTCARD.length), dtype=np.uint8), wire.POSTCARD) | {
        "mono_ns": np.zeros(0, np.int64)
    }
    whole = {
        name: np.concatenate([none, *(part.get(name, np.zeros(len(part["mono_ns"]), none.dtype)) for part in parts)])
        for name, none in empty.items()
    }
    ends = Addresses(*(whole.pop(name) for name in ("src_addr", "dst_addr", "src_port", "dst_port")))
    return CaptureContents(Cards(whole, ends, turn_ns=TURN), others, malformed, cut_short, damage)


def _columns(cards: np.ndarray, layout: wire.Format) -> dict[str, np.ndarray]:
    """The fields by name, without the version. An address is a row of two 64-bit halves."""
    result, at = {}, 0
    for name, bits in layout.fields:
        field = cards[:, at : at + bits // 8]
        at += bits // 8
        if name in WORDS:
            result[name] = np.column_stack([wire.wide(field[:, :8]), wire.wide(field[:, 8:])])
        elif name != "version":
            result[name] = wire.wide(field)
    return result


def _of_artifact(imported: artifact.Imported) -> Cards:
    """The artifact's postcards in our columns. Times are capture times, shortly after the packet left the queue."""
    columns, flows = imported.columns, imported.flows
    flow = columns["flow"].to_numpy()
    real = columns["rx_real_ns"]
    if real.is_null().any():
        raise InputError("bare datagrams have no times, so the queue over time is unknown; allowed: a capture")
    has = CARD["POSTCARD_HAS_IP"] | CARD["POSTCARD_HAS_PORTS"] | CARD["POSTCARD_HAS_TCP"]
    dropped = columns["drop_control"].to_numpy() != 0

    def halves(numbers: list[int]) -> np.ndarray:
        table = np.array([(n >> 64, n & ((1 << 64) - 1)) for n in numbers], dtype=np.uint64).reshape(-1, 2)
        return table[flow]

    ends = Addresses(
        halves([f.src for f in flows]), halves([f.dst for f in flows]),
        np.array([f.src_port for f in flows], dtype=np.uint16)[flow],
        np.array([f.dst_port for f in flows], dtype=np.uint16)[flow],
    )  # fmt: skip
    cards = {
        "mono_ns": real.to_numpy(), "enqueue_switch_ns": real.to_numpy(),
        "flags": np.where(dropped, has | CARD["POSTCARD_DROPPED"], has),
        **{name: columns[name].to_numpy() for name in ("ingress_port", "egress_port", "tcp_seq", "tcp_ack")},
        "ip_protocol": np.full(len(flow), 6),
        "depth_cells": columns["departure_depth_cells"].to_numpy(),
        "depth_unit": np.full(len(flow), CARD["POSTCARD_DEPTH_CELLS"]),
    }  # fmt: skip
    return Cards(cards, ends, set(CARDS_UNKNOWN) - {"ingress_port"}, TOFINO_CELL_BYTES)
