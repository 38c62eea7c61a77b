# SPDX-License-Identifier: MIT
"""Records the headers of the frames that enter and leave a switch: `python -m hosts.recorder --into IF --out-of IF
--directory D`.

into.pcap has the frames that came in at the first interface, out_of.pcap those that left at the second, with the
kernel's stamps in ns of CLOCK_MONOTONIC. Prints `ready` when both are recorded. On SIGTERM it records what came so
far, and writes recorder.json: of each file the frames, those that the kernel dropped because the ring was full, and
those that passed the interface by its own counter.
Standard library only.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import mmap
import signal
import socket
import struct
import sys
import time
from pathlib import Path
from typing import BinaryIO

SNAP_BYTES = 160  # Ethernet, VLAN tags, IPv6, the longest TCP header; or the first bytes of a datagram
PERIOD_S = 0.02  # between two readings of the rings
SLOT_BYTES, SLOTS, BLOCK_BYTES = 256, 1 << 15, 1 << 16
# include/uapi/linux/if_packet.h
ETH_P_ALL, SOL_PACKET, PACKET_RX_RING, PACKET_STATISTICS, PACKET_VERSION, TPACKET_V2 = 3, 263, 5, 6, 10, 1
PACKET_OUTGOING = 4
SLOT = struct.Struct("=IIIHHII")  # struct tpacket2_hdr: status, length, captured, mac, net, seconds, nanoseconds
KERNELS, STATUS = 0, struct.Struct("=I")
SO_ATTACH_FILTER = 26
PCAP_HEADER = struct.pack("=IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, SNAP_BYTES, 1)  # in ns, of Ethernet frames
PCAP_FRAME = struct.Struct("=IIII")  # seconds, nanoseconds, captured, length


class Recording:
    """The frames of one direction at one interface."""

    def __init__(self, interface: str, outgoing: bool, path: Path) -> None:
        self.frames = self.kernel_drops = 0
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        code = ctypes.create_string_buffer(only(outgoing))
        program = struct.pack("@HP", len(code) // 8, ctypes.addressof(code))
        self._socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
        self._socket.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
        size = SLOT_BYTES * SLOTS
        self._socket.setsockopt(
            SOL_PACKET, PACKET_RX_RING, struct.pack("=IIII", BLOCK_BYTES, size // BLOCK_BYTES, SLOT_BYTES, SLOTS)
        )
        self._ring = mmap.mmap(self._socket.fileno(), size)
        self._next = self._last_ns = 0
        self._file: BinaryIO = path.open("xb")
        self._file.write(PCAP_HEADER)
        self._interface, self._outgoing = interface, outgoing
        self._socket.bind((interface, ETH_P_ALL))
        self._passed_before = self._passed()

    def read(self, offset_ns: int) -> None:
        """Writes the frames in the ring. `offset_ns`: CLOCK_REALTIME minus CLOCK_MONOTONIC."""
        parts = []
        for _ in range(SLOTS):
            at = self._next * SLOT_BYTES
            status, length, captured, mac, _, seconds, nanoseconds = SLOT.unpack_from(self._ring, at)
            if status == KERNELS:
                break
            self._last_ns = max(self._last_ns, seconds * 10**9 + nanoseconds - offset_ns)  # frames come in order
            seconds, nanoseconds = divmod(self._last_ns, 10**9)
            parts += [
                PCAP_FRAME.pack(seconds, nanoseconds, captured, length),
                self._ring[at + mac : at + mac + captured],
            ]
            STATUS.pack_into(self._ring, at, KERNELS)
            self._next = (self._next + 1) % SLOTS
        self._file.write(b"".join(parts))
        self.frames += len(parts) // 2

    def end(self) -> dict[str, int]:
        """Closes the file. `passed`: frames since the start by the interface's own counter."""
        passed = self._passed() - self._passed_before
        _, drops = struct.unpack("=II", self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        self._file.close()
        return {"frames": self.frames, "kernel_drops": drops, "passed": passed}

    def _passed(self) -> int:
        lines = Path("/proc/thread-self/net/dev").read_text().splitlines()
        counters = next(
            rest.split() for line in lines for name, _, rest in [line.partition(":")] if name.strip() == self._interface
        )
        return int(counters[9 if self._outgoing else 1])


def only(outgoing: bool) -> bytes:
    """A classic BPF program that takes the first SNAP_BYTES of the frames of one direction (socket(7), filter.txt)."""
    ld_packet_type, jump_if_equal, ret = (0x20, 0, 0, 0xFFFFF004), (0x15, 0, 1, PACKET_OUTGOING), 0x06
    taken = ((ret, 0, 0, SNAP_BYTES), (ret, 0, 0, 0))
    lines = (ld_packet_type, jump_if_equal, *(taken if outgoing else taken[::-1]))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def run(into: str, out_of: str, directory: Path) -> None:
    """Records until SIGTERM or SIGINT."""
    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    recordings = {
        "into": Recording(into, False, directory / "into.pcap"),
        "out_of": Recording(out_of, True, directory / "out_of.pcap"),
    }
    last_ns, step_max_ns, going = clock_offset_ns(), 0, True
    print("ready", flush=True)
    while going:
        going = signal.sigtimedwait(signals, PERIOD_S) is None
        offset_ns = clock_offset_ns()
        step_max_ns, last_ns = max(step_max_ns, abs(offset_ns - last_ns)), offset_ns
        for recording in recordings.values():
            recording.read(offset_ns)
    document: dict[str, object] = {name: recording.end() for name, recording in recordings.items()}
    document |= {"until_mono_ns": time.monotonic_ns(), "realtime_step_max_ns": step_max_ns}
    (directory / "recorder.json").write_text(json.dumps(document, indent=1) + "\n")


def clock_offset_ns() -> int:
    """CLOCK_REALTIME minus CLOCK_MONOTONIC, from the shortest of a few readings."""
    readings = []
    for _ in range(5):
        before, real, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        readings.append((after - before, real - (before + after) // 2))
    return min(readings)[1]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m hosts.recorder", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--into", required=True, metavar="INTERFACE")
    parser.add_argument("--out-of", required=True, metavar="INTERFACE")
    parser.add_argument("--directory", required=True, type=Path)
    options = parser.parse_args(arguments)
    try:
        run(options.into, options.out_of, options.directory)
    except OSError as error:
        print(f"recorder: {options.directory}: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
