# SPDX-License-Identifier: MIT
"""Every frame of an interface is recorded, or counted as lost."""

import json
import select
import signal
import socket
import struct
import sys
import time
from pathlib import Path

import pytest

from hosts import recorder
from lib.tests.namespace import inside

pytestmark = pytest.mark.software


def frames(path: Path) -> list[tuple[int, int, bytes]]:
    """(time in ns, length, the bytes that were kept) of each frame."""
    data = path.read_bytes()
    assert data.startswith(recorder.PCAP_HEADER)
    at, found = len(recorder.PCAP_HEADER), []
    while at < len(data):
        seconds, nanoseconds, kept, length = recorder.PCAP_FRAME.unpack_from(data, at)
        at += recorder.PCAP_FRAME.size + kept
        found.append((seconds * 10**9 + nanoseconds, length, data[at - kept : at]))
    return found


def test_frames__of_both_directions_are_recorded_with_their_times(pair, tmp_path: Path) -> None:
    words = ["--into", "eth0", "--out-of", "eth0", "--directory", tmp_path]
    recording = pair.start("a", sys.executable, "-m", "hosts.recorder", *words)
    assert select.select([recording.stdout], [], [], 60)[0]
    assert recording.stdout.readline() == "ready\n"
    begin_ns = time.monotonic_ns()
    pair.run("a", "ping", "-c", "3", "-i", "0.01", "-s", "1000", "10.77.0.2")
    recording.send_signal(signal.SIGTERM)
    assert recording.wait(60) == 0
    said = json.loads((tmp_path / "recorder.json").read_text())
    for name, echo in (("into", 0), ("out_of", 8)):
        found = frames(tmp_path / f"{name}.pcap")
        assert said[name] == {"frames": len(found), "kernel_drops": 0, "passed": len(found)}
        echoes = [(ns, kept) for ns, length, kept in found if length == 1042 and kept[23] == 1]
        assert [(len(kept), kept[34]) for _, kept in echoes] == [(recorder.SNAP_BYTES, echo)] * 3
        assert begin_ns < echoes[0][0] < echoes[1][0] < echoes[2][0] < said["until_mono_ns"]


def test_frame__that_finds_the_ring_full_is_counted(pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "SLOTS", 16)
    monkeypatch.setattr(recorder, "BLOCK_BYTES", 4096)

    def recorded() -> dict[str, int]:
        recording = recorder.Recording("eth0", True, tmp_path / "out_of.pcap")
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
            sender.bind(("eth0", 0))
            for number in range(40):
                sender.send(struct.pack("!12xHI", 0x88B5, number).ljust(60, b"\0"))
        recording.read(recorder.clock_offset_ns())
        return recording.end()

    said = inside(pair.names["a"], recorded)
    assert said["frames"] == len(frames(tmp_path / "out_of.pcap")) == 16
    assert said["kernel_drops"] == said["passed"] - 16 >= 24
