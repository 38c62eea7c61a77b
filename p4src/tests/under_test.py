# SPDX-License-Identifier: MIT
"""A switch as the suite sees it, independent of the target: frames in, frames and postcards out, and the control
plane's calls. Each target is a subclass that moves frames in and out and lets time pass.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from controlplane.policy import Policy, TailDrop, Unwatched
from controlplane.program import ProgramSwitch
from controlplane.switch import Collector, Count, Queue
from p4src.tests import frames
from wire.wire import POSTCARD

ROOT = Path(__file__).resolve().parents[2]
SENDER_PORT, RECEIVER_PORT, COLLECTOR_PORT = 1, 2, 3
SWITCH_ID = 7
BUFFER_PACKETS = 163
RATE_BPS = 200_000_000
POSTCARD_HEADERS_BYTES = 14 + 20 + 8
UDP_PORT = POSTCARD.const["POSTCARD_UDP_PORT"]
COLLECTOR = Collector(
    COLLECTOR_PORT, frames.SWITCH_MAC, frames.COLLECTOR_MAC, frames.SWITCH, frames.COLLECTOR, UDP_PORT, UDP_PORT
)
CLOCK_FIELDS = ("enqueue_switch_ns", "sojourn_ns")  # fields of a postcard that are read from the switch's clock


@dataclass(frozen=True)
class Postcard:
    """One postcard, as it left the collector's port."""

    fields: dict[str, int]

    def __getattr__(self, name: str) -> int:
        try:
            return self.fields[name]
        except KeyError:
            raise AttributeError(name) from None

    def has(self, flag: str) -> bool:
        return bool(self.fields["flags"] & POSTCARD.const[f"POSTCARD_{flag}"])


class SwitchUnderTest(abc.ABC):
    """Has the lab's configuration: three ports, the receiver's queue is watched, postcards go to the third port."""

    min_frame_bytes: ClassVar[int]  # shorter frames cannot be sent into this target, or only with padding
    control: ProgramSwitch

    def configure(self) -> None:
        """Makes the lab's configuration on an unconfigured switch."""
        for mac, port in ((frames.SENDER_MAC, SENDER_PORT), (frames.RECEIVER_MAC, RECEIVER_PORT)):
            self.control.set_forwarding(mac, port)
        self.collector_at(COLLECTOR_PORT)
        self.policy(TailDrop(BUFFER_PACKETS))
        self.postcards_of(RECEIVER_PORT)

    # Control

    def policy(self, policy: Policy, port: int = RECEIVER_PORT) -> None:
        """Sets the policy for frames sent from now on."""
        self.settle()
        self.control.set_policy(port, policy)

    def postcards_of(self, port: int, switch_id: int | None = SWITCH_ID) -> None:
        self.settle()
        self.control.set_postcards(port, switch_id)

    def collector_at(self, port: int) -> None:
        self.control.set_collector(COLLECTOR)

    def counter(self, name: str, port: int) -> int:
        """Counts packets, after all frames sent have passed the switch."""
        return self.count(name, port).packets

    def counted_bytes(self, name: str, port: int) -> int:
        """Counts bytes of frames, including the Ethernet header."""
        return self.count(name, port).bytes

    def count(self, name: str, port: int) -> Count:
        self.outputs()
        return self.control.counters()[name].get(port, Count(0, 0))

    def histogram(self, port: int) -> list[tuple[int, int]]:
        self.outputs()
        return self.control.histogram(port)

    def rate(self, rate_bps: int) -> None:
        """Sets the rate of the link behind RECEIVER_PORT's queue."""
        self.control.set_queue(RECEIVER_PORT, Queue(rate_bps=rate_bps))

    @abc.abstractmethod
    def preset(self, register: str, value: int, port: int = RECEIVER_PORT) -> None:
        """Writes a cell of a register of the program."""

    # Frames

    def send(self, at_ns: int, port: int, frame: bytes) -> None:
        """Sends frames in the order of the calls. The target's abilities say how exactly `at_ns` is kept."""
        if len(frame) < self.min_frame_bytes:
            pytest.skip(f"{self.control.target}: a frame of {len(frame)} bytes cannot be sent into it unpadded")
        self.put_in(at_ns, port, frame)

    @abc.abstractmethod
    def put_in(self, at_ns: int, port: int, frame: bytes) -> None: ...

    @abc.abstractmethod
    def slow_link(self) -> None:
        """Slows RECEIVER_PORT's link so that its queue can fill: one 1514-byte frame per 61 us of `at_ns` at most."""

    @contextmanager
    def held(self, packets: int = 0) -> Iterator[None]:
        """All frames sent in this context reach RECEIVER_PORT's queue before the first leaves.

        `packets`: the approximate number of frames, if it is large.
        """
        yield

    @abc.abstractmethod
    def settle(self) -> None:
        """Returns when ingress has processed all frames sent."""

    @abc.abstractmethod
    def outputs(self) -> list[tuple[int, bytes]]:
        """(port, frame) of all outputs, after all frames sent have passed the switch; in order per port."""

    def frames_to(self, port: int) -> list[bytes]:
        return [frame for out, frame in self.outputs() if out == port]

    def postcards(self) -> list[Postcard]:
        return [Postcard(POSTCARD.decode(frame[POSTCARD_HEADERS_BYTES:])) for frame in self.frames_to(COLLECTOR_PORT)]

    def known(self, fields: dict[str, int]) -> dict[str, int]:
        """The fields of a postcard whose values a test can predict on this target: clock fields only if time is
        exact.
        """
        unknown = () if self.control.capabilities.exact_time else CLOCK_FIELDS
        return {name: value for name, value in fields.items() if name not in unknown}


UNWATCHED = Unwatched()
