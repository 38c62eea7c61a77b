# SPDX-License-Identifier: MIT
"""Raw files: NumPy layouts of stored records; encodes and reads blocks. formats.py has the formats themselves."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from wire.formats import (
    ARTIFACT_POSTCARD,
    BLOCK,
    CAPTURED_PACKET,
    CONNECTION,
    DATAGRAM,
    DEPTH_BUCKETS,
    FLOW_RECORD,
    GOODPUT_RECORD,
    HERE,
    PACKET_HEADERS,
    PCAPNG_PACKET,
    POLICY,
    POSTCARD,
    TCP_RECORD,
    TELEMETRY_REPORT,
    Format,
    wide,
)

__all__ = [
    "ARTIFACT_POSTCARD",
    "BLOCK",
    "CAPTURED_PACKET",
    "CONNECTION",
    "DATAGRAM",
    "DEPTH_BUCKETS",
    "FLOW_RECORD",
    "GOODPUT_RECORD",
    "HERE",
    "PACKET_HEADERS",
    "PCAPNG_PACKET",
    "POLICY",
    "POSTCARD",
    "RECORDS",
    "STORED_FLOW_RECORD",
    "STORED_GOODPUT_RECORD",
    "STORED_POSTCARD",
    "STORED_TCP_RECORD",
    "TCP_RECORD",
    "TELEMETRY_REPORT",
    "Block",
    "Format",
    "RawFileError",
    "encode_block",
    "read_blocks",
    "wide",
]

STORED_POSTCARD = POSTCARD.dtype(stamp_bytes=BLOCK.const["BLOCK_STAMP_BYTES"])
STORED_TCP_RECORD = TCP_RECORD.dtype()
STORED_GOODPUT_RECORD = GOODPUT_RECORD.dtype()
STORED_FLOW_RECORD = FLOW_RECORD.dtype()

# Kind of raw file -> version and bytes of a record.
RECORDS = {
    BLOCK.const["BLOCK_POSTCARDS"]: (POSTCARD.const["POSTCARD_VERSION"], STORED_POSTCARD.itemsize),
    BLOCK.const["BLOCK_TCP"]: (TCP_RECORD.const["TCP_RECORD_VERSION"], TCP_RECORD.length),
    BLOCK.const["BLOCK_GOODPUT"]: (GOODPUT_RECORD.const["GOODPUT_RECORD_VERSION"], STORED_GOODPUT_RECORD.itemsize),
    BLOCK.const["BLOCK_FLOWS"]: (FLOW_RECORD.const["FLOW_RECORD_VERSION"], STORED_FLOW_RECORD.itemsize),
}


@dataclass(frozen=True)
class Block:
    """One whole block of a raw file."""

    header: dict[str, int]
    payload: memoryview


class RawFileError(ValueError):
    """A whole block of another kind, or of an unknown layout or version: not damage, but not readable here."""


def encode_block(kind: int, record_version: int, record_bytes: int, payload: bytes, **header: int) -> bytes:
    """One block, ready to append. For tests and tools; the daemons encode blocks in C."""
    values = dict(
        header,
        magic=BLOCK.const["BLOCK_MAGIC"],
        version=BLOCK.const["BLOCK_VERSION"],
        kind=kind,
        record_version=record_version,
        record_bytes=record_bytes,
        record_count=len(payload) // record_bytes,
        payload_bytes=len(payload),
    )
    crc = zlib.crc32(payload, zlib.crc32(BLOCK.encode(**values)))
    return BLOCK.encode(**values, crc32=crc) + payload


def read_blocks(data: bytes | memoryview, kind: int) -> Iterator[Block]:
    """The whole blocks of a raw file, up to the first block that is short or damaged.

    `data` may be a memory map. If the blocks read end before `len(data)`, the rest is damaged: the caller checks.
    Raises RawFileError on a whole block of another kind, layout or version.
    """
    view = memoryview(data)
    at = 0
    while at + BLOCK.length <= len(view):
        header = BLOCK.decode(view[at : at + BLOCK.length])
        end = at + BLOCK.length + header["payload_bytes"]
        if header["magic"] != BLOCK.const["BLOCK_MAGIC"]:
            return
        if header["payload_bytes"] > BLOCK.const["BLOCK_MAX_PAYLOAD_BYTES"] or end > len(view):
            return
        payload = view[at + BLOCK.length : end]
        if zlib.crc32(payload, zlib.crc32(BLOCK.encode(**{**header, "crc32": 0}))) != header["crc32"]:
            return
        layout = (header["version"], header["kind"], header["record_version"], header["record_bytes"])
        known = (BLOCK.const["BLOCK_VERSION"], kind, *RECORDS[kind])
        if layout != known:
            raise RawFileError(
                f"block at byte {at} has (block version, kind, record version, record bytes) {layout}, "
                f"this reader knows {known}"
            )
        if header["record_count"] * header["record_bytes"] != header["payload_bytes"]:
            return
        yield Block(header, payload)
        at = end
