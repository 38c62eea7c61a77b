# SPDX-License-Identifier: MIT
"""Captures as NumPy records: starts capture_reader, which is built on demand (gcc and make), and the program that
decompresses the file. Both run beside this process, so reading takes one more processor if there is one.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any

import numpy as np

from lib.errors import InputError
from lib.places import BUILD
from lib.terminal import one_line
from wire.wire import CAPTURED_PACKET

HERE = Path(__file__).resolve().parent
COVERAGE = ["COVERAGE=1"] if os.environ.get("COVERAGE") else []
PROGRAM = BUILD / ("coverage" if COVERAGE else "") / "capture_reader"
BATCH_PACKETS = 1 << 16
# First bytes of captures: pcap in us, in ns and with longer records, each in either byte order; pcapng.
MAGICS = tuple(map(bytes.fromhex, ("a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1", "a1b2cd34", "34cdb2a1", "0a0d0d0a")))
MOST_MIB = 256  # of memory that a file may ask for to be decompressed
DECOMPRESSORS = {
    b"\x1f\x8b": ("gzip", "-dc"),
    b"\x28\xb5\x2f\xfd": ("zstd", "-dc", f"--memory={MOST_MIB}MB"),
    b"\xfd7zX": ("xz", "-dc", "-T1", f"--memlimit-decompress={MOST_MIB}MiB"),
}
LINK_TYPES = {9: "PPP", 50: "PPP", 51: "PPPoE", 105: "802.11", 127: "802.11 with radiotap", 189: "USB", 220: "USB"}
TUNNELS = {
    number: name.removeprefix("TUNNEL_").replace("_", "-").replace("IP-IN-IP", "IP-in-IP")
    for name, number in CAPTURED_PACKET.const.items()
    if name.startswith("TUNNEL_") and number
}


def is_capture(path: Path) -> bool:
    """Whether the file, or what it has in compressed form, begins as a capture does. Raises InputError if it cannot be
    read, or not be decompressed in MOST_MIB of memory.
    """
    try:
        with path.open("rb", buffering=0) as file:
            start = file.read(4)
            file.seek(0)
            if command := _decompressor(path, start):
                # Not by the file's name: zstd leaves links out.
                pipe = subprocess.PIPE
                with subprocess.Popen(command, stdin=file, stdout=pipe, stderr=pipe) as process:
                    assert process.stdout
                    start = process.stdout.read(4)
                    if start:
                        process.kill()
                    _, complaint = process.communicate()
                if not start and (reason := " ".join(complaint.decode(errors="replace").split())):
                    if "memory" in reason.lower():
                        reason = f"{command[0]} needs more than {MOST_MIB} MiB of memory: decompress it before"
                    raise InputError(f"{path}: cannot be decompressed: {reason}")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {one_line(error)}") from None
    return start in MAGICS


def _decompressor(path: Path, start: bytes) -> tuple[str, ...]:
    """The command, if the file needs one."""
    command = next((command for magic, command in DECOMPRESSORS.items() if start.startswith(magic)), ())
    if command and shutil.which(command[0]) is None:
        raise InputError(f"{path}: {command[0]}, which decompresses it, is missing: install it")
    return command


@dataclass
class Capture:
    """A capture file. After `batches` was read to its end, the rest is known."""

    path: Path
    payload_bytes: int = 0  # of each packet's TCP or UDP payload, in the column `payload`
    damage: str | None = None  # one line if the file could not be read to its end
    untimed: int = 0  # packets that pcapng stored without a time, which are left out
    lost: int = 0  # packets that the capture lost, by its own counters
    interfaces: list[dict[str, Any]] = field(default_factory=list)  # by number: what capture_reader says of each

    def batches(self) -> Iterator[np.ndarray]:
        """All packets in the file's order, as records of wire/captured_packet.def. Raises InputError if the file is not
        a capture, if all its packets have an unknown link type, or if a program is missing.
        """
        layout = CAPTURED_PACKET.dtype()
        if self.payload_bytes:
            layout = np.dtype([*layout.descr, ("payload", "u1", (self.payload_bytes,))])
        reader = program()
        with self.path.open("rb", buffering=0) as file:
            source: IO[bytes] = file
            unpacker = None
            start = file.read(4)
            file.seek(0)
            if unpack := _decompressor(self.path, start):
                unpacker = subprocess.Popen(unpack, stdin=file, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                assert unpacker.stdout
                source = unpacker.stdout
            command = [str(reader), *(["--payload", str(self.payload_bytes)] if self.payload_bytes else [])]
            process = subprocess.Popen(command, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            try:
                if unpacker:
                    source.close()  # so that it ends when capture_reader does
                yield from self._records(process, layout)
                self._end(process, unpacker)
            finally:
                for part in (process, unpacker):
                    if part:
                        part.kill()
                        part.communicate()

    def _records(self, process: subprocess.Popen[bytes], layout: np.dtype) -> Iterator[np.ndarray]:
        assert process.stdout
        with suppress(AttributeError, OSError):  # a pipe of 64 KiB makes the two programs wait for each other
            import fcntl

            fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 1 << 20)
        while data := process.stdout.read(BATCH_PACKETS * layout.itemsize):
            yield np.frombuffer(data, dtype=layout, count=len(data) // layout.itemsize)

    def _end(self, process: subprocess.Popen[bytes], unpacker: subprocess.Popen[bytes] | None) -> None:
        _, said = process.communicate()
        try:
            counts = json.loads(said)
        except ValueError:
            raise InputError(f"{self.path}: capture_reader failed: {one_line(Exception(said.decode()))}") from None
        reason = counts["damage"]
        if unpacker:
            _, complaint = unpacker.communicate()
            if unpacker.returncode not in (0, -signal.SIGPIPE):  # SIGPIPE: capture_reader ended before
                said_why = " ".join(complaint.decode(errors="replace").split())
                reason = said_why or f"the program that decompresses it ended with status {unpacker.returncode}"
        if process.returncode:
            raise InputError(f"{self.path}: cannot be read as a capture: {reason}")
        if reason:
            self.damage = f"{self.path}: damaged or cut off: {reason}; the frames before that are used"
        self.untimed, self.interfaces = counts["untimed"], counts["interfaces"]
        self.lost = sum(interface["dropped"] or 0 for interface in self.interfaces)
        used = [interface for interface in self.interfaces if interface["frames"]]
        if used and not any(interface["is_known"] for interface in used):
            types = {LINK_TYPES.get(number := one["link_type"], f"number {number}") for one in used}
            raise InputError(
                f"{self.path}: link type {', '.join(sorted(types))} is not known here; allowed are Ethernet, Linux "
                "cooked, raw IP and BSD loopback: convert it with tcprewrite or editcap"
            )


@cache
def program() -> Path:
    """capture_reader, built if it is not there or older than its source. Raises InputError."""
    done = subprocess.run(["make", "-C", HERE, *COVERAGE], capture_output=True, text=True)
    if done.returncode:
        raise InputError(
            f"capture_reader was not built (it reads captures and needs gcc and make): {done.stderr.strip()[-300:]}"
        )
    return PROGRAM
