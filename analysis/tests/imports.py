# SPDX-License-Identifier: MIT
"""Shared by tests of imports: a successful import, a capture of datagrams, a refused import."""

import socket
import struct
from pathlib import Path

from analysis.tests import foreign
from bufferscope.__main__ import main
from wire import wire

CONDITIONS = ["RATE=50mbit", "RTT=10ms"]
EXPERIMENT = f"EXPERIMENT={foreign.EXPERIMENT}"
ARTIFACT_CARD = wire.ARTIFACT_POSTCARD.encode(is_mirrored=1, src_addr=1, dst_addr=2, egress_port=2) + bytes(
    wire.ARTIFACT_POSTCARD.const["ARTIFACT_POSTCARD_PADDING_BYTES"]
)


def imported(source, output, *words) -> Path:
    assert main(["import", f"FROM={source}", f"OUTPUT={output}", *CONDITIONS, *words]) == 0
    return Path(output) / "rep-1"


def pcap(path: Path, datagrams: list[tuple[int, bytes]], port: int, kept=lambda number: 65535) -> Path:
    """A capture of UDP datagrams; times are ns. `kept` maps a frame's number to its snapshot length."""
    frames = [struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)]
    for number, (ns, payload) in enumerate(datagrams):
        udp = struct.pack(">HHHH", 4444, port, 8 + len(payload), 0) + payload
        ip = struct.pack(
            ">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, bytes(4), socket.inet_aton("10.0.0.9")
        )
        frame = bytes(12) + b"\x08\x00" + ip + udp
        captured = frame[: kept(number)]
        frames += [struct.pack("<IIII", ns // 10**9, ns % 10**9, len(captured), len(frame)), captured]
    path.write_bytes(b"".join(frames))
    return path


def refused(source, output, capsys, *words) -> str:
    """Asserts that the import is refused in one line and leaves nothing behind. Returns the line."""
    assert main(["import", f"FROM={source}", f"OUTPUT={output}", *CONDITIONS, *words]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), err.startswith("error: ")) == ("", 1, True)
    assert not Path(output).exists()
    return err
