# SPDX-License-Identifier: MIT
"""Reads postcards of Spang et al.'s artifact (wire/artifact_postcard.def) from a capture or from bare datagrams
into the columns of our own postcards. Columns that the format does not have are null.

Packets of a capture are classified in batches: the artifact's postcards, and three kinds of other packets, which are
counted. The UDP port alone does not make a packet a postcard.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from analysis.capture import MAGICS, Capture, Frames
from analysis.flows import WORDS, Flows, FlowTable, flow_type
from analysis.raw import Columns, load_postcards
from analysis.tables import nulls
from lib import regular
from lib.errors import InputError
from lib.terminal import one_line
from wire import wire

FORMAT = wire.ARTIFACT_POSTCARD
UDP_PORT = FORMAT.const["ARTIFACT_POSTCARD_UDP_PORT"]
DATAGRAM_BYTES = FORMAT.length + FORMAT.const["ARTIFACT_POSTCARD_PADDING_BYTES"]
RAW_BATCH = 1 << 16

UDP, UDP_HEADER_BYTES, MIN_IPV4_BYTES = 17, 8, 20
IPV4, VLAN_TAGS = 0x0800, (0x8100, 0x88A8)
MOST_VLAN_TAGS = 2
IPV4_MAPPED = np.uint64(0xFFFF << 32)
TCP_FLOW = np.uint64(6 << 32)

# Link type (DLT_* of libpcap) -> (bytes before the IP header, offset of the EtherType in them, if any).
LINK_LAYERS = {0: (4, None), 1: (14, 12), 12: (0, None), 108: (4, None), 113: (16, 14), 228: (0, None), 276: (20, 0)}

SAME = ("ingress_port", "egress_port", "flow", "tcp_seq", "tcp_ack")  # columns with the meaning of our postcards
OWN = {"departure_depth_cells": np.uint32, "drop_control": np.uint8, "enqueue_time": np.uint32}


@dataclass
class Imported:
    """The content of a file. `columns` are those of postcards.parquet and four that only the artifact has:

    rx_real_ns              CLOCK_REALTIME of the capturing machine; null in bare datagrams
    departure_depth_cells   depth of the queue at the packet's departure; a cell of Tofino 1 has 80 bytes
    drop_control            the pipes' drop bits; 0: not dropped
    enqueue_time            low 32 bits of the switch's time; 0 becomes null: the published program always sends 0
    """

    columns: dict[str, pl.Series]
    flows: Flows
    postcards: int = 0
    other_packets: int = 0  # not to the artifact's UDP port
    not_postcards: int = 0  # to the port, but of another length, a first fragment, or without a mirrored copy's mark
    cut_short: int = 0  # to the port, but the capture kept too few bytes of it
    damage: str | None = None


def read(path: Path) -> Imported:
    """All postcards of a pcap or pcapng file, or of a file of concatenated datagrams.

    Raises InputError if the file cannot be read or is none of these, or if its link type is unknown.
    """
    try:
        with regular.opened(path) as file:
            magic = file.read(4)
        size = path.stat().st_size
    except OSError as error:
        raise InputError(f"{path}: not readable: {one_line(error)}") from None
    if magic in MAGICS:
        return _read_capture(path)
    if size == 0 or size % DATAGRAM_BYTES:
        raise InputError(
            f"{path}: neither pcap nor pcapng (not compressed), nor bare datagrams of {DATAGRAM_BYTES} bytes one after "
            f"the other: it has {size} bytes and begins with {magic.hex() or 'nothing'}"
        )
    return _read_datagrams(path)


def _read_capture(path: Path) -> Imported:
    parts = _PostcardBatches()
    with Capture(path) as capture:
        if capture.link_type not in LINK_LAYERS:
            raise InputError(
                f"{path}: link type {capture.link_type_name()} is not known here; allowed are Ethernet, Linux cooked, "
                "raw IP and BSD loopback: convert it with tcprewrite or editcap"
            )
        for frames in capture.batches():
            parts.add_frames(frames)
        parts.damage = capture.damage
    return parts.whole()


def _read_datagrams(path: Path) -> Imported:
    parts = _PostcardBatches()
    datagrams = np.memmap(path, dtype=np.uint8, mode="r").reshape(-1, DATAGRAM_BYTES)
    for start in range(0, len(datagrams), RAW_BATCH):
        parts.add_datagrams(datagrams[start : start + RAW_BATCH], None)
    if not parts.postcards:
        raise InputError(f"{path}: taken for bare datagrams, but none of its {len(datagrams)} is marked as a postcard")
    return parts.whole()


class _PostcardBatches:
    """Collects postcards and counts batch by batch."""

    def __init__(self) -> None:
        self.flows = FlowTable()
        self.parts: list[Columns] = []
        self.postcards = self.other_packets = self.not_postcards = self.cut_short = 0
        self.damage: str | None = None

    def add_frames(self, frames: Frames) -> None:
        to_port, payload_at, whole, complete = _datagrams(frames)
        self.other_packets += len(to_port) - int(to_port.sum())
        self.cut_short += int((to_port & whole & ~complete).sum())
        self.not_postcards += int((to_port & ~whole).sum())
        good = np.flatnonzero(to_port & whole & complete)
        rows = frames.rows[good[:, None], payload_at[good][:, None] + np.arange(FORMAT.length)]
        self.add_datagrams(rows, frames.real_ns[good])

    def add_datagrams(self, rows: np.ndarray, real_ns: np.ndarray | None) -> None:
        fields = FORMAT.columns(rows)
        good = fields["is_mirrored"] == 1
        count = int(good.sum())
        self.not_postcards += len(good) - count
        self.postcards += count
        fields = {name: values[good] for name, values in fields.items()}
        if real_ns is not None:
            fields["rx_real_ns"] = real_ns[good]
        fields["flow"] = self.flows.numbers(_flow_words(fields))
        self.parts.append(fields)

    def whole(self) -> Imported:
        if not self.parts:
            self.add_datagrams(np.empty((0, FORMAT.length), dtype=np.uint8), None)
        fields = {name: np.concatenate([part[name] for part in self.parts]) for name in self.parts[0]}
        return Imported(
            columns=_columns(fields, self.postcards, len(self.flows)),
            flows=self.flows.tuples(),
            postcards=self.postcards,
            other_packets=self.other_packets,
            not_postcards=self.not_postcards,
            cut_short=self.cut_short,
            damage=self.damage,
        )


def udp_payloads(frames: Frames, port: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Per frame: offset of the UDP payload, its length in bytes, and whether `frames.rows` has it completely.

    A length of -1 marks a frame that is not a datagram to `port`, is too short to know, or is a fragment without the
    UDP header; -2 marks the first fragment of a datagram to `port`.
    """
    rows, captured = frames.rows, frames.captured_bytes
    numbers = np.arange(len(rows))
    header_bytes, type_at = LINK_LAYERS[frames.link_type]
    ip = np.full(len(rows), header_bytes)

    def word(at: np.ndarray) -> np.ndarray:
        return rows[numbers, at].astype(np.int64) << 8 | rows[numbers, at + 1]

    is_ipv4 = np.ones(len(rows), dtype=bool)
    if type_at is not None:
        ether_type = word(np.full(len(rows), type_at))
        for _ in range(MOST_VLAN_TAGS):
            tagged = np.isin(ether_type, VLAN_TAGS)
            ether_type = np.where(tagged, word(ip + 2), ether_type)
            ip = ip + 4 * tagged
        is_ipv4 = ether_type == IPV4
    ip_bytes = (rows[numbers, ip] & 15).astype(np.int64) * 4
    is_ipv4 &= (rows[numbers, ip] >> 4 == 4) & (ip_bytes >= MIN_IPV4_BYTES)
    udp = ip + ip_bytes
    fragment = word(ip + 6)
    to_port = is_ipv4 & (rows[numbers, ip + 9] == UDP) & (fragment & 0x1FFF == 0)
    to_port &= (captured >= udp + 6) & (word(udp + 2) == port)
    payload = udp + UDP_HEADER_BYTES
    length = np.where(fragment & 0x2000 == 0, np.maximum(word(udp + 4) - UDP_HEADER_BYTES, 0), -2)
    length = np.where(to_port, length, -1)
    return payload, length, captured >= payload + length


def _datagrams(frames: Frames) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Per frame: whether it is an IPv4 datagram to the artifact's UDP port, the offset of its payload, whether the
    payload is unfragmented and has the length of a postcard, and whether a whole postcard was captured.
    """
    payload, length, _ = udp_payloads(frames, UDP_PORT)
    return length != -1, payload, length == DATAGRAM_BYTES, frames.captured_bytes >= payload + FORMAT.length


def _flow_words(fields: Columns) -> np.ndarray:
    words = np.zeros((WORDS, len(fields["src_addr"])), dtype=np.uint64)
    words[1] = IPV4_MAPPED | fields["src_addr"]
    words[3] = IPV4_MAPPED | fields["dst_addr"]
    words[4] = TCP_FLOW | fields["src_port"] << np.uint64(16) | fields["dst_port"]
    return words


def _columns(fields: Columns, rows: int, flows: int) -> dict[str, pl.Series]:
    """Our postcards' columns, then the artifact's own. The unknown flags ECT and CE_MARKED are 0."""
    card = wire.POSTCARD.const
    always = card["POSTCARD_HAS_IP"] | card["POSTCARD_HAS_PORTS"] | card["POSTCARD_HAS_TCP"]
    flags = np.where(fields["drop_control"] != 0, always | card["POSTCARD_DROPPED"], always)
    known = {name: fields[name] for name in SAME} | {"flags": flags}
    empty, _, _ = load_postcards(Path("/dev/null"))  # every column with its type, without rows
    empty["flow"] = empty["flow"].astype(flow_type(flows))
    columns = {
        name: pl.Series(name, known[name].astype(none.dtype)) if name in known else nulls(name, rows, none.dtype)
        for name, none in empty.items()
    }
    times = fields.get("rx_real_ns")
    columns["rx_real_ns"] = nulls("rx_real_ns", rows, np.int64) if times is None else pl.Series("rx_real_ns", times)
    for name, kind in OWN.items():
        columns[name] = pl.Series(name, fields[name].astype(kind))
    columns["enqueue_time"] = columns["enqueue_time"].set(columns["enqueue_time"] == 0, None)
    return columns
