# SPDX-License-Identifier: MIT
"""The one interface to a switch, whatever it is: what can be set, what can be read back, and what a target can say.

Ports are the data plane's numbers here; `ports()` has their front-panel names. Everything that can be set can be read
back, and what is read is what is in force, after whatever the target rounds. Nothing is cached.
"""

from __future__ import annotations

import abc
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Self

from controlplane.policy import Ecn, Policy, TailDrop, Unit


class SwitchError(RuntimeError):
    """The switch refused, or does not answer. One line: what was asked of which table, key and target, and why not."""


@dataclass(frozen=True)
class Capabilities:
    """What a target can and cannot do exactly. A row per target in targets.py; a connection fills in what it reads."""

    name: str
    depth_units: tuple[Unit, ...]  # what thresholds and depths can be compared in; the first is the histogram's
    exact_depth: bool  # a depth counts exactly the packets ahead
    exact_time: bool  # stamps are exact functions of the arrivals, not readings of a wall clock
    time_step_ns: int  # what one tick of the switch's clock is
    tail_drop_seen_by_program: bool  # else the traffic manager drops, and deflects what it dropped
    rate_unit: str  # what the queue's rate is kept in: bps or pps
    limit_units: tuple[Unit, ...]  # what the queue's own limit can be given in
    links: bool  # has propagation delays and access rates
    front_panel: bool  # has cables, whose speed and FEC are to be set
    cell_bytes: int | None = None  # where depths are in cells; read from the switch
    queued_extra_bytes: int = 0  # that lie in the queue with each frame, and take cells
    hysteresis_cells: int = 0  # dropping ends this far below the limit where it began

    @property
    def byte_thresholds(self) -> bool:
        return Unit.BYTES in self.depth_units


@dataclass(frozen=True)
class ProgramIdentity:
    """The P4 program on the switch. `digest` is that of its P4 sources, None where the target does not know it."""

    name: str
    digest: str | None


@dataclass(frozen=True)
class Count:
    """One cell of a P4 counter."""

    packets: int
    bytes: int


@dataclass(frozen=True)
class Collector:
    """Where postcards go: out of `port`, to a UDP socket. Addresses are IPv4."""

    port: int
    switch_mac: str
    collector_mac: str
    switch_addr: str
    collector_addr: str
    src_port: int
    dst_port: int


@dataclass(frozen=True)
class Queue:
    """The queue of a port: how fast it is served and how much it holds. None: no bound, or not in that unit.

    `rate_bps` is of wire bits: those of preamble, FCS and gap (24 bytes a frame) count.
    """

    rate_bps: int | None = None
    rate_pps: int | None = None
    limit_packets: int | None = None
    limit_bytes: int | None = None
    limit_cells: int | None = None


@dataclass(frozen=True)
class FrontPanel:
    """How a port with a cable is run. `fec`: none, firecode, reed-solomon; `auto_negotiation`: default, on, off."""

    speed_bps: int
    fec: str = "none"
    auto_negotiation: str = "default"
    enabled: bool = True


class Switch(abc.ABC):
    """A connection to a running switch; use it as a context. Every method raises SwitchError."""

    target: str
    address: str

    @property
    @abc.abstractmethod
    def capabilities(self) -> Capabilities: ...

    @abc.abstractmethod
    def close(self) -> None: ...

    @abc.abstractmethod
    def program(self) -> ProgramIdentity:
        """The program on the switch. SwitchError if it is not ours, or another version than this checkout's."""

    @abc.abstractmethod
    def writing(self) -> AbstractContextManager[None]:
        """Inside, nobody else writes to this switch through this interface. SwitchError names who does now."""

    @abc.abstractmethod
    def ports(self) -> dict[str, int]:
        """Front-panel name ('1', 'eth0', '1/0') -> data-plane port, of all ports that can be used."""

    @abc.abstractmethod
    def forwarding(self) -> dict[str, int]:
        """Destination MAC (02:bf:...) -> port that its frames leave on."""

    @abc.abstractmethod
    def set_forwarding(self, mac: str, port: int) -> None: ...

    @abc.abstractmethod
    def delete_forwarding(self, mac: str) -> None:
        """Frames to `mac` are dropped from now on. Nothing is there to delete: nothing happens."""

    @abc.abstractmethod
    def policy(self, port: int) -> Policy: ...

    @abc.abstractmethod
    def set_policy(self, port: int, policy: Policy) -> None:
        """The policy of `port`'s queue, from the next packet on."""

    @abc.abstractmethod
    def check_policy(self, port: int, policy: Policy) -> None:
        """Raises what set_policy would, and changes nothing."""

    @abc.abstractmethod
    def postcards(self, port: int) -> int | None:
        """The switch id in the postcards of `port`'s queue, None: it makes none."""

    @abc.abstractmethod
    def set_postcards(self, port: int, switch_id: int | None) -> None:
        """One postcard for each packet of `port`'s queue, saying `switch_id`; None: none."""

    @abc.abstractmethod
    def collector(self) -> Collector | None: ...

    @abc.abstractmethod
    def set_collector(self, collector: Collector) -> None: ...

    @abc.abstractmethod
    def queue(self, port: int) -> Queue: ...

    @abc.abstractmethod
    def set_queue(self, port: int, queue: Queue) -> None:
        """The whole setting: what is None has no bound. What is in force after rounding, `queue` says."""

    def holds(self, asked: Queue, found: Queue) -> bool:
        """Whether `found` is what asking for `asked` gives, after whatever this target rounds."""
        return asked == found

    @abc.abstractmethod
    def check_queue(self, port: int, queue: Queue) -> None:
        """Raises what set_queue would of these values, and changes nothing."""

    def silent_drops(self, policy: Policy, queue: Queue) -> str:
        """Why the queue would drop in silence before `policy` does, '' if it would not."""
        if not isinstance(policy, TailDrop | Ecn):
            return ""
        most = policy.hard_limit if isinstance(policy, Ecn) else policy.threshold
        limit = {Unit.PACKETS: queue.limit_packets, Unit.BYTES: queue.limit_bytes}.get(policy.unit)
        if limit is None or limit > most:
            return ""
        return (
            f"the queue itself holds {limit} {policy.unit} and drops the rest in silence, before the policy does at "
            f"{most}: give it a limit above that"
        )

    @abc.abstractmethod
    def counters(self) -> dict[str, dict[int, Count]]:
        """P4 counters by name, as in P4Info without their control: the cells that are not zero, by index."""

    @abc.abstractmethod
    def target_counters(self) -> dict[str, int]:
        """What the target counts besides the program: drops of its own, queue lengths."""

    @abc.abstractmethod
    def histogram(self, port: int) -> list[tuple[int, int]]:
        """(lowest depth of the bucket in the first of depth_units, packets) of `port`'s queue; all buckets."""

    def front_panel(self, port: int) -> FrontPanel | None:
        """How the port is run; None: it is not set up, or this target has no front panel."""
        return None

    def set_front_panel(self, port: int, settings: FrontPanel | None) -> None:
        """Sets the port up, or with None takes it down."""
        raise SwitchError(f"{self}: port {port} has no cable whose speed could be set: leave `speed` out")

    def deflection(self) -> dict[int, int]:
        """Pipe -> port that what the traffic manager refuses there comes to; empty where the program sees its drops."""
        return {}

    def set_deflection(self, port: int) -> None:
        """What the queues of this port's pipe refuse comes to egress as if for `port`."""
        raise SwitchError(f"{self}: port {port}: nothing is deflected here, the program itself drops")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __str__(self) -> str:
        return f"{self.target} switch at {self.address}"
