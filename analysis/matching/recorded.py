# SPDX-License-Identifier: MIT
"""Makes the postcards of a switch that makes none, from what hosts/recorder.py recorded before and behind it."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from analysis.matching import headers
from analysis.matching.depths import with_depths
from analysis.matching.match import Limits, Matcher
from analysis.read.columns import Columns, slabs
from analysis.read.flows import PROTOCOL_NUMBERS
from lib.errors import InputError
from runs.names import CAPTURES, POSTCARDS_FILE
from wire import wire

CARD = wire.POSTCARD.const
ROWS_PER_BLOCK = 5_000
READ_BYTES = 4 << 20
ROW_BYTES = 160  # as many as hosts/recorder.py keeps of a frame
MAGIC_AND_VERSION = bytes.fromhex("4d3cb2a102000400")  # pcap in ns, little-endian
FILE_HEADER_BYTES, FRAME_HEADER = 24, struct.Struct("<IIII")  # seconds, nanoseconds, captured, length


class Watched(NamedTuple):
    """The queue between the two recordings, in the numbers of its postcards. `most_ns`: no packet stays longer."""

    switch_id: int
    ingress_port: int
    egress_port: int
    most_ns: int


def make_postcards(directory: Path, queue: Watched) -> None:
    """Writes postcards.bsp, and matching.json with the counts of packets. Raises InputError if a recording cannot be
    read, OSError.
    """
    into, out_of = (frames(directory / name) for name in CAPTURES)
    try:
        until_ns = int(json.loads((directory / "recorder.json").read_text())["until_mono_ns"])
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{directory / 'recorder.json'}: cannot be read: {error}; see logs/recorder.log") from None
    matcher = Matcher(into, out_of, Limits(queue.most_ns, until_ns=until_ns))
    packets = with_depths(packets for packets, _ in matcher if packets)
    count = write_postcards(directory / POSTCARDS_FILE, packets, queue)
    counts = {name: getattr(matcher, name) for name in COUNTS}
    (directory / "matching.json").write_text(json.dumps({"postcards": count, **counts}, indent=1) + "\n")


def write_postcards(path: Path, slabs_of_packets: Iterable[Columns], queue: Watched) -> int:
    """Writes the postcards of packets of a Matcher with depths; returns their number. Raises OSError."""
    numbers, count = [0, 0], 0
    with path.open("xb") as file:
        for packets in slabs_of_packets:
            rows = _postcards(packets, queue, numbers)
            for block in slabs(len(rows), ROWS_PER_BLOCK):
                _write(file, rows[block], count)
                count += len(rows[block])
    return count


COPIED = (
    "depth_packets", "depth_bytes", "ip_protocol", "tcp_flags", "src_port", "dst_port", "tcp_seq", "tcp_ack",
)  # fmt: skip
COUNTS = ("pairs", "drops", "marks", "only_behind", "changed", "ambiguous", "undecided")


def frames(path: Path) -> Iterator[Columns]:
    """The frames of a file of hosts/recorder.py, slab by slab. Raises InputError if it is another file, or cut off."""
    with path.open("rb") as file:
        if not file.read(FILE_HEADER_BYTES).startswith(MAGIC_AND_VERSION):
            raise InputError(f"{path}: is no recording of hosts/recorder.py")
        rest = b""
        while part := file.read(READ_BYTES):
            data = rest + part
            at, places, stamps = 0, [], []
            while at + FRAME_HEADER.size <= len(data):
                seconds, nanoseconds, captured, length = FRAME_HEADER.unpack_from(data, at)
                end = at + FRAME_HEADER.size + captured
                if end > len(data):
                    break
                places.append((at + FRAME_HEADER.size, captured, length))
                stamps.append(seconds * 10**9 + nanoseconds)
                at = end
            rest = data[at:]
            if places:
                yield _columns(np.frombuffer(data, dtype=np.uint8), np.array(places), np.array(stamps))
    if rest:
        raise InputError(f"{path}: is cut off; run the experiment again")


def _columns(data: np.ndarray, places: np.ndarray, stamps: np.ndarray) -> Columns:
    first, captured, length = places.T
    byte = np.arange(ROW_BYTES)
    rows = data[np.minimum(first[:, None] + byte, len(data) - 1)]
    rows[byte >= captured[:, None]] = 0
    return headers.columns(stamps, length, rows)


def _postcards(packets: Columns, queue: Watched, numbers: list[int]) -> np.ndarray:
    """The stored postcards of packets. `numbers`: of the next postcard of a packet that left, and of a dropped one."""
    came_ns, dropped = packets["time_ns"], packets["dropped"]
    sojourn_ns = np.where(dropped, 0, packets["departure_ns"] - came_ns)
    is_tcp, is_udp = (packets["ip_protocol"] == PROTOCOL_NUMBERS[name] for name in ("tcp", "udp"))
    flags = np.zeros(len(came_ns), dtype=np.uint8)
    for name, rows in {
        "DROPPED": dropped, "AT_INGRESS": dropped, "CE_MARKED": packets["marked"], "ECT": packets["ecn"] != 0,
        "HAS_IP": packets["ip_protocol"] != 0, "HAS_PORTS": is_tcp | is_udp, "HAS_TCP": is_tcp,
    }.items():  # fmt: skip
        flags[rows] |= CARD[f"POSTCARD_{name}"]
    seq = np.where(dropped, numbers[1] + np.cumsum(dropped) - 1, numbers[0] + np.cumsum(~dropped) - 1)
    numbers[0] += int(np.count_nonzero(~dropped))
    numbers[1] += int(np.count_nonzero(dropped))
    values: Columns = {
        "rx_mono_ns": came_ns + sojourn_ns,
        "version": np.array(CARD["POSTCARD_VERSION"]),
        "flags": flags,
        **{name: np.array(getattr(queue, name)) for name in ("switch_id", "ingress_port", "egress_port")},
        "card_seq": seq & 0xFFFF_FFFF,
        "packet_bytes": packets["frame_bytes"],
        **{name: packets[name] for name in COPIED},
    }  # fmt: skip
    rows = np.zeros(len(came_ns), dtype=wire.STORED_POSTCARD)
    for name, column in values.items():
        rows[name] = column
    wide: dict[str, tuple[np.ndarray, ...]] = {"enqueue_switch_ns": (came_ns,), "sojourn_ns": (sojourn_ns,)}
    wide |= {f"{end}_addr": (packets[f"{end}_addr_hi"], packets[f"{end}_addr_lo"]) for end in ("src", "dst")}
    for name, parts in wide.items():
        data = np.stack(parts, axis=1).astype(">u8").view(np.uint8).reshape(len(rows), 8 * len(parts))
        rows[name] = data[:, data.shape[1] - rows.dtype[name].shape[0] :]
    return rows


def _write(file: BinaryIO, rows: np.ndarray, first: int) -> None:
    kind, version = wire.BLOCK.const["BLOCK_POSTCARDS"], CARD["POSTCARD_VERSION"]
    file.write(wire.encode_block(kind, version, rows.itemsize, rows.tobytes(), first_record=first))
