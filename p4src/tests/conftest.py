# SPDX-License-Identifier: MIT
"""The compiled program in the switch core, in virtual time: frames go in at exact times, outputs come out with theirs.

The suite talks to a `Switch`, of which the soft switch's core is one kind; tests say nothing about how it is driven.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from p4src.tests import frames
from softswitch.tests.core_driver import Core, Output
from wire.wire import POSTCARD

ROOT = Path(__file__).resolve().parents[2]
SENDER_PORT, RECEIVER_PORT, COLLECTOR_PORT = 1, 2, 3
SWITCH_ID = 7
BUFFER_PACKETS = 163
RATE_BPS = 200_000_000
POSTCARD_HEADERS_BYTES = 14 + 20 + 8
COLLECTOR_ARGUMENTS = (
    int(frames.SWITCH_MAC.replace(":", ""), 16),
    int(frames.COLLECTOR_MAC.replace(":", ""), 16),
    int(IPv4Address(frames.SWITCH)),
    int(IPv4Address(frames.COLLECTOR)),
    POSTCARD.const["POSTCARD_UDP_PORT"],
    POSTCARD.const["POSTCARD_UDP_PORT"],
)


@dataclass(frozen=True)
class Postcard:
    """One postcard as the collector's port got it."""

    fields: dict[str, int]

    def __getattr__(self, name: str) -> int:
        try:
            return self.fields[name]
        except KeyError:
            raise AttributeError(name) from None

    def has(self, flag: str) -> bool:
        return bool(self.fields["flags"] & POSTCARD.const[f"POSTCARD_{flag}"])


class Switch:
    """A core with the program, configured as the lab has it: three ports, the queue towards the receiver watched."""

    def __init__(self) -> None:
        self.core = Core("p4", (SENDER_PORT, RECEIVER_PORT, COLLECTOR_PORT), packets=8192, frame_bytes=9216)
        self.sent: list[Output] = []
        for mac, port in ((frames.SENDER_MAC, SENDER_PORT), (frames.RECEIVER_MAC, RECEIVER_PORT)):
            self.control(f"table set forward 0x{mac.replace(':', '')} = send_to {port}")
        self.control(f"port set {RECEIVER_PORT} rate {RATE_BPS}")
        self.control(f"mirror set 1 {COLLECTOR_PORT}")
        self.control("table default collector send_to_collector " + " ".join(map(hex, COLLECTOR_ARGUMENTS)))
        self.policy(f"tail_drop {BUFFER_PACKETS} 0")
        self.postcards_of(RECEIVER_PORT)

    def control(self, request: str) -> list[str]:
        """The reply's lines after `ok`; an error reply fails the test."""
        first, *lines = self.core.control(request)
        assert first == "ok", f"{request}: {first}"
        return lines

    def policy(self, action: str) -> None:
        self.control(f"table set queue_policy {RECEIVER_PORT} = {action}")

    def postcards_of(self, port: int, switch_id: int = SWITCH_ID) -> None:
        self.control(f"table set postcards {port} = report {switch_id} 1")

    def counter(self, name: str, index: int) -> tuple[int, int]:
        """(packets, bytes)"""
        self.outputs()
        _, packets, size = self.control(f"counter read {name} {index}")[0].split()
        return int(packets), int(size)

    def send(self, at_ns: int, port: int, frame: bytes) -> None:
        assert self.core.receive(at_ns, port, frame) == 0

    def run(self, until_ns: int) -> None:
        self.core.advance(until_ns)

    def outputs(self) -> list[Output]:
        """Everything that has come out, once all that was sent has gone through."""
        self.sent += self.core.run()
        return self.sent

    def frames_to(self, port: int) -> list[bytes]:
        return [output.frame for output in self.outputs() if output.port == port]

    def postcards(self) -> list[Postcard]:
        return [Postcard(POSTCARD.decode(frame[POSTCARD_HEADERS_BYTES:])) for frame in self.frames_to(COLLECTOR_PORT)]


@pytest.fixture
def switch() -> Switch:
    return Switch()
