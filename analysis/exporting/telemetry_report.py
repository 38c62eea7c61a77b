# SPDX-License-Identifier: MIT
"""Exports postcards as telemetry reports of P4.org's Telemetry Report Format 2.0 (wire/telemetry_report.def), the input
of INT collectors. The output is a pcapng file with one report per datagram.

Each report has ports, queue, depth (packets; cells if the switch counts cells), arrival, the IP header, and the TCP
header or the ports. A report of a packet that was admitted also has hop latency and departure; a report of a drop has
the reason. Fields that an imported run does not know are left out, except the queue: its number is then all ones.
Header fields that a postcard does not carry are zero (TTL, identification, window, checksums); headers have no options.
The node is the switch id. Marked and dropped packets are flagged as congested.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from analysis.arithmetic.unwrap import switch_time
from analysis.exporting import pcapng
from analysis.exporting.packets import packet_headers, packet_kinds
from analysis.read import complete_run
from analysis.read.documents import read_switch
from analysis.read.postcards import PostcardArrivals
from analysis.read.switch_clock import is_free
from lib.errors import InputError
from runs.names import POSTCARDS_FILE
from runs.spec_file import load_spec
from wire import wire

CARD, REPORT = wire.POSTCARD.const, wire.TELEMETRY_REPORT.const
RECOUNTED = ("depth_packets", "depth_bytes", "depth_unit", "sojourn_ns")
SEQUENCE_BITS = 22
MOST_LATENCY, MOST_DEPTH = (1 << 32) - 1, (1 << 24) - 1
UNKNOWN_QUEUE = (1 << 8) - 1  # all ones: INT's value for an unavailable field


def write(repetition: Path, output: Path) -> int:
    """Exports a report for every postcard of a repetition. Returns their number. Raises InputError, OSError."""
    complete_run.check(repetition, raw=[POSTCARDS_FILE, "switch.json"])
    spec, recorded_offset_ns = load_spec(repetition), read_switch(repetition).clock_offset_ns
    loaded = complete_run.load_complete(repetition).postcards if is_free(spec) else None
    arrivals = None if loaded is None else PostcardArrivals(loaded)
    has_own_clock = spec.capabilities is not None and not spec.capabilities.exact_time
    if arrivals is None and has_own_clock and recorded_offset_ns is None:
        raise InputError(
            f"{repetition / 'switch.json'}: does not say what the switch's clock showed, so its times are not known; "
            "allowed: a run whose switch.json is whole"
        )
    sequence, unknown, offset_ns = 0, spec.unknown_columns, recorded_offset_ns or 0
    with output.open("wb") as file:
        pcapng.write_head(file)
        for rows, mono, real in pcapng.stored(repetition):
            cards = wire.POSTCARD.columns(rows)
            if loaded is None or arrivals is None:
                came = switch_time(cards["enqueue_switch_ns"], mono, offset_ns)
            else:  # depths and times as loaded: on the sender's clock, and recounted if the switch counts cells
                at = arrivals.rows(cards)
                came = loaded["enqueue_mono_ns"][at]
                cards |= {name: loaded[name][at].astype(cards[name].dtype) for name in RECOUNTED}
            reports = encode(cards, came, sequence, unknown)
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
    cards: dict[str, np.ndarray],
    enqueue_mono_ns: np.ndarray,
    first_sequence: int,
    unknown: frozenset[str] = frozenset(),
) -> list[tuple[np.ndarray, np.ndarray]]:
    """(row numbers, reports as uint8 rows) for each kind of packet. `cards` are the columns of wire.POSTCARD.columns;
    `unknown` names columns with meaningless values.
    """
    if "queue_id" in unknown:
        cards["queue_id"] = np.full_like(cards["queue_id"], UNKNOWN_QUEUE)
    came = enqueue_mono_ns.view(np.uint64)
    flags = cards["flags"]
    sequence = (np.arange(len(came)) + first_sequence) % (1 << SEQUENCE_BITS)
    both = CARD["POSTCARD_DROPPED"] | CARD["POSTCARD_AT_INGRESS"]
    kinds = packet_kinds(cards)
    kinds |= np.where((flags & CARD["POSTCARD_DROPPED"]) != 0, 16, 0) | np.where((flags & both) == both, 32, 0)
    result = []
    for kind in np.unique(kinds):
        at = np.flatnonzero(kinds == kind)
        part = {name: values[at] for name, values in cards.items()}
        result.append((at, _encode_kind(int(kind), part, came[at], sequence[at], unknown)))
    return result


def _encode_kind(
    kind: int, cards: dict[str, np.ndarray], came: np.ndarray, sequence: np.ndarray, unknown: frozenset[str]
) -> np.ndarray:
    count = len(came)
    is_dropped, at_ingress = bool(kind & 16), bool(kind & 32)
    in_cells = cards.get("depth_unit", np.zeros(count)) == CARD["POSTCARD_DEPTH_CELLS"]
    depth = np.minimum(np.where(in_cells, cards.get("depth_cells", 0), cards["depth_packets"]), MOST_DEPTH).astype(
        np.uint64
    )
    queue = cards["queue_id"] << np.uint64(24) | depth
    drop = cards["queue_id"] << np.uint64(24) | np.uint64(REPORT["TELEMETRY_REPORT_TRAFFIC_MANAGER"] << 16)
    # A source without sojourn times has at most departure times: the arrival times cannot be computed.
    has_times = "sojourn_ns" not in unknown
    choice = (  # in the order of the bits
        ("INTERFACES", "ingress_port" not in unknown, cards["ingress_port"] << np.uint64(16) | cards["egress_port"], 4),
        ("HOP_LATENCY", has_times and not at_ingress, np.minimum(cards["sojourn_ns"], MOST_LATENCY), 4),
        ("QUEUE", True, queue, 4),
        ("INGRESS_TIME", has_times, came, 8),
        ("EGRESS_TIME", has_times and not at_ingress, came + cards["sojourn_ns"], 8),
        ("DROP", is_dropped, drop, 4),
    )
    bits = sum(REPORT[f"TELEMETRY_REPORT_{name}"] for name, is_included, _, _ in choice if is_included)
    metadata = [(values, size) for _, is_included, values, size in choice if is_included]
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
