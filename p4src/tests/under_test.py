# SPDX-License-Identifier: MIT
"""A switch as the suite sees it, independent of the target: frames in, frames and postcards out, and the control
plane's calls. Each target is a subclass that moves frames in and out and lets time pass.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

from controlplane.policy import Policy, TailDrop, Unit, Unwatched
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
FULL_FRAME_BYTES = 1514
CLOCK_FIELDS = ("enqueue_switch_ns", "sojourn_ns")  # fields of a postcard that are read from the switch's clock
DEPTH_FIELDS = ("depth_packets", "depth_bytes", "depth_cells", "depth_unit", "threshold")


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
    """Has the lab's configuration: three ports, the queue to the receiver is watched, postcards go to the third port.

    `port` is always the suite's number; a target whose ports have other numbers translates.
    """

    own_abilities: ClassVar[frozenset[str]]
    min_frame_bytes: ClassVar[int]  # shorter frames cannot be sent into this target, or only with padding
    control: ProgramSwitch

    def configure(self) -> None:
        """Makes the lab's configuration on an unconfigured switch."""
        for mac, port in ((frames.SENDER_MAC, SENDER_PORT), (frames.RECEIVER_MAC, RECEIVER_PORT)):
            self.control.set_forwarding(mac, self.number(port))
        self.collector_at(COLLECTOR_PORT)
        self.policy(TailDrop(BUFFER_PACKETS))
        self.postcards_of(RECEIVER_PORT)

    # Control

    def number(self, port: int) -> int:
        """The data plane's number of a port of the suite."""
        return port

    def policy(self, policy: Policy, port: int = RECEIVER_PORT) -> None:
        """Sets the policy for frames sent from now on. If depths are in cells, converts packets to cells."""
        self.settle()
        self.control.set_policy(self.number(port), self.expressible(policy))

    def expressible(self, policy: Policy) -> Policy:
        can = self.control.capabilities
        if isinstance(policy, Unwatched) or policy.unit in can.depth_units:
            return policy
        assert can.cell_bytes, f"{can.name} cannot compare depths in {policy.unit}, and has no cells"
        each = -(-FULL_FRAME_BYTES // can.cell_bytes)
        bounds = {name: getattr(policy, name) * each for name in ("threshold", "hard_limit") if hasattr(policy, name)}
        return replace(policy, unit=Unit.CELLS, **bounds)

    def postcards_of(self, port: int, switch_id: int | None = SWITCH_ID) -> None:
        self.settle()
        self.control.set_postcards(self.number(port), switch_id)

    def collector_at(self, port: int) -> None:
        self.control.set_collector(Collector(**{**vars(COLLECTOR), "port": self.number(port)}))

    def counter(self, name: str, port: int) -> int:
        """Counts packets, after all frames sent have passed the switch."""
        return self.count(name, port).packets

    def counted_bytes(self, name: str, port: int) -> int:
        """Counts bytes of frames, including the Ethernet header (ability counted_bytes)."""
        return self.count(name, port).bytes

    def count(self, name: str, port: int) -> Count:
        self.outputs()
        return self.control.counters()[name].get(self.number(port), Count(0, 0))

    def histogram(self, port: int) -> list[tuple[int, int]]:
        self.outputs()
        return self.control.histogram(self.number(port))

    def rate(self, rate_bps: int) -> None:
        """Sets the rate of the link behind RECEIVER_PORT's queue (ability bit_rate)."""
        self.control.set_queue(self.number(RECEIVER_PORT), Queue(rate_bps=rate_bps))

    @abc.abstractmethod
    def preset(self, register: str, value: int, port: int = RECEIVER_PORT) -> None:
        """Writes a cell of a register of the program (ability register_presets)."""

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
        """All frames sent in this context reach RECEIVER_PORT's queue before the first leaves (ability held_queue).

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
        cards = [POSTCARD.decode(frame[POSTCARD_HEADERS_BYTES:]) for frame in self.frames_to(COLLECTOR_PORT)]
        ports = {self.number(port): port for port in (SENDER_PORT, RECEIVER_PORT, COLLECTOR_PORT)}
        for card in cards:
            for name in ("ingress_port", "egress_port"):
                card[name] = ports.get(card[name], card[name])
        return [Postcard(card) for card in cards]

    def known(self, fields: dict[str, int]) -> dict[str, int]:
        """The fields of a postcard whose values a test can predict on this target: clock fields only if time is exact,
        depth fields only if the target counts packets, and all other fields."""
        can = self.control.capabilities
        unknown = {*(() if can.exact_time else CLOCK_FIELDS)}
        unknown.update(() if Unit.PACKETS in can.depth_units else DEPTH_FIELDS)
        return {name: value for name, value in fields.items() if name not in unknown}

    def depth_of(self, card: Postcard) -> int:
        """The queue's length at the packet's arrival, in the first of the target's depth_units: packets or cells."""
        return card.depth_packets if Unit.PACKETS in self.control.capabilities.depth_units else card.depth_cells


UNWATCHED = Unwatched()
