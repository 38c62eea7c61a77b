# SPDX-License-Identifier: MIT
"""Postcards as telemetry reports of P4.org's Telemetry Report Format 2.0 (wire/telemetry_report.def), one a datagram in
a pcapng file: what collectors for INT read.

Of each packet: ports, queue and depth (packets), arrival; hop latency and departure if it left, drop and its reason if
it did not; and its IP and TCP headers, in which zeros stand for what a postcard does not carry (TTL, identification,
window, options, checksums). Node is the switch id. Congested are packets that were marked or dropped.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from analysis.exporting import pcapng
from analysis.packets import card_columns, packet_headers, packet_kinds
from analysis.unwrap import switch_time
from wire import wire

CARD, REPORT = wire.POSTCARD.const, wire.TELEMETRY_REPORT.const
SEQUENCE_BITS = 22
MOST_LATENCY, MOST_DEPTH = (1 << 32) - 1, (1 << 24) - 1


def write(repetition: Path, output: Path, clock_offset_ns: int = 0) -> int:
    """A report of every postcard of a repetition. Returns how many. Raises InputError, OSError."""
    sequence = 0
    with output.open("wb") as file:
        pcapng.write_head(file)
        for rows, mono, real in pcapng.stored(repetition):
            reports = encode(rows, mono, sequence, clock_offset_ns)
            port = REPORT["TELEMETRY_REPORT_UDP_PORT"]
            blocks: list[bytes] = [b""] * len(rows)
            for at, payloads in reports:
                made = pcapng.packets(pcapng.datagrams(payloads, port), real[at])
                for row, block in zip(at.tolist(), made, strict=True):
                    blocks[row] = block.tobytes()
            file.write(b"".join(blocks))
            sequence += len(rows)
    return sequence


def encode(
    rows: np.ndarray, rx_mono_ns: np.ndarray, first_sequence: int, clock_offset_ns: int = 0
) -> list[tuple[np.ndarray, np.ndarray]]:
    """(which rows, their reports' bytes) for each kind of packet, of postcards as bytes (rows of one length)."""
    cards = card_columns(rows)
    came = switch_time(cards["enqueue_switch_ns"], rx_mono_ns.view(np.uint64), clock_offset_ns).view(np.uint64)
    flags = cards["flags"]
    sequence = (np.arange(len(rows)) + first_sequence) % (1 << SEQUENCE_BITS)
    both = CARD["POSTCARD_DROPPED"] | CARD["POSTCARD_AT_INGRESS"]
    kinds = packet_kinds(cards)
    kinds |= np.where((flags & CARD["POSTCARD_DROPPED"]) != 0, 16, 0) | np.where((flags & both) == both, 32, 0)
    result = []
    for kind in np.unique(kinds):
        at = np.flatnonzero(kinds == kind)
        part = {name: values[at] for name, values in cards.items()}
        result.append((at, _encode_kind(int(kind), part, came[at], sequence[at])))
    return result


def _encode_kind(kind: int, cards: dict[str, np.ndarray], came: np.ndarray, sequence: np.ndarray) -> np.ndarray:
    count = len(came)
    is_dropped, at_ingress = bool(kind & 16), bool(kind & 32)
    bits = (
        REPORT["TELEMETRY_REPORT_INTERFACES"]
        | REPORT["TELEMETRY_REPORT_QUEUE"]
        | REPORT["TELEMETRY_REPORT_INGRESS_TIME"]
    )
    in_cells = cards.get("depth_unit", np.zeros(count)) == CARD["POSTCARD_DEPTH_CELLS"]
    depth = np.minimum(np.where(in_cells, cards.get("depth_cells", 0), cards["depth_packets"]), MOST_DEPTH).astype(
        np.uint64
    )
    queue = cards["queue_id"] << np.uint64(24) | depth
    metadata = [(cards["ingress_port"] << np.uint64(16) | cards["egress_port"], 4)]
    if not at_ingress:
        bits |= REPORT["TELEMETRY_REPORT_HOP_LATENCY"] | REPORT["TELEMETRY_REPORT_EGRESS_TIME"]
        metadata.append((np.minimum(cards["sojourn_ns"], MOST_LATENCY), 4))
    metadata += [(queue, 4), (came, 8)]
    if not at_ingress:
        metadata.append((came + cards["sojourn_ns"], 8))
    if is_dropped:
        bits |= REPORT["TELEMETRY_REPORT_DROP"]
        metadata.append(
            (cards["queue_id"] << np.uint64(24) | np.uint64(REPORT["TELEMETRY_REPORT_TRAFFIC_MANAGER"] << 16), 4)
        )
    inner, inner_type = packet_headers(kind & 15, cards)
    metadata_bytes = sum(size for _, size in metadata)
    fixed = wire.TELEMETRY_REPORT.length - REPORT["TELEMETRY_REPORT_GROUP_BYTES"] - 4
    head = wire.TELEMETRY_REPORT.rows(
        count, version=REPORT["TELEMETRY_REPORT_VERSION"], sequence=sequence, node_id=cards["switch_id"],
        report_type=REPORT["TELEMETRY_REPORT_INT"], inner_type=inner_type,
        report_words=(fixed + metadata_bytes + inner.shape[1]) // 4, metadata_words=metadata_bytes // 4,
        dropped=int(is_dropped), tracked=1, metadata_bits=bits,
        congested=(cards["flags"] & (CARD["POSTCARD_CE_MARKED"] | CARD["POSTCARD_DROPPED"])) != 0,
    )  # fmt: skip
    return np.hstack([head, *(_big_endian(values, size) for values, size in metadata), inner])


def _big_endian(values: np.ndarray, size: int) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=f">u{size}").view(np.uint8).reshape(-1, size)
