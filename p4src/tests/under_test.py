# SPDX-License-Identifier: MIT
"""The switch of the suite: the soft switch's core in this process, in virtual time, without sockets, every ns exact.

The control plane is the one of a running switch, with a function call instead of the socket.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from controlplane.policy import Policy, TailDrop
from controlplane.soft import SoftSwitch
from controlplane.switch import Collector, Count
from p4src.compile import policy
from p4src.tests import frames
from softswitch.tests.core_driver import NEVER_NS, Core
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


def composed(word: str) -> Path:
    """p4c's JSON of our program with a policy: one of ours, or p4c's output for it alone, relative to the checkout."""
    program = policy.read(word if word in policy.committed() else str(ROOT / word))
    return policy.stored(program, ROOT / "build/p4")


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


class Connection:
    """Requests to a core of this process. The connection counts the requests that change settings."""

    def __init__(self, core: Core) -> None:
        self.core, self.writes = core, 0
        self.writes_left: int | None = None  # the connection is lost once, after this many writes

    def exchange(self, request: bytes) -> bytes:
        if {b"set", b"default", b"delete"} & {*request.split()[1:2]}:
            if self.writes_left == 0:
                self.writes_left = None
                raise ConnectionResetError("lost the connection")
            self.writes_left = self.writes_left and self.writes_left - 1
            self.writes += 1
        return "\n".join(self.core.control(request.decode())).encode()

    def close(self) -> None:
        pass


class CoreControl(SoftSwitch):
    """SoftSwitch whose requests the core answers directly."""

    def __init__(self, core: Core) -> None:
        super().__init__("this process", Connection(core))


class SoftCore:
    def __init__(
        self, ports: tuple[int, ...] = (SENDER_PORT, RECEIVER_PORT, COLLECTOR_PORT), program: str = "p4"
    ) -> None:
        self.core = Core(program, ports, packets=8192, frame_bytes=9216)
        self.control = CoreControl(self.core)
        self._now_ns = 0
        self._sent: list[tuple[int, bytes]] = []

    def configure(self) -> SoftCore:
        """Makes the lab's configuration: the receiver's queue is watched, postcards go to the third port."""
        self.control.set_port(RECEIVER_PORT, rate=RATE_BPS)
        for mac, port in ((frames.SENDER_MAC, SENDER_PORT), (frames.RECEIVER_MAC, RECEIVER_PORT)):
            self.control.set_forwarding(mac, port)
        self.control.set_collector(COLLECTOR)
        self.policy(TailDrop(BUFFER_PACKETS))
        self.postcards_of(RECEIVER_PORT)
        return self

    def policy(self, policy: Policy, port: int = RECEIVER_PORT) -> None:
        """Sets the policy for frames sent from now on."""
        self.core.advance(self._now_ns)
        self.control.set_policy(port, policy)

    def postcards_of(self, port: int, switch_id: int | None = SWITCH_ID) -> None:
        self.core.advance(self._now_ns)
        self.control.set_postcards(port, switch_id)

    def count_by_the_program(self) -> None:
        """Lets the program count admitted and departed packets, as on BMv2, instead of reading queue lengths."""
        self.control.set_register("queue_registers_filled", 0, 0)

    def preset(self, register: str, value: int, port: int = RECEIVER_PORT) -> None:
        """Writes a cell of a register of the program."""
        if register.startswith(("admitted_", "departed_")):
            self.count_by_the_program()
        self.control.set_register(register, port, value)

    def count(self, name: str, port: int) -> Count:
        """Packets, and bytes including the Ethernet header, after all frames sent have passed the switch."""
        self.outputs()
        return self.control.counters()[name].get(port, Count(0, 0))

    def counter(self, name: str, port: int) -> int:
        return self.count(name, port).packets

    def send(self, at_ns: int, port: int, frame: bytes) -> None:
        """The frame arrives at `at_ns` of virtual time."""
        assert self.core.receive(at_ns, port, frame) == 0
        self._now_ns = max(self._now_ns, at_ns)

    def advance(self, until_ns: int) -> None:
        """Lets the time pass up to `until_ns` and takes the outputs, so that many packets fit into the pool."""
        self.core.advance(until_ns)
        self._sent += [(output.port, output.frame) for output in self.core.take(until_ns)]

    def outputs(self) -> list[tuple[int, bytes]]:
        """(port, frame) of all outputs, after all frames sent have passed the switch; in order per port."""
        while (event_ns := self.core.next_event_ns()) != NEVER_NS:
            self.core.advance(event_ns)
        self._sent += [(output.port, output.frame) for output in self.core.take()]
        return self._sent

    def frames_to(self, port: int) -> list[bytes]:
        return [frame for out, frame in self.outputs() if out == port]

    def postcards(self) -> list[Postcard]:
        return [Postcard(POSTCARD.decode(frame[POSTCARD_HEADERS_BYTES:])) for frame in self.frames_to(COLLECTOR_PORT)]
