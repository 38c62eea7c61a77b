# SPDX-License-Identifier: MIT
"""Reads frames of pcap and pcapng files in batches of NumPy rows.

libpcap decodes the files: it comes from the authors of both formats, knows all byte orders and time resolutions, reads
several interfaces of one link type in one file, and is fuzzed. Damage after the file's header raises nothing: all
frames before the damage are used. A damaged header raises InputError.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from ctypes.util import find_library
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from lib.errors import InputError

ROW_BYTES = 192  # kept of each frame: enough for all link, IP and UDP headers and a small datagram
BATCH_FRAMES = 1 << 16
MOST_NS = 1 << 62  # the latest time, in the year 2116
_NANOSECONDS = 1  # PCAP_TSTAMP_PRECISION_NANO
_ERROR_BYTES = 256  # PCAP_ERRBUF_SIZE

UDP, UDP_HEADER_BYTES, MIN_IPV4_BYTES = 17, 8, 20
IPV4, VLAN_TAGS = 0x0800, (0x8100, 0x88A8)
MOST_VLAN_TAGS = 2

# Link type (DLT_* of libpcap) -> (bytes before the IP header, offset of the EtherType in them, if any).
LINK_LAYERS = {0: (4, None), 1: (14, 12), 12: (0, None), 108: (4, None), 113: (16, 14), 228: (0, None), 276: (20, 0)}

# First bytes of captures: pcap in us and ns, each in either byte order, and pcapng.
MAGICS = tuple(map(bytes.fromhex, ("a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1", "0a0d0d0a")))


@dataclass
class Frames:
    """A batch of frames. `rows` are their first ROW_BYTES, padded with zeros."""

    link_type: int  # DLT_* of libpcap
    rows: np.ndarray  # uint8, frames x ROW_BYTES
    captured_bytes: np.ndarray  # of each frame, at most ROW_BYTES
    real_ns: np.ndarray  # int64, CLOCK_REALTIME of the machine that captured


class Capture:
    """An open capture file; a context manager. `damage` is one line if the file could not be read to its end."""

    def __init__(self, path: Path) -> None:
        self.damage: str | None = None
        self._path = path
        self._library = _libpcap()
        reason = ctypes.create_string_buffer(_ERROR_BYTES)
        name = os.fsencode(path.absolute())
        self._handle = self._library.pcap_open_offline_with_tstamp_precision(name, _NANOSECONDS, reason)
        if not self._handle:
            raise InputError(f"{path}: libpcap cannot read it: {reason.value.decode(errors='replace')}")
        self.link_type: int = self._library.pcap_datalink(self._handle)
        if self.link_type not in LINK_LAYERS:
            name_of_type = self._library.pcap_datalink_val_to_name(self.link_type)
            self._library.pcap_close(self._handle)
            raise InputError(
                f"{path}: link type {name_of_type.decode() if name_of_type else self.link_type} is not known here; "
                "allowed are Ethernet, Linux cooked, raw IP and BSD loopback: convert it with tcprewrite or editcap"
            )

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, *_: object) -> None:
        self._library.pcap_close(self._handle)

    def batches(self) -> Iterator[Frames]:
        """All frames in the file's order."""
        header, data = ctypes.POINTER(_Header)(), ctypes.c_void_p()
        more = True
        while more:
            rows: list[bytes] = []
            lengths, times = [], []
            while len(rows) < BATCH_FRAMES and more:
                status = self._library.pcap_next_ex(self._handle, ctypes.byref(header), ctypes.byref(data))
                more = status == 1
                if more:
                    frame = header.contents
                    real_ns = frame.seconds * 1_000_000_000 + frame.nanoseconds
                    if not 0 <= real_ns < MOST_NS:
                        self.damage = self._cut(f"a time of {frame.seconds} s")
                        more = False
                        break
                    length = min(frame.captured_bytes, ROW_BYTES)
                    rows.append(ctypes.string_at(data, length).ljust(ROW_BYTES, b"\0") if length else bytes(ROW_BYTES))
                    lengths.append(length)
                    times.append(real_ns)
                elif status == -1:
                    reason = self._library.pcap_geterr(self._handle).decode(errors="replace")
                    self.damage = self._cut(reason)
            if rows:
                yield Frames(
                    self.link_type,
                    np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(-1, ROW_BYTES),
                    np.array(lengths, dtype=np.int64),
                    np.array(times, dtype=np.int64),
                )

    def _cut(self, reason: str) -> str:
        return f"{self._path}: damaged or cut off: {reason}; the frames before that are used"


def udp_payloads(frames: Frames, port: int) -> tuple[np.ndarray, np.ndarray]:
    """Offset and length in bytes of each frame's UDP payload.

    A length of -1 marks a frame that is not a datagram to `port`, is too short to know, or is a fragment without the
    UDP header; -2 marks the first fragment of a datagram to `port`.
    """
    rows = frames.rows
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
    to_port &= (frames.captured_bytes >= udp + 6) & (word(udp + 2) == port)
    payload = udp + UDP_HEADER_BYTES
    length = np.where(fragment & 0x2000 == 0, np.maximum(word(udp + 4) - UDP_HEADER_BYTES, 0), -2)
    length = np.where(to_port, length, -1)
    return payload, length


class _Header(ctypes.Structure):
    """struct pcap_pkthdr; its microseconds are nanoseconds with PCAP_TSTAMP_PRECISION_NANO."""

    _fields_ = [
        ("seconds", ctypes.c_long),
        ("nanoseconds", ctypes.c_long),
        ("captured_bytes", ctypes.c_uint32),
        ("frame_bytes", ctypes.c_uint32),
    ]


@cache
def _libpcap() -> ctypes.CDLL:
    name = find_library("pcap")
    if name is None:
        raise InputError("libpcap, which reads captures, is missing: install it (Debian: apt install libpcap0.8)")
    library = ctypes.CDLL(name)
    library.pcap_open_offline_with_tstamp_precision.restype = ctypes.c_void_p
    library.pcap_open_offline_with_tstamp_precision.argtypes = [ctypes.c_char_p, ctypes.c_uint, ctypes.c_char_p]
    library.pcap_next_ex.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    library.pcap_geterr.restype = ctypes.c_char_p
    library.pcap_geterr.argtypes = [ctypes.c_void_p]
    library.pcap_datalink.argtypes = [ctypes.c_void_p]
    library.pcap_datalink_val_to_name.restype = ctypes.c_char_p
    library.pcap_close.argtypes = [ctypes.c_void_p]
    library.pcap_close.restype = None
    return library
