# SPDX-License-Identifier: MIT
"""Reads postcards from pcap and pcapng files: bufferscope's own (wire/postcard.def, UDP 5577) and the artifact's
(analysis/artifact.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analysis import artifact
from analysis.capture import MAGICS, Capture
from analysis.importing.fields import Addresses, Cards
from analysis.importing.text import CARDS_UNKNOWN, TOFINO_CELL_BYTES
from analysis.unwrap import SWITCH_TIME_BITS
from lib.errors import InputError
from wire import wire

CARD = wire.POSTCARD.const
PORT = CARD["POSTCARD_UDP_PORT"]
VERSIONS = {1: wire.POSTCARD_1, CARD["POSTCARD_VERSION"]: wire.POSTCARD}
WORDS = {"src_addr", "dst_addr"}  # fields of 128 bits
TURN = 1 << SWITCH_TIME_BITS  # ns until the switch's clock wraps around: 78 h
NEAR_NS = 1_000_000_000  # a postcard whose delay differs from the median by more is damaged, or another switch's


@dataclass
class CaptureContents:
    """The content of a capture."""

    cards: Cards
    others: int  # packets that are not postcards
    cut_short: int  # postcards of which the capture kept too few bytes
    damage: str | None  # one line if the capture could not be read to its end


def is_capture(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) in MAGICS
    except OSError:
        return False


def read(path: Path) -> CaptureContents:
    """Our postcards if there are any, else the artifact's. Raises InputError if there are neither."""
    bufferscopes = _bufferscopes(path)
    if len(bufferscopes.cards.columns["mono_ns"]):
        return bufferscopes
    imported = artifact.read(path)
    if not imported.postcards:
        short = bufferscopes.cut_short + imported.cut_short
        others = bufferscopes.others - imported.cut_short
        raise InputError(
            f"{path}: has no whole postcard: {short} postcards were captured with too few bytes, and {others} packets "
            f"are not postcards; allowed: bufferscope's postcards, to UDP port {PORT}, of version "
            f"{' or '.join(map(str, VERSIONS))}, or the artifact's, to UDP port {artifact.UDP_PORT}"
        )
    others = imported.other_packets + imported.not_postcards
    return CaptureContents(_of_artifact(imported), others, imported.cut_short, imported.damage)


def _bufferscopes(path: Path) -> CaptureContents:
    parts: list[dict[str, np.ndarray]] = []
    others = cut_short = 0
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
            others += int(np.count_nonzero(~good & ~short))
        damage = capture.damage
    empty = _columns(np.zeros((0, wire.POSTCARD.length), dtype=np.uint8), wire.POSTCARD) | {
        "mono_ns": np.zeros(0, np.int64)
    }
    whole = {
        name: np.concatenate([none, *(part.get(name, np.zeros(len(part["mono_ns"]), none.dtype)) for part in parts)])
        for name, none in empty.items()
    }
    order = np.argsort(whole["mono_ns"], kind="stable")
    whole = {name: values[order] for name, values in whole.items()}
    whole["mono_ns"] = _on_switch_clock(whole)
    ends = Addresses(*(whole.pop(name) for name in ("src_addr", "dst_addr", "src_port", "dst_port")))
    return CaptureContents(Cards(whole, ends, turn_ns=TURN), others, cut_short, damage)


def _on_switch_clock(cards: dict[str, np.ndarray]) -> np.ndarray:
    """Receive times on the switch's clock: the capture's CLOCK_REALTIME minus the offset between the clocks.

    The capture does not have the offset. The estimate is the smallest difference between a postcard's receive time and
    the departure that the postcard reports, as if this postcard had taken no time; postcards far from the median
    (damaged, or of another switch) are ignored. The high bits of the switch's time are unknown: the first postcard is
    put into the clock's first turn.
    """
    received = cards["mono_ns"].astype(np.int64)
    if not len(received):
        return received
    left = (cards["enqueue_switch_ns"].astype(np.uint64) + cards["sojourn_ns"].astype(np.uint64)).astype(np.int64)
    later = received - left
    around, half = _nearest(later - later[0]), len(later) // 2
    delays = around - np.partition(around, half)[half]
    result = received - later[0] - around[np.abs(delays) < NEAR_NS].min()
    return result - result[0] // TURN * TURN


def _nearest(ns: np.ndarray) -> np.ndarray:
    """The numbers nearest to 0 that equal `ns` modulo a turn of the switch's clock."""
    return (ns + TURN // 2) % TURN - TURN // 2


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
