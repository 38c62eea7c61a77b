# SPDX-License-Identifier: MIT
"""Shared by tests of the core: the core itself (softswitch/library.py), and frames for the hand-written pipeline."""

from lib.frames import LEAST_FRAME_BYTES, WIRE_EXTRA_BYTES
from softswitch.library import BUILD, COVERAGE, NEVER_NS, ROOT, Core, SentFrame, library, make

__all__ = [
    "BUILD", "COVERAGE", "NEVER_NS", "ROOT", "Core", "SentFrame", "frame_to", "library", "make", "wire_bits",
]  # fmt: skip


def wire_bits(frame_bytes: int) -> int:
    return 8 * (max(frame_bytes, LEAST_FRAME_BYTES) + WIRE_EXTRA_BYTES)


def frame_to(port: int, length: int = 100, ask: int = 0, fill: bytes = b"\0") -> bytes:
    """A frame for the hand-written pipeline, addressed to `port`. `ask`: the special treatment that it requests."""
    head = bytes.fromhex(f"02bf000000{port:02x}02bf00000001") + b"\x88\xb5" + bytes([ask])
    return head + fill * (length - len(head))


def departures(outputs: list[SentFrame], port: int = 2) -> list[int]:
    """Departure times (ns) from `port`."""
    return [output.departure_ns for output in outputs if output.port == port]
