# SPDX-License-Identifier: MIT
"""Exports postcards as datagrams in a pcapng file with ns timestamps: the bytes of the wire format behind synthetic
Ethernet, IPv4 and UDP headers (documentation addresses, RFC 5737). Times are those of the collector's kernel. The
file's comment describes the run (analysis/read/run_description.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from analysis.read import complete_run, run_description
from analysis.read.raw import RawFile, blocks
from lib.errors import InputError
from runs.names import POSTCARDS_FILE
from runs.spec_file import load_spec
from wire import wire

PCAPNG, DATAGRAM = wire.PCAPNG_PACKET.const, wire.DATAGRAM
SWITCH_ADDRESS, COLLECTOR_ADDRESS = 0xC0000201, 0xC0000202  # 192.0.2.1, 192.0.2.2
SWITCH_MAC, COLLECTOR_MAC = 0x02BF00000003, 0x02BF00000004
IPV4_TYPE, IPV4_WITHOUT_OPTIONS, DONT_FRAGMENT, TTL, UDP = 0x0800, 0x45, 0x4000, 64, 17
NANOSECONDS = 9  # if_tsresol: 10^-9 s
STAMP = wire.BLOCK.const["BLOCK_STAMP_BYTES"]


def write(repetition: Path, output: Path) -> int:
    """Exports all postcards of a repetition. Returns their number. Raises InputError, OSError."""
    complete_run.check(repetition, raw=[POSTCARDS_FILE, "switch.json"])
    lacks = sorted(load_spec(repetition).unknown_columns)
    if lacks:
        raise InputError(
            f"{repetition}: its postcards lack {', '.join(lacks)}, and a postcard cannot mark missing "
            "fields; allowed: csv and parquet, where they are null"
        )
    count = 0
    with output.open("wb") as file:
        write_head(file, run_description.options(run_description.describe(repetition)))
        for cards, _, real_ns in stored(repetition):
            file.write(packets(datagrams(cards, wire.POSTCARD.const["POSTCARD_UDP_PORT"]), real_ns).tobytes())
            count += len(cards)
    return count


def stored(repetition: Path) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """For each block: (the postcards' bytes as rows; rx_mono_ns; the same times on CLOCK_REALTIME).

    Raises InputError, also after the last whole block if damaged bytes follow: the caller must discard its output.
    """
    path = repetition / POSTCARDS_FILE
    if not path.is_file():
        raise InputError(f"{path}: missing, so there are no postcards to export; allowed: a run with raw files")
    raw = RawFile.at(path)
    for block in blocks(path, wire.BLOCK.const["BLOCK_POSTCARDS"], raw):
        rows = np.frombuffer(bytes(block.payload), dtype=np.uint8).reshape(-1, block.header["record_bytes"])
        mono = rows[:, :STAMP].copy().view("<u8")[:, 0]
        raw.records += len(rows)
        real = (mono + np.uint64(block.header["realtime_minus_mono_ns"])).view(np.int64)
        yield rows[:, STAMP:], mono.view(np.int64), real
    if damage := raw.damage():
        raise InputError(f"{repetition}: {damage}; allowed: a run with whole raw files")


def write_head(file: IO[bytes], options: bytes = b"") -> None:
    """Writes the section header with these options, and one Ethernet interface with times in ns."""
    section = _words(PCAPNG["PCAPNG_BYTE_ORDER"]) + (1).to_bytes(2, "little") + bytes(2) + b"\xff" * 8 + options
    resolution = (9).to_bytes(2, "little") + (1).to_bytes(2, "little") + bytes([NANOSECONDS, 0, 0, 0]) + _words(0)
    interface = (PCAPNG["PCAPNG_ETHERNET"]).to_bytes(2, "little") + bytes(2) + _words(0) + resolution
    for kind, body in ((PCAPNG["PCAPNG_SECTION"], section), (PCAPNG["PCAPNG_INTERFACE"], interface)):
        size = _words(12 + len(body))
        file.write(_words(kind) + size + body + size)


def _words(*values: int) -> bytes:
    return b"".join(value.to_bytes(4, "little") for value in values)


def packets(frames: np.ndarray, real_ns: np.ndarray) -> np.ndarray:
    """Packet blocks (uint8, a row each) of frames of one length (uint8, frames x bytes)."""
    count, frame_bytes = frames.shape
    padding = -frame_bytes % 4
    size = wire.PCAPNG_PACKET.length + frame_bytes + padding + 4
    head = np.zeros(count, dtype=wire.PCAPNG_PACKET.dtype())
    head["block_type"], head["block_bytes"] = PCAPNG["PCAPNG_PACKET"], size
    head["time_high"], head["time_low"] = real_ns >> 32, real_ns & 0xFFFFFFFF
    head["captured_bytes"] = head["frame_bytes"] = frame_bytes
    rows = np.zeros((count, size), dtype=np.uint8)
    rows[:, : head.itemsize] = head.view(np.uint8).reshape(count, -1)
    rows[:, head.itemsize : head.itemsize + frame_bytes] = frames
    rows[:, -4:] = np.frombuffer(_words(size), dtype=np.uint8)
    return rows


def datagrams(payloads: np.ndarray, port: int) -> np.ndarray:
    """Frames with these payloads (uint8, rows of one length) to a UDP port, with correct IPv4 checksums."""
    count, size = payloads.shape
    udp_bytes = DATAGRAM.const["DATAGRAM_UDP_BYTES"] + size
    ethernet = DATAGRAM.const["DATAGRAM_ETHERNET_BYTES"]
    fields: dict[str, int] = {
        "ethernet_dst": COLLECTOR_MAC, "ethernet_src": SWITCH_MAC, "ethernet_type": IPV4_TYPE,
        "version_and_words": IPV4_WITHOUT_OPTIONS, "total_bytes": 20 + udp_bytes, "flags_and_offset": DONT_FRAGMENT,
        "ttl": TTL, "protocol": UDP, "src_addr": SWITCH_ADDRESS, "dst_addr": COLLECTOR_ADDRESS,
        "src_port": port, "dst_port": port, "udp_bytes": udp_bytes,
    }  # fmt: skip
    header = DATAGRAM.encode(**fields)
    fields["checksum"] = checksum(header[ethernet : ethernet + 20])
    head = np.frombuffer(DATAGRAM.encode(**fields), dtype=np.uint8)
    return np.hstack([np.broadcast_to(head, (count, len(head))), payloads])


def checksum(header: bytes) -> int:
    """The Internet checksum (RFC 1071) of an even number of bytes."""
    total = sum(int.from_bytes(header[at : at + 2], "big") for at in range(0, len(header), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF
