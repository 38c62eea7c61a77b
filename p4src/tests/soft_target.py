# SPDX-License-Identifier: MIT
"""The soft switch's core in this process, in virtual time: no sockets, no clock, every ns exact.

The control plane is the one of a running switch, with a function call instead of the socket.
"""

from __future__ import annotations

from controlplane.soft import SoftSwitch
from p4src.tests.under_test import COLLECTOR_PORT, RATE_BPS, RECEIVER_PORT, SENDER_PORT, SwitchUnderTest
from softswitch.tests.core_driver import NEVER_NS, Core


class CoreControl(SoftSwitch):
    """SoftSwitch whose requests the core answers directly."""

    def __init__(self, core: Core) -> None:
        self.path = self.address = "this process"
        self._transport = _Call(core)


class _Call:
    def __init__(self, core: Core) -> None:
        self._core = core

    def exchange(self, request: bytes) -> bytes:
        return "\n".join(self._core.control(request.decode())).encode()

    def close(self) -> None:
        pass


class SoftCore(SwitchUnderTest):
    min_frame_bytes = 1
    control: SoftSwitch

    def __init__(self, ports: tuple[int, ...] = (SENDER_PORT, RECEIVER_PORT, COLLECTOR_PORT)) -> None:
        self.core = Core("p4", ports, packets=8192, frame_bytes=9216)
        self.control = CoreControl(self.core)
        self._now_ns = 0
        self._sent: list[tuple[int, bytes]] = []

    def configure(self) -> None:
        self.control.set_port(RECEIVER_PORT, rate=RATE_BPS)
        super().configure()

    def count_by_the_program(self) -> None:
        """Lets the program count admitted and departed packets, as on BMv2, instead of reading queue lengths."""
        self.control.set_register("queue_registers_filled", 0, 0)

    def preset(self, register: str, value: int, port: int = RECEIVER_PORT) -> None:
        if register.startswith(("admitted_", "departed_")):
            self.count_by_the_program()
        self.control.set_register(register, port, value)

    def put_in(self, at_ns: int, port: int, frame: bytes) -> None:
        """The frame arrives at `at_ns` of virtual time."""
        assert self.core.receive(at_ns, port, frame) == 0
        self._now_ns = max(self._now_ns, at_ns)

    def slow_link(self) -> None:
        self.rate(RATE_BPS)  # the initial rate: in virtual time a queue fills at any rate

    def settle(self) -> None:
        self.core.advance(self._now_ns)

    def outputs(self) -> list[tuple[int, bytes]]:
        while (event_ns := self.core.next_event_ns()) != NEVER_NS:
            self.core.advance(event_ns)
        self._sent += [(output.port, output.frame) for output in self.core.take()]
        return self._sent
